#pragma once
// The tokenizer of a run, and how it is known to be the one that the run was trained with.
#include <cstdint>
#include <optional>
#include <string>

#include "data/tokenizer.h"

namespace cloze {

/// What provenance.json says of a run's tokenizer.
struct RecordedTokenizer {
  std::string fingerprint{};  ///< empty: nothing
  /// Every process that trains the run has recorded its tokenizer. Earlier versions recorded the first one only, from
  /// which the tokenizer of a run that went on with other tokens differs.
  bool is_current = false;
};

/// What is recorded of a run's tokenizer. Throws CheckpointError for a provenance.json that is missing or damaged.
RecordedTokenizer recorded_tokenizer(const std::string& run);

/// The tokenizer of a run; none for a run that never had one. A run of an earlier version whose tokenizer is not the
/// recorded one is opened with a warning. Throws CheckpointError for a tokenizer that is missing, lacks the facts by
/// which it maps texts to ids, or is another one than the run was trained with, and DataError for a damaged one.
std::optional<Tokenizer> open_run_tokenizer(const std::string& run, const RecordedTokenizer& recorded);

/// The same of what provenance.json records; where that is missing or damaged, which is warned of, of nothing.
std::optional<Tokenizer> open_run_tokenizer(const std::string& run);

/// Throws CheckpointError for a tokenizer with ids that a model of `vocab_size` tokens lacks.
void require_fitting(const Tokenizer& tokenizer, int64_t vocab_size, const std::string& run);

/// What is said of a run directory without a tokenizer where text is to be read, after its name: `has no tokenizer`,
/// and what gives it one.
std::string no_tokenizer(const std::string& run);

}  // namespace cloze

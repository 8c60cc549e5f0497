#pragma once
// How often each token occurs in what a run was trained on.
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace cloze {

struct TrainingCounts {
  std::vector<uint64_t> counts{};  ///< of each id in the training split; empty: not known
  std::string why{};               ///< why they are not known; empty too where the tokens were prepared without counts
};

/// The counts that the manifest of a run's prepared tokens has. `tokenizer`: whose ids they must be.
TrainingCounts training_counts(const std::string& tokens, const Tokenizer& tokenizer);

}  // namespace cloze

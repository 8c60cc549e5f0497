#pragma once
// Suites of ages at which children know words.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluation/suites/csv.h"
#include "evaluation/suites/request.h"
#include "evaluation/suites/suite_files.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

/// Ages in months, by word.
using ChildAges = std::map<std::string, double>;

/// Whether a table has ages of words.
bool is_age_table(const CsvTable& table);

/// Ages from a table. With columns `word` and 16 to 30, the fractions of children of so many months who know a word:
/// the age at which its sigmoid passes a half; a word whose sigmoid does not within those months is left out. With
/// columns `word_clean` and `aoa`: the age itself. The first row of a word counts. Throws DataError. Source: BabyLM
/// 2026, strict/evaluation_pipeline/utils.py, compute_child_aoa; of the list: BabyLM 2023.
ChildAges child_ages(const CsvTable& table);

/// The age at which the sigmoid of these fractions passes a half; none: it does not between the first and the last
/// month.
std::optional<double> child_age(std::span<const double> months, std::span<const double> fractions);

/// The surprisals of a word at the checkpoints of a run, in nats.
struct LearningCurve {
  std::vector<double> words{};       ///< [N] seen in training, ascending; a checkpoint has an entry for each context
  std::vector<double> surprisals{};  ///< [N]; NaN = missing
};

/// log10 of the words after which a sigmoid of the curve lies halfway between `chance`, the surprisal before training,
/// and its minimum; none: it does not within the curve.
/// Source: Chang and Bergen 2022 (TACL 10), section 3.3, as compute_model_aoa of BabyLM 2026 has it.
std::optional<double> model_age(const LearningCurve& curve, double chance);

/// The ages of words that both children and a model learn.
struct AcquisitionAges {
  std::vector<std::string> words{};
  std::vector<double> model{};  ///< log10 of words
  std::vector<double> child{};  ///< months
  /// Pearson's correlation; 0 for fewer than three words, as the published program has it.
  double correlation() const;
};

/// The ages of `curves`, word by word. `chance`: see model_age.
AcquisitionAges acquisition_ages(const std::vector<std::pair<std::string, LearningCurve>>& curves,
                                 const ChildAges& children, double chance);

/// The chance of the published program: log2 of 300,000 words, though its surprisals are in nats.
extern const double babylm_chance;

/// A word with the contexts before it.
struct AcquisitionWord {
  std::string word;
  std::vector<std::string> contexts;
};

struct AcquisitionSuite {
  std::vector<AcquisitionWord> words;  ///< in the order of the file
  ChildAges ages;                      ///< empty: no table of ages is next to the file
  size_t size() const;                 ///< contexts of all words
};

/// The suite, a JSON file of words, each with a list of objects with `context`, or a folder with a
/// cdi_childes.json; none for a file of another kind. Words of one character are left out, as in BabyLM 2026. Ages are
/// those of the first table that is there: cdi_human.csv or aoa_word_list.csv in the same folder, or in `aoa` next
/// to it. Throws DataError.
std::optional<AcquisitionSuite> read_acquisition(const SuiteFiles& files);

/// Why a run cannot answer it; empty if it can.
std::string reason_unsupported(const RunConfig& config, const AcquisitionSuite& suite, const SuiteOptions& options);

/// What a run at one checkpoint says of a suite.
struct CheckpointSurprisals {
  std::string name;                               ///< of the checkpoint: `chck_10M`
  double words = 0;                               ///< seen in training
  std::vector<double> surprisals;                 ///< [size()], nats, word by word and context by context
  std::optional<std::vector<double>> official{};  ///< the same by the published BabyLM program, where they differ
};

/// Surprisals of all words after their contexts, by the Scorer.
std::vector<double> acquisition_surprisals(const LoadedRun& run, const AcquisitionSuite& suite,
                                           const ScoringOptions& options);
/// The same as the published BabyLM program has them. Throws ConfigError by babylm_fault.
std::vector<double> babylm_acquisition_surprisals(const LoadedRun& run, const AcquisitionSuite& suite,
                                                  BabylmBackend backend, const ScoringOptions& options);

/// Correlation of the ages of children and of a run over its checkpoints, in the order of training. `chance` is the
/// surprisal before training [nats], the logarithm of the vocabulary's size; `official` is of the official surprisals
/// and of `babylm_chance`. Items: the words with both ages; of fewer than three the value is NaN, with a note, and
/// `official` the 0 of the published program. Throws DataError for a suite without ages, and for fewer than three
/// checkpoints.
SuiteResult acquisition_result(const AcquisitionSuite& suite, const std::vector<CheckpointSurprisals>& checkpoints,
                               double chance);

/// Throws DataError for a text that is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const AcquisitionSuite& suite, const SuiteOptions& options);

/// One checkpoint: the mean surprisal in nats, and that of every word and context.
SuiteResult run_suite(const LoadedRun& run, const AcquisitionSuite& suite, const SuiteOptions& options);

}  // namespace cloze

#pragma once
// Suites of ages at which children know words.
#include <optional>
#include <string>

#include "evaluation/suites/acquisition_ages.h"
#include "evaluation/suites/request.h"
#include "evaluation/suites/suite_files.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

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
std::string fault_of(const RunConfig& config, const AcquisitionSuite& suite, const SuiteOptions& options);

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

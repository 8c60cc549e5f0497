#pragma once
// BabyLM's evaluation data, answered by a run: the official numbers next to the corrected ones.
#include <optional>
#include <string>
#include <vector>

#include "evaluation/babylm/results.h"
#include "evaluation/suites/driver.h"

namespace cloze {

/// The items of one ranking task.
struct BabylmTask {
  BabylmDataset dataset;
  std::vector<BabylmItem> items;
};

/// What is there of a folder `evaluation_data`.
struct BabylmData {
  std::vector<BabylmTask> tasks{};
  std::optional<ReadingSuite> reading{};
  std::optional<AcquisitionSuite> acquisition{};  ///< of the full evaluation
  std::vector<std::string> missing{};             ///< folders that are not there
};

/// The full evaluation of a folder, or the fast one. Throws DataError for damaged parts, and where none is there.
BabylmData read_babylm_data(const std::string& folder, bool fast);

/// The scores of one task: accuracies of the Scorer's scores, ties counted as a half, with the official ones of `sums`
/// [items][candidates] next to them, or without sums NaN. `scores` are those of all candidates, in the items' order.
SuiteResult babylm_result(const BabylmTask& task, std::span<const PassageScore> scores,
                          const std::vector<std::vector<float>>& sums, Normalisation by);

/// The options by which words are predicted: without a form in `options` an encoder-decoder does it by its decoder, and
/// ELECTRA by its generator, since a discriminator gives no probabilities of words.
SuiteOptions surprisal_options(const LoadedRun& run, const SuiteOptions& options);

/// Answers the ranking tasks and the reading times of `data`. Without a form in `options` an encoder-decoder is scored
/// by that of its backend's official number; notes say where the two still differ. Without a backend the official
/// numbers are NaN, and a note says why. Writes predictions and reports of the published program into `zero_shots`, the
/// folders of a checkpoint's revisions, as far as its backend has them. A task with an item that cannot be scored is
/// left out, logged, and added to `skipped` with the reason; texts that are too long are found before any is scored,
/// those of reading times when they are read. Throws ConfigError by babylm_fault.
std::vector<SuiteResult> evaluate_babylm(const LoadedRun& run, const BabylmData& data,
                                         std::optional<BabylmBackend> backend, const SuiteOptions& options,
                                         const std::vector<ResultsFolder>& zero_shots,
                                         std::vector<std::string>& skipped);

/// Whether a --suite is BabyLM's evaluation data: `babylm`, a folder of it, or its name among the suites.
bool names_babylm_data(const std::string& name);
/// `cloze evaluate babylm`: evaluates runs on its tasks, writes the files of the published program, and prints
/// the table. Returns the exit code.
int evaluate_babylm(const RunSelection& selection, const SuiteRequest& request);

}  // namespace cloze

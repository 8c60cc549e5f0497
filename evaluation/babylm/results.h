#pragma once
// What the published BabyLM program reports of a task, and the folder of results as it lays it out:
//
//   RESULTS/MODEL/main/zero_shot/BACKEND/TASK/DATASET/{predictions.json,best_temperature_report.txt}
//   RESULTS/MODEL/main/zero_shot/BACKEND/reading/{predictions.json,report.txt}
//   RESULTS/MODEL/main/zero_shot/BACKEND/AoA_word/surprisal.json
//   RESULTS/MODEL/main/finetune/TASK/{predictions.json,results.txt}
//   RESULTS/MODEL/chck_7M/...
//
// Beside each of these stands weights.json: of which network it is, by which collate tells results of several.
//
// Differs: there the reading times of enc_dec_mask and enc_dec_prefix are under the backend `enc_dec`, where
// collate_preds.py does not look for them.
// Source: BabyLM 2026, strict/evaluation_pipeline/sentence_zero_shot/{run,compute_results}.py.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/babylm/tasks.h"
#include "evaluation/suites/acquisition.h"
#include "evaluation/suites/python_json.h"
#include "evaluation/suites/reading.h"

namespace cloze {

/// Scores of one kind of group, in the order of their first items: percent, or of wug a correlation.
struct BabylmSection {
  std::string name;  ///< `UID`, `field`, ...
  std::vector<std::pair<std::string, double>> scores;
};

struct BabylmReport {
  std::vector<BabylmSection> sections;
  double average = 0;           ///< of paradigms; of entity tracking over its three splits; of wug Spearman's rho
  std::vector<size_t> choices;  ///< [items]
  PythonJson predictions;       ///< content of predictions.json
};

/// The report of a task. `sums`: [items][candidates], by babylm_sums. Throws DataError for other numbers of sums than
/// items have candidates.
BabylmReport babylm_report(const BabylmDataset& dataset, const std::vector<BabylmItem>& items,
                           const std::vector<std::vector<float>>& sums);

/// The content of best_temperature_report.txt at temperature 1.
std::string report_text(const BabylmDataset& dataset, const BabylmReport& report);

/// The name of a model in results: the last part of its path without an extension, as pathlib's `stem`.
std::string babylm_model_name(const std::string& model);

/// MODEL/REVISION/zero_shot/BACKEND of a folder of results.
std::string zero_shot_folder(const std::string& results, const std::string& model, const std::string& revision,
                             BabylmBackend backend);

/// Of which networks results are: a weights_fingerprint by the revision of the model, such as `main`.
using RevisionWeights = std::map<std::string, std::string>;

/// Where results of a network are written.
struct ResultsFolder {
  std::string path;           ///< zero_shot_folder, or MODEL/main/finetune
  RevisionWeights weights{};  ///< noted beside each result
};

/// What is noted beside a file of results; empty for those of the published program.
RevisionWeights noted_weights(const std::string& file);

/// Writes a report and its predictions.
void write_report(const ResultsFolder& zero_shot, const BabylmDataset& dataset, const BabylmReport& report);

/// Writes them with the two scores, in percent.
void write_reading(const ResultsFolder& zero_shot, const ReadingSuite& suite, const ReadingSurprisals& surprisals);

/// Writes the labels that are predicted for the items of a fine-tuned task, and its scores.
/// Source: strict/evaluation_pipeline/finetune/run.py.
void write_finetuning(const ResultsFolder& folder, const std::string& task,
                      const std::vector<std::pair<std::string, double>>& scores, const std::vector<int64_t>& labels);

void write_acquisition(const ResultsFolder& zero_shot, const std::string& model, const AcquisitionSuite& suite,
                       const std::vector<CheckpointSurprisals>& checkpoints);

}  // namespace cloze

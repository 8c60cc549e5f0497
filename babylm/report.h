#pragma once
// What the published BabyLM program reports of a task.
// Source: BabyLM 2026, strict/evaluation_pipeline/sentence_zero_shot/{run,compute_results}.py.
#include <string>
#include <utility>
#include <vector>

#include "babylm/tasks.h"
#include "suites/python_json.h"

namespace cloze {

/// Figures of one kind of group, in the order of their first items: percent, or of wug a correlation.
struct BabylmSection {
  std::string name;  ///< `UID`, `field`, ...
  std::vector<std::pair<std::string, double>> figures;
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

}  // namespace cloze

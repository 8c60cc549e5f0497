#pragma once
// Two runs on the same suites: paired differences of their shares of right items.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/report/table.h"
#include "evaluation/suites/statistics.h"
#include "evaluation/suites/suite_report.h"

namespace cloze {

/// The shares of two runs on one suite, over the items that both have.
struct SuiteComparison {
  std::string suite, metric;
  SuiteFigure first, second;         ///< as each run has them alone
  double difference = 0;             ///< first less second
  std::optional<Bounds> interval{};  ///< of the difference, 95 %; none for a single item
  int64_t items = 0;
  int64_t only_first = 0, only_second = 0;  ///< items that one alone has right; a tie is not right
  double mcnemar = 1;                       ///< two-sided p over items
  double holm = 1;                          ///< that p, corrected for the number of suites
};

/// The comparisons of the suites that both have a share of, in the order of the first. The interval is that of
/// clustered_mean over the suite's clusters, and nowhere narrower than that over single items, since few clusters may
/// be alike by chance.
std::vector<SuiteComparison> compare_runs(const CheckpointResults& first, const CheckpointResults& second);

/// One row for each suite.
Table table_of(std::span<const SuiteComparison> compared, const std::string& first, const std::string& second);
/// {"suite", "metric", "first", "second": {"value", "low", "high"}, "difference", "low", "high", "items", "only_first",
/// "only_second", "mcnemar", "mcnemar_holm"}
nlohmann::json to_json(const SuiteComparison& compared);

}  // namespace cloze

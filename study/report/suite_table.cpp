#include "study/report/report_rows.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "run/records/suite_units.h"
#include "core/report/score_json.h"
#include "study/measures/pairs.h"

namespace cloze {

namespace {

/// The values of a score by arm, `blimp accuracy %`, and those by score.
using ScoreValues = std::map<std::string, std::map<int64_t, MetricValue>>;
using SuiteScores = std::map<std::string, ScoreValues>;

/// The items of a score; none where a run of an earlier version lacks their sums.
ExampleLosses items_of(const SuiteMetric& metric, const std::string& folder) {
  try {
    return value_of(metric, folder, "").examples;
  } catch (const DataError&) {
    return {};
  }
}

/// Adds the suites of a run's summary.json.
void add_answers(const RunResult& run, SuiteScores& scores) {
  const auto summary = read_summary(run.folder, "resume the run, which writes it again");
  if (!summary.contains("suites")) return;
  for (const auto& [suite, metrics] : summary["suites"].items())
    for (const auto& [metric, entry] : metrics.items())
      if (const auto score = score_of(metric, entry); score.is_defined())
        scores[suite + " " + metric_words(metric)][run.arm][run.seed] = {
            .value = in_unit(score.value, metric), .examples = items_of({.suite = suite, .name = metric}, run.folder)};
}

SuiteScores answers_of(const StudyReport& report) {
  SuiteScores scores;
  for (const auto& arm : report.arms)
    for (const auto& run : arm.runs) add_answers(run, scores);
  return scores;
}

ArmValues values_of(const ScoreValues& of_arms, const std::string& arm) {
  ArmValues values;
  if (const auto of_arm = of_arms.find(arm); of_arm != of_arms.end())
    for (const auto& [seed, value] : of_arm->second) values.push_back({seed, &value});
  return values;
}

}  // namespace

void add_suite_columns(Table& table, const StudyReport& report) {
  int rank = 0;
  for (const auto& [metric, values] : answers_of(report)) {
    table.header.emplace_back(metric, ColumnKind::number, ++rank);
    for (auto& row : table.rows) {
      const auto summary = summarize(values_of(values, row.front()));
      auto cell = summary.count > 0 ? digits(summary.mean, 4) : "";
      if (summary.count > 1) cell += " ± " + digits(summary.sd, 2);
      row.push_back(std::move(cell));
    }
  }
}

std::optional<Table> suite_table(const StudyReport& report) {
  const auto scores = answers_of(report);
  if (scores.empty()) return {};
  constexpr auto number = ColumnKind::number;
  Table table{.title = "Evaluation suites",
              .header = {"suite",
                         "arm",
                         {"runs", number},
                         {"mean", number},
                         {"sd", number},
                         {"difference", number},
                         {interval_head(report), number},
                         {"p (Holm)", number}}};
  std::vector<Difference> differences;
  for (const auto& [metric, values] : scores)
    for (const auto& arm : report.arms) {
      const auto own = values_of(values, arm.name);
      if (own.empty()) continue;
      const auto summary = summarize(own);
      const bool is_compared = arm.name != report.baseline && arm.other_budget.empty();
      const Pairs pairs(own, is_compared ? values_of(values, report.baseline) : ArmValues{});
      const auto& d = differences.emplace_back(pairs.count() > 0 ? pairs.test(report.rules) : Difference{});
      auto& row = table.rows.emplace_back(std::vector<std::string>{
          metric, arm.name, std::to_string(summary.count), digits(summary.mean, 4),
          summary.count > 1 ? digits(summary.sd, 2) : "", d.seeds > 0 ? digits(d.mean, 3) : "", "", ""});
      if (d.seeds < 2) continue;
      const auto interval = deciding_interval(d, {.confidence = report.rules.confidence});
      row[6] = "[" + digits(interval.low, 3) + ", " + digits(interval.high, 3) + "]";
    }
  std::vector<Difference*> tested;
  for (auto& difference : differences) tested.push_back(&difference);
  correct(tested);
  for (size_t i = 0; i < differences.size(); ++i)
    if (differences[i].p_holm) table.rows[i][7] = digits(*differences[i].p_holm, 2);
  return table;
}

}  // namespace cloze

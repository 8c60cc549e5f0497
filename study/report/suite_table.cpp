#include "study/report/report_rows.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "run/records/suite_units.h"
#include "study/statistics/metric.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t max_summary = uint64_t{64} << 20;

/// A figure of a run.
struct AnsweredFigure {
  double value = 0;
  SuiteMetric metric{};
  std::string run{};  ///< its folder
};
using AnswersBySeed = std::map<int64_t, AnsweredFigure>;
/// Of one figure, `blimp accuracy %`: arm -> seed -> value.
using Values = std::map<std::string, AnswersBySeed>;

/// Adds the suites of a run's summary.json.
void add_answers(const RunResult& run, std::map<std::string, Values>& figures) {
  const auto path = run.folder + "/summary.json";
  if (!fs::exists(path)) return;
  const auto summary = parse_json(read_text(path, max_summary));
  require<DataError>(summary.is_object(), path, ": is damaged; resume the run, which writes it again");
  if (!summary.contains("suites")) return;
  for (const auto& [suite, metrics] : summary["suites"].items())
    for (const auto& [metric, figure] : metrics.items())
      if (figure.is_object() && figure.contains("value") && figure["value"].is_number())
        figures[suite + " " + metric_words(metric)][run.arm][run.seed] = {
            .value = in_unit(figure["value"].get<double>(), metric),
            .metric = {.suite = suite, .figure = metric},
            .run = run.folder};
}

/// The answers of an arm and the baseline for the seeds that both have.
std::pair<AnswersBySeed, AnswersBySeed> paired(const AnswersBySeed& arm, const AnswersBySeed& baseline) {
  std::pair<AnswersBySeed, AnswersBySeed> answers;
  for (const auto& [seed, figure] : arm) {
    const auto found = baseline.find(seed);
    if (found == baseline.end()) continue;
    answers.first.emplace(seed, figure);
    answers.second.emplace(*found);
  }
  return answers;
}

/// The values of an arm, by seed.
std::vector<double> values_in(const AnswersBySeed& by_seed) {
  std::vector<double> values;
  for (const auto& [seed, figure] : by_seed) values.push_back(figure.value);
  return values;
}

/// What the items of a suite add to the error of a difference; none where a run of an earlier version lacks its sums.
ExampleError error_of_items(const AnswersBySeed& arm, const AnswersBySeed& baseline) {
  if (arm.size() < 2) return {};
  try {
    std::vector<ExampleLosses> own, others;
    std::vector<const ExampleLosses*> own_at, others_at;
    for (const auto& [seed, figure] : arm) own.push_back(value_of(figure.metric, figure.run, "").examples);
    for (const auto& [seed, figure] : baseline) others.push_back(value_of(figure.metric, figure.run, "").examples);
    for (size_t i = 0; i < own.size(); ++i) {
      own_at.push_back(&own[i]);
      others_at.push_back(&others[i]);
    }
    return example_error(own_at, others_at);
  } catch (const DataError&) {
    return {};
  }
}

/// A row of the table, and the difference that it shows.
struct Compared {
  std::vector<std::string> cells{};
  std::optional<Difference> difference{};
};

Compared compared(const std::string& figure, const ArmReport& arm, const Values& values, const std::string& baseline,
                  const ComparisonRules& rules) {
  const auto& of_arm = values.at(arm.name);
  const auto summary = summarize(values_in(of_arm));
  Compared row{.cells = {figure, arm.name, std::to_string(summary.count), digits(summary.mean, 4),
                         summary.count > 1 ? digits(summary.sd, 2) : "", "", "", ""}};
  if (arm.name == baseline || !arm.other_budget.empty() || !values.contains(baseline)) return row;
  const auto [own, baselines] = paired(of_arm, values.at(baseline));
  if (own.empty()) return row;
  row.difference = paired_t_test(values_in(own), values_in(baselines), rules);
  auto& difference = *row.difference;
  row.cells[5] = digits(difference.mean, 3);
  if (difference.seeds < 2) return row;
  difference.examples = error_of_items(own, baselines);
  const auto error = error_of(difference);
  const double reach = error.reach(1 - rules.confidence);
  difference.p = error.p(difference.mean);
  row.cells[6] = "[" + digits(difference.mean - reach, 3) + ", " + digits(difference.mean + reach, 3) + "]";
  return row;
}

void correct(std::vector<Compared>& rows) {
  std::vector<double> p;
  for (const auto& row : rows)
    if (row.difference && row.difference->p) p.push_back(*row.difference->p);
  const auto corrected = holm(p);
  size_t next = 0;
  for (auto& row : rows)
    if (row.difference && row.difference->p) row.cells[7] = digits(corrected[next++], 2);
}

/// The figures of all runs.
std::map<std::string, Values> answers_of(const StudyReport& report) {
  std::map<std::string, Values> figures;
  for (const auto& arm : report.arms)
    for (const auto& run : arm.runs) add_answers(run, figures);
  return figures;
}

}  // namespace

void add_suite_columns(Table& table, const StudyReport& report) {
  int rank = 0;
  for (const auto& [figure, values] : answers_of(report)) {
    table.header.emplace_back(figure, ColumnKind::number, ++rank);
    for (auto& row : table.rows) {
      const auto of_arm = values.find(row.front());
      const auto summary = of_arm == values.end() ? Summary{} : summarize(values_in(of_arm->second));
      auto cell = summary.count > 0 ? digits(summary.mean, 4) : "";
      if (summary.count > 1) cell += " ± " + digits(summary.sd, 2);
      row.push_back(std::move(cell));
    }
  }
}

std::optional<Table> suite_table(const StudyReport& report) {
  const auto figures = answers_of(report);
  if (figures.empty()) return {};
  std::vector<Compared> rows;
  for (const auto& [figure, values] : figures)
    for (const auto& arm : report.arms)
      if (values.contains(arm.name)) rows.push_back(compared(figure, arm, values, report.baseline, report.rules));
  correct(rows);
  constexpr auto number = ColumnKind::number;
  Table table{.title = "Evaluation suites",
              .header = {"suite",
                         "arm",
                         {"runs", number},
                         {"mean", number},
                         {"sd", number},
                         {"difference", number},
                         {concat(shortest(100 * report.rules.confidence), " % interval"), number},
                         {"p (Holm)", number}}};
  for (auto& row : rows) table.rows.push_back(std::move(row.cells));
  return table;
}

}  // namespace cloze

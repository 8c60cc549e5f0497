#include "study/search/stages.h"

#include <cmath>

#include "core/text.h"

namespace cloze {

namespace {

std::vector<RandomStream> split_streams(const StudyConfig& study) {
  if (!study.vary.empty()) return study.vary;
  std::vector<RandomStream> all;
  for (const auto& choice : choices(RandomStream{})) all.push_back(choice.value);
  return all;
}

std::string split_name(const std::string& arm, RandomStream stream) { return concat(arm, ", ", stream, " alone"); }

/// The finite values of an arm's finished runs.
std::vector<double> values_of(const Plan& plan, const std::string& arm) {
  std::vector<double> values;
  for (const auto& result : finished_results(plan, arm)) values.push_back(result.value);
  return values;
}

}  // namespace

Plan split_plan(const Plan& comparison) {
  Plan plan{.file = comparison.file,
            .root = comparison.root,
            .folder = comparison.folder + "/split",
            .stage = "split",
            .waits_for = comparison.waits_for,
            .study = comparison.study,
            .seeds = {comparison.seeds.begin() + 1, comparison.seeds.end()},
            .compares = false,
            .part = comparison.part,
            .metric = comparison.metric,
            .secondary = comparison.secondary};
  const auto streams = split_streams(plan.study);
  for (const auto& arm : comparison.arms)
    for (const auto stream : streams) {
      auto& one = plan.arms.emplace_back(arm);
      one.name = split_name(arm.name, stream);
    }
  for (const int64_t seed : plan.seeds)
    for (size_t a = 0; a < comparison.arms.size(); ++a)
      for (const auto stream : streams) {
        auto run = comparison.runs[a];  // of the first seed
        run.arm = split_name(comparison.arms[a].name, stream);
        run.seed = seed;
        run.folder = concat(plan.folder, "/runs/", folder_name(comparison.arms[a].name), "/", stream, "/seed-", seed);
        run.config.train.seeds.of(stream) = seed;
        run.fingerprint = fingerprint_of(run.config);
        plan.runs.push_back(std::move(run));
      }
  return plan;
}

namespace {

/// The values of an arm where one stream alone has other seeds.
struct VariedStream {
  RandomStream stream;
  std::vector<double> values;
  double sd() const { return summarize(values).sd; }
};

std::vector<std::string> variance_row(const std::string& arm, const std::string& varied,
                                      const std::vector<double>& values, double confidence,
                                      const std::string& fraction) {
  const auto summary = summarize(values);
  std::vector<std::string> cells{arm, varied, std::to_string(summary.count), "", "", fraction};
  if (summary.count > 1) {
    const auto interval = sd_interval(summary.sd, summary.count, confidence);
    cells[3] = digits(summary.sd, 3);
    cells[4] = "[" + digits(interval.low, 3) + ", " + digits(interval.high, 3) + "]";
  }
  return cells;
}

}  // namespace

Table variance_table(const Plan& comparison, const Plan& split) {
  const double confidence = comparison.study.metric.confidence;
  constexpr auto number = ColumnKind::number;
  Table table{.title = "Where the spread over seeds comes from",
              .header = {"arm",
                         "varied",
                         {"runs", number},
                         {"sd", number},
                         {concat(shortest(100 * confidence), " % interval"), number},
                         {"share", number}}};
  for (const auto& arm : comparison.arms) {
    const auto& first = comparison.runs[static_cast<size_t>(&arm - comparison.arms.data())];
    const auto shared = finished_result(comparison, first);  // has the seed that all share
    table.rows.push_back(variance_row(arm.name, comparison.study.vary.empty() ? "all streams" : "all of these",
                                      values_of(comparison, arm.name), confidence, ""));
    std::vector<VariedStream> parts;
    double sum = 0;
    for (const auto stream : split_streams(comparison.study)) {
      auto& part = parts.emplace_back(stream, values_of(split, split_name(arm.name, stream)));
      if (shared) part.values.insert(part.values.begin(), shared->value);
      sum += part.sd() * part.sd();
    }
    for (const auto& part : parts)
      table.rows.push_back(variance_row(arm.name, name_of(part.stream), part.values, confidence,
                                        sum > 0 ? fixed(100 * part.sd() * part.sd() / sum, 0) + " %" : ""));
    table.rows.push_back({arm.name, "root of the sum", "", digits(std::sqrt(sum), 3), "", ""});
  }
  return table;
}

}  // namespace cloze

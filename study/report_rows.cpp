#include "study/report_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "core/config.h"
#include "core/log.h"
#include "core/text.h"

namespace cloze {

namespace {

std::string p_text(double p) { return p < 0.001 ? "< 0.001" : fixed(p, 3); }

std::string interval_text(const std::optional<Interval>& interval, int decimals) {
  if (!interval) return "";
  return "[" + fixed(interval->low, decimals, true) + ", " + fixed(interval->high, decimals, true) + "]";
}

std::string level_of(const StudyReport& report) { return shortest(100 * report.rules.confidence) + " %"; }

/// The values of something that runs have, each once, in the order in which they come.
template <class Get>
std::vector<std::string> distinct(const StudyReport& report, const Get& get) {
  std::vector<std::string> values;
  for (const auto& run : report.runs) {
    const std::string value = get(run);
    if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

std::string direction_of(const StudyReport& report) {
  return report.rules.higher_is_better ? "higher is better" : "lower is better";
}

}  // namespace

std::string fixed(double value, int decimals, bool sign) {
  char text[64];
  std::snprintf(text, sizeof text, sign ? "%+.*f" : "%.*f", decimals, value);
  return text;
}

int decimals_of(const StudyReport& report) {
  double spread = INFINITY;
  for (const auto& arm : report.arms)
    if (arm.summary.sd > 0) spread = std::min(spread, arm.summary.sd);
  return std::isfinite(spread) ? std::clamp(1 - static_cast<int>(std::floor(std::log10(spread))), 2, 6) : 4;
}

ReportRow row_heads(const StudyReport& report) {
  const auto level = level_of(report);
  return {.arm = "arm",
          .runs = "runs",
          .value = "mean ± sd",
          .difference = "difference",
          .interval = level + " interval",
          .bootstrap = level + " bootstrap",
          .p = "p (Holm)",
          .effect = "Hedges' g",
          .equivalence = "p (equivalence)",
          .verdict = "verdict"};
}

std::vector<ReportRow> rows_of(const StudyReport& report) {
  const int decimals = decimals_of(report);
  std::vector<ReportRow> rows;
  for (const auto& arm : report.arms) {
    const auto& d = arm.difference;
    ReportRow row{.arm = in_one_line(arm.name), .runs = std::to_string(arm.runs.size()), .verdict = arm.verdict};
    if (!arm.runs.empty()) {
      row.value = fixed(arm.summary.mean, decimals);
      if (arm.runs.size() > 1) row.value += " ± " + fixed(arm.summary.sd, decimals);
    }
    if (arm.is_baseline) row.verdict = "baseline";
    if (!arm.is_baseline && d.seeds > 0) row.difference = fixed(d.mean, decimals, true);
    row.interval = interval_text(d.t_interval, decimals);
    row.bootstrap = interval_text(d.bootstrap_interval, decimals);
    if (d.p_holm) row.p = p_text(*d.p_holm);
    if (d.effect_size) row.effect = fixed(*d.effect_size, 2, true);
    if (d.p_equivalence) row.equivalence = p_text(*d.p_equivalence);
    rows.push_back(row);
  }
  return rows;
}

std::string question_of(const StudyReport& report) {
  std::vector<std::string> others;
  for (const auto& arm : report.arms)
    if (!arm.is_baseline) others.push_back(arm.name);
  const std::string verb = report.rules.higher_is_better ? "raise" : "lower";
  const auto loss = words("the held-out ", report.metric, " loss");
  if (report.arms.empty()) return words("Which trial has the lowest held-out ", report.metric, " loss?");
  if (others.empty()) return words("What is ", loss, " of ", in_one_line(report.baseline), "?");
  if (others.size() <= 3)
    return words("Does ", in_one_line(listed(others, "or")), " ", verb, " ", loss, " of ", in_one_line(report.baseline),
                 "?");
  return words("Which of ", others.size(), " arms ", verb, " ", loss, " of ", in_one_line(report.baseline), "?");
}

std::vector<std::pair<std::string, std::string>> facts_of(const StudyReport& report) {
  std::set<int64_t> seeds;
  int64_t done = 0;
  for (const auto& run : report.runs) {
    seeds.insert(run.result.seed);
    done += run.state == RunState::done;
  }
  const auto budgets = distinct(report, [](const ReportedRun& run) { return run.budget; });
  std::vector<std::pair<std::string, std::string>> facts{
      {"metric", words("held-out ", report.metric, " loss in ", report.unit, ", ", direction_of(report))},
      {"baseline", in_one_line(report.baseline)},
      {"arms", std::to_string(report.arms.size())},
      {"seeds", words(seeds.size(), seeds.size() > 1 ? ", paired" : "")}};
  if (!budgets.empty()) facts.emplace_back("budget", in_one_line(listed(budgets, "or")) + " a run");
  if (report.rules.margin > 0)
    facts.emplace_back("margin", words("differences of ", shortest(report.rules.margin), " ", report.unit, " matter"));
  facts.emplace_back("runs", words(done, " of ", report.runs.size(), " finished"));
  return facts;
}

std::vector<std::string> tied_words(const StudyReport& report) {
  std::vector<std::string> sentences;
  for (const auto& set : report.tied) sentences.push_back("not told apart: " + in_one_line(listed(set, "and")));
  return sentences;
}

std::vector<std::string> methods_of(const StudyReport& report) {
  const auto& rules = report.rules;
  const auto level = level_of(report);
  std::vector<std::string> sentences{
      "Mean and standard deviation (n − 1) are over the finished runs of an arm, one for each seed.",
      words("A difference is arm minus baseline over the seeds that both have. Its ", level,
            " interval and p are those of the two-sided paired t test (Student 1908)."),
      words("The bootstrap interval draws seeds and held-out examples anew, ", rules.resamples, " times, seed ",
            rules.seed,
            " (Sellam et al. 2022, arXiv 2106.16163, procedure 1), with expanded percentiles for few seeds ",
            "(Hesterberg 2015, arXiv 1411.5279, section 4.1.2)."),
      "p is corrected for the number of arms by Holm's method (Holm 1979). Hedges' g is the mean difference in "
      "standard "
      "deviations of paired differences, corrected for few seeds (Hedges 1981).",
      words("Better or worse: the corrected p is below ", shortest(1 - rules.confidence),
            " and the bootstrap interval does not contain 0."),
      rules.margin > 0
          ? words("Tied: two one-sided t tests (Schuirmann 1987) reject a difference of ", shortest(rules.margin), " ",
                  report.unit, " or more. Cannot be told: neither; the stated numbers of seeds have a power of ",
                  shortest(rules.power), ".")
          : words("No margin was stated, so that no test of equivalence was made. Detectable differences have a power "
                  "of ",
                  shortest(rules.power), "."),
      "Sets of arms that are not told apart: no pair of arms in a set differs by the paired t test, corrected by "
      "Holm's "
      "method over all pairs.",
      "A run is an outlier of its arm when Grubbs' test (1969) rejects at 1 % that it is one of the others."};
  if (!report.declaration.empty())
    sentences.push_back(
        words("Metric, margin, baseline, seeds, budget and arms as declared: XXH3 ", report.declaration, "."));
  for (const auto& made_by : distinct(report, [](const ReportedRun& run) { return run.made_by; }))
    sentences.push_back(words("Runs were made by ", in_one_line(made_by), "."));
  sentences.push_back(words("This report was made by cloze ", CLOZE_VERSION, "."));
  return sentences;
}

RunUsage usage_of(const RunResult& run) {
  return {.steps = static_cast<double>(run.step),
          .tokens = static_cast<double>(run.tokens),
          .predicted_tokens = static_cast<double>(run.predicted_tokens),
          .words = run.words,
          .epochs = run.epochs,
          .seconds = run.seconds,
          .flops = run.flops};
}

RunUsage mean_usage(const ArmReport& arm) {
  RunUsage mean;
  for (const auto field : {&RunUsage::steps, &RunUsage::tokens, &RunUsage::predicted_tokens, &RunUsage::words,
                           &RunUsage::epochs, &RunUsage::seconds, &RunUsage::flops}) {
    for (const auto& run : arm.runs) mean.*field += usage_of(run).*field;
    mean.*field /= static_cast<double>(arm.runs.size());
  }
  return mean;
}

Table usage_table(const StudyReport& report) {
  const auto short_number = [](double value) { return with_prefix(value); };
  struct Column {
    const char* name;
    double RunUsage::* field;
    std::string (*text)(double);
  };
  const std::vector<Column> columns{{"time", &RunUsage::seconds, duration},
                                    {"FLOPs", &RunUsage::flops, short_number},
                                    {"tokens", &RunUsage::tokens, short_number},
                                    {"steps", &RunUsage::steps, short_number},
                                    {"predicted", &RunUsage::predicted_tokens, short_number},
                                    {"words", &RunUsage::words, short_number},
                                    {"epochs", &RunUsage::epochs, short_number}};
  Table table{.title = "What a run used up, mean of each arm", .header = {"arm"}};
  for (const auto& arm : report.arms)
    if (!arm.runs.empty()) table.rows.push_back({in_one_line(arm.name)});
  for (const auto& [name, field, text] : columns) {
    std::vector<std::string> cells;
    bool known = false;
    for (const auto& arm : report.arms) {
      if (arm.runs.empty()) continue;
      const double used = mean_usage(arm).*field;
      known = known || used > 0;
      cells.push_back(used > 0 ? text(used) : "");
    }
    if (!known) continue;
    table.header.emplace_back(name);
    for (size_t i = 0; i < cells.size(); ++i) table.rows[i].push_back(cells[i]);
  }
  if (table.header.size() == 1) table.rows.clear();
  return table;
}

}  // namespace cloze

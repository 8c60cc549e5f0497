#include "study/report/report_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/config/config.h"
#include "core/contains.h"
#include "core/log.h"
#include "core/text.h"

namespace cloze {

namespace {

std::string p_text(double p) { return p < 0.001 ? "< 0.001" : fixed(p, 3); }

std::string level_of(const StudyReport& report) { return shortest(100 * report.rules.confidence) + " %"; }

constexpr auto numeric = ColumnKind::number;

/// The values of something that runs have, each once, in the order in which they come.
template <class Get>
std::vector<std::string> distinct(const StudyReport& report, const Get& get) {
  std::vector<std::string> values;
  for (const auto& run : report.runs) {
    const std::string value = get(run);
    if (!value.empty() && !contains(values, value)) values.push_back(value);
  }
  return values;
}

/// Whether an arm has a run of a seed that the baseline has, too, and a second such pair.
bool is_paired(const StudyReport& report) {
  return std::ranges::any_of(report.arms, [](const ArmReport& arm) { return arm.difference.seeds > 1; });
}

/// The short mark of a verdict in a table of a paper.
const char* mark_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::better:
      return "B";
    case Verdict::worse:
      return "W";
    case Verdict::smaller:
    case Verdict::tied:
      return "T";
    case Verdict::held_back:
      return "H";
    case Verdict::undecided:
    case Verdict::single_seed:
      break;
  }
  return "?";
}

/// Decimals that show two digits of a spread.
int decimals_for(double spread) {
  return std::isfinite(spread) ? std::clamp(1 - static_cast<int>(std::floor(std::log10(spread))), 2, 6) : 4;
}

std::string direction_of(const StudyReport& report) {
  return report.rules.higher_is_better ? "higher is better" : "lower is better";
}

}  // namespace

int decimals_of(const StudyReport& report) {
  double spread = INFINITY;
  for (const auto& arm : report.arms)
    if (arm.summary.sd > 0) spread = std::min(spread, arm.summary.sd);
  return decimals_for(spread);
}

std::string metric_title(const StudyReport& report) {
  if (std::holds_alternative<LossMetric>(report.by)) return concat("held-out ", report.metric, " loss");
  const auto* task = std::get_if<TaskMetric>(&report.by);
  return task && !task->name.empty() ? concat(report.metric, " ", task->name) : report.metric;
}

std::string in_brackets(const std::string& unit) { return unit.empty() ? "" : concat(" [", unit, "]"); }

std::string curve_title(const StudyReport& report, const std::string& of) {
  if (!std::holds_alternative<TaskMetric>(report.by)) return metric_title(report);
  return of.empty() ? "held-out loss" : "held-out loss of " + of;
}

std::string curve_unit(const StudyReport& report) {
  return in_brackets(traits_of(report.by).has_curve_in_unit ? report.unit : "nats");
}

std::string interval_head(const StudyReport& report) { return level_of(report) + " interval"; }

std::string at_once_words(const StudyReport& report) {
  return report.rules.arms > 1 ? concat(", simultaneous over ", report.rules.arms, " comparisons") : "";
}

std::string mean_text(const StudyReport& report, const ArmReport& arm) {
  return arm.runs.empty() ? "" : to_text(arm.summary, decimals_of(report));
}

std::vector<NamedFloor> floors_of(const StudyReport& report) {
  std::vector<NamedFloor> floors;
  if (report.floor > 0) floors.push_back({traits_of(report.by).floor, report.floor});
  std::ranges::copy(report.other_floors, std::back_inserter(floors));
  return floors;
}

Table verdict_table(const StudyReport& report) {
  Table table{.header = {"arm",
                         {"runs", numeric, 5},
                         {"mean ± sd", numeric, 3},
                         {"difference", numeric},
                         {interval_head(report), numeric, 2},
                         {report.rules.arms > 1 ? "p (corrected)" : "p", numeric, 4},
                         {"Hedges' g", numeric, 7},
                         {"verdict", ColumnKind::sentence, 6}}};
  const int decimals = decimals_of(report);
  for (const auto& arm : report.arms) {
    const auto& d = arm.difference;
    table.rows.push_back({in_one_line(arm.name), std::to_string(arm.runs.size()), mean_text(report, arm),
                          !arm.is_baseline && d.seeds > 0 ? fixed(d.mean, decimals, true) : "",
                          to_text(d.interval, decimals), d.p_corrected ? p_text(*d.p_corrected) : "",
                          d.effect_size ? fixed(*d.effect_size, 2, true) : "",
                          arm.is_baseline ? "baseline" : arm.verdict});
  }
  for (const auto& floor : floors_of(report))
    table.rows.push_back({floor.name, "", fixed(floor.value, decimals), "", "", "", "", "floor"});
  return table;
}

Table paper_table(const StudyReport& report) {
  Table table{.header = {"arm", {"mean ± sd", numeric}, {"difference", numeric}, {interval_head(report), numeric}, ""}};
  const int decimals = decimals_of(report);
  std::set<std::string> used;
  for (const auto& arm : report.arms) {
    const auto& d = arm.difference;
    const auto mark = arm.is_baseline || d.seeds == 0 ? "" : mark_of(d.verdict);
    used.insert(mark);
    table.rows.push_back({in_one_line(arm.name), mean_text(report, arm),
                          !arm.is_baseline && d.seeds > 0 ? fixed(d.mean, decimals, true) : "",
                          to_text(d.interval, decimals), mark});
  }
  for (const auto& floor : floors_of(report))
    table.rows.push_back({floor.name, fixed(floor.value, decimals), "", "", ""});
  std::string facts, legend;
  for (const auto& [name, value] : report_settings(report))
    if (name != "arms" && name != "baseline" && name != "runs")
      facts += name == "metric" ? value : concat("; ", name == "margin" ? "" : name + ": ", value);
  facts[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(facts[0])));
  for (const auto& [mark, meaning] : {std::pair{"B", "better"},
                                      {"W", "worse"},
                                      {"T", "tied"},
                                      {"H", "held back, for one arm lost more of its runs"},
                                      {"?", "not told apart"}})
    if (used.contains(mark)) legend += concat(legend.empty() ? " " : ", ", mark, " ", meaning);
  if (!report.finetuning.empty()) facts += ". " + in_one_line(report.finetuning);
  table.caption =
      concat(facts, ". Differences are to ", in_one_line(report.baseline), ", paired by seed, with the ",
             interval_head(report), at_once_words(report),
             ". It joins Student's over seeds with that over held-out examples.", legend, legend.empty() ? "" : ".");
  return table;
}

std::vector<Table> secondary_tables(const StudyReport& report) {
  std::vector<Table> tables;
  for (size_t i = 0; i < report.secondary.size(); ++i) {
    const auto facts = traits_of(report.secondary[i]);
    auto& table = tables.emplace_back(Table{.title = concat("Secondary: ", facts.title, in_brackets(facts.unit), ", ",
                                                            facts.higher_is_better ? "higher" : "lower", " is better"),
                                            .header = {"arm",
                                                       {"runs", numeric, 5},
                                                       {"mean ± sd", numeric, 3},
                                                       {"difference", numeric},
                                                       {interval_head(report), numeric, 2},
                                                       {"p (Holm)", numeric, 4}}});
    double spread = INFINITY, floor = 0;
    for (const auto& arm : report.arms) {
      const auto& score = arm.secondary[i];
      if (score.summary.sd > 0) spread = std::min(spread, score.summary.sd);
      floor = std::max(floor, score.floor);
    }
    const int decimals = decimals_for(spread);
    for (const auto& arm : report.arms) {
      const auto& score = arm.secondary[i];
      const auto& summary = score.summary;
      const auto& d = score.difference;
      table.rows.push_back({in_one_line(arm.name), std::to_string(summary.count), to_text(summary, decimals),
                            d.seeds > 0 ? fixed(d.mean, decimals, true) : "", to_text(d.interval, decimals),
                            d.p_holm ? p_text(*d.p_holm) : ""});
    }
    std::vector<NamedFloor> floors;
    if (floor > 0) floors.push_back({facts.floor, floor});
    if (i < report.secondary_floors.size()) std::ranges::copy(report.secondary_floors[i], std::back_inserter(floors));
    for (const auto& one : floors) table.rows.push_back({one.name, "", fixed(one.value, decimals), "", "", ""});
  }
  return tables;
}

Table run_table(const StudyReport& report) {
  Table table{.header = {"arm",
                         {"seed", numeric},
                         "state",
                         {concat(report.metric, in_brackets(report.unit)), numeric},
                         {"steps", numeric},
                         {"tokens", numeric},
                         {"time", numeric},
                         {"FLOPs", numeric},
                         {"folder", ColumnKind::code}}};
  const auto count = [](double n) { return n > 0 ? thousands(static_cast<uint64_t>(n)) : ""; };
  for (const auto& arm : report.arms)
    for (const auto& run : report.runs) {
      const auto& result = run.result;
      if (result.arm != arm.name) continue;
      auto& row = table.rows.emplace_back(std::vector<std::string>(table.header.size()));
      row[0] = in_one_line(result.arm);
      row[1] = std::to_string(result.seed);
      row[2] = run.outlying ? "outlier" : name_of(run.state);
      row[8] = result.folder;
      if (run.state != RunState::done) continue;
      row[3] = fixed(result.value, decimals_of(report));
      row[4] = thousands(static_cast<uint64_t>(result.step));
      row[5] = count(result.tokens);
      row[6] = result.seconds > 0 ? duration(result.seconds) : "";
      row[7] = result.flops > 0 ? with_prefix(result.flops) : "";
    }
  drop_empty_columns(table);
  return table;
}

Table key_table(const StudyReport& report) {
  Table table{.header = {"arm", {"keys", ColumnKind::code}}};
  for (const auto& arm : report.arms) {
    std::string keys;
    for (const auto& key : arm.differs) keys += (keys.empty() ? "" : "\n") + in_one_line(key);
    table.rows.push_back({in_one_line(arm.name), keys.empty() ? "the base as it is" : keys});
  }
  return table;
}

std::string question_of(const StudyReport& report) {
  std::vector<std::string> others;
  for (const auto& arm : report.arms)
    if (!arm.is_baseline) others.push_back(arm.name);
  const std::string verb = report.rules.higher_is_better ? "raise" : "lower";
  const auto loss = concat("the ", metric_title(report));
  if (report.arms.empty())
    return concat("Which trial has the ", report.rules.higher_is_better ? "highest " : "lowest ", metric_title(report),
                  "?");
  if (others.empty()) return concat("What is ", loss, " of ", in_one_line(report.baseline), "?");
  if (others.size() <= 3)
    return concat("Does ", in_one_line(listed(others, "or")), " ", verb, " ", loss, " of ",
                  in_one_line(report.baseline), "?");
  return concat("Which of ", others.size(), " arms ", verb, " ", loss, " of ", in_one_line(report.baseline), "?");
}

std::vector<std::pair<std::string, std::string>> report_settings(const StudyReport& report) {
  std::set<int64_t> seeds;
  int64_t done = 0;
  for (const auto& run : report.runs) {
    seeds.insert(run.result.seed);
    done += run.state == RunState::done;
  }
  const auto budgets = distinct(report, [](const ReportedRun& run) { return run.budget; });
  std::vector<std::pair<std::string, std::string>> facts{
      {"metric",
       concat(metric_title(report), report.unit.empty() ? "" : " in " + report.unit, ", ", direction_of(report))},
      {"baseline", in_one_line(report.baseline)},
      {"arms", std::to_string(report.arms.size())},
      {"seeds", concat(seeds.size(), is_paired(report) ? ", paired" : "")}};
  if (!budgets.empty()) facts.emplace_back("budget", in_one_line(listed(budgets, "or")) + " a run");
  if (report.rules.margin > 0)
    facts.emplace_back("margin", concat("differences of ", with_unit(report.rules.margin, report.unit), " matter"));
  facts.emplace_back("runs", concat(done, " of ", report.runs.size(), " finished"));
  if (const auto failed = failed_words(report); !failed.empty()) facts.emplace_back("failed runs", failed);
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
      concat("A difference is arm minus baseline over the seeds that both have. Its ", level, " interval",
             at_once_words(report),
             ", joins Student's interval over seeds (Student 1908) and that over held-out examples, as the root of the "
             "sum of their squares (Banerjee 1960). The variance of examples is a jackknife over the documents, "
             "paradigms or texts that they are from, without its interaction with seeds, with degrees of freedom by "
             "the effective number of these (Kish 1965)."),
      "Where an arm loses more of its runs than another, those that are left are the better ones: verdicts in its "
      "favour, and ties, are held back.",
      concat("The interval decides. Better or worse: it does not contain 0. ",
             rules.margin > 0 ? concat("Tied: it lies within ", with_unit(rules.margin, report.unit),
                                       " of 0. Inconclusive: neither. ")
                              : "No margin was stated, so that no arms can be tied. ",
             "Detectable differences and numbers of seeds have a power of ", shortest(rules.power),
             " under this rule; both are ranges, over the 80 % interval of the standard deviation."),
      concat(rules.arms > 1 ? concat("Intervals and p are corrected for ", rules.arms, " arms (Bonferroni). ") : "",
             "Hedges' g is the mean difference in standard deviations of paired differences, corrected for few seeds "
             "(Hedges 1981)."),
      "Sets of arms that are not told apart: the verdict tells none of a set from the baseline, and no pair of the "
      "others differs after Holm's correction over these pairs (Holm 1979).",
      "A run is an outlier of its arm when Grubbs' test (1969) rejects at 1 % that it is one of the others."};
  if (!report.secondary.empty())
    sentences.emplace_back(
        "Secondary metrics decide nothing. Their intervals are of each difference alone; their p are corrected by "
        "Holm's method over all of them and all arms (Holm 1979).");
  if (!report.declaration.empty())
    sentences.push_back(
        concat("Metric, margin, baseline, seeds, budget and arms as declared: XXH3 ", report.declaration, "."));
  for (const auto& made_by : distinct(report, [](const ReportedRun& run) { return run.provenance.made_by; }))
    sentences.push_back(concat("Runs were made by ", in_one_line(made_by), "."));
  sentences.push_back(concat("This report was made by cloze ", CLOZE_VERSION, "."));
  return sentences;
}

Usage mean_usage(const ArmReport& arm) {
  Usage sum;
  for (const auto& run : arm.runs) sum += run;
  return sum / static_cast<double>(arm.runs.size());
}

Table usage_table(const StudyReport& report) {
  Table table{.header = {"arm"}};
  for (const auto* currency : {"time", "FLOPs", "tokens", "steps", "predicted", "words", "epochs"})
    table.header.emplace_back(currency, numeric, static_cast<int>(table.header.size()) - 1);
  for (const auto& arm : report.arms) {
    if (arm.runs.empty()) continue;
    const auto used = mean_usage(arm);
    auto& row =
        table.rows.emplace_back(std::vector{in_one_line(arm.name), used.seconds > 0 ? duration(used.seconds) : ""});
    for (const double value : {used.flops, used.tokens, used.step, used.predicted_tokens, used.words, used.epochs})
      row.push_back(value > 0 ? with_prefix(value) : "");
  }
  drop_empty_columns(table);
  if (table.header.size() == 1) table.rows.clear();
  return table;
}

}  // namespace cloze

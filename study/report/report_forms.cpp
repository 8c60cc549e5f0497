// The forms of a report that people read.
#include <map>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "study/report/report_rows.h"

namespace cloze {

namespace {

using nlohmann::json;

/// All parts of a report; those of a page have charts.
Report document_of(const StudyReport& study, bool has_charts) {
  Report report{.title = study.name,
                .question = question_of(study),
                .kicker = study.source.empty() ? "Comparison of runs" : "Study"};
  const auto of_tables = [&] {
    for (const auto& table : study.tables) {
      auto& part = report.parts.emplace_back(ReportPart{.heading = table.title, .tables = {table}});
      part.tables[0].title.clear();
    }
  };
  const ReportPart notes{.heading = "Notes", .sentences = study.notes};
  if (study.arms.empty()) {  // a search has trials alone
    of_tables();
    report.parts.push_back(notes);
    return report;
  }
  const auto chart = [&](std::string (*draw)(const StudyReport&)) { return has_charts ? draw(study) : ""; };
  report.facts = report_settings(study);
  report.parts = {{.heading = "Verdicts",
                   .tables = {verdict_table(study)},
                   .sentences = tied_words(study),
                   .chart = chart(interval_chart)},
                  notes};
  of_tables();
  report.parts.push_back({.heading = "Along training", .chart = chart(curve_chart), .shown = Shown::pages});
  report.parts.push_back({.heading = "Runs",
                          .tables = {run_table(study)},
                          .chart = chart(value_chart),
                          .shown = Shown::pages,
                          .is_tall = true});
  auto& usage = report.parts.emplace_back(ReportPart{.heading = "What a run used up, mean of each arm"});
  if (auto table = usage_table(study); !table.rows.empty()) usage.tables = {std::move(table)};
  report.parts.push_back(
      {.heading = "What the arms differ in", .tables = {key_table(study)}, .shown = Shown::documents});
  report.parts.push_back({.heading = "Every run again, in the working directory of the runs",
                          .commands = study.commands,
                          .shown = Shown::documents});
  report.parts.push_back({.heading = "How it was computed", .sentences = methods_of(study), .shown = Shown::pages});
  return report;
}

std::string number(double value) { return digits(value, 17); }
template <class T>
std::string number(const std::optional<T>& value) {
  return value ? number(static_cast<double>(*value)) : "";
}

json interval_json(const std::optional<Interval>& interval) {
  return interval ? json{interval->low, interval->high} : json();
}
template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json json_of_known(double value, bool is_known) { return is_known ? json(value) : json(); }

/// The cells of a line of the CSV that its kind has, by their columns.
using Line = std::map<std::string, std::string>;

const std::string columns =
    "kind,arm,seed,state,value,mean,sd,difference,difference_sd,seeds,failed,examples,clusters,items,"
    "example_error,example_freedom,t_low,t_high,low,high,p,p_corrected,p_holm,p_equivalence,effect_size,"
    "detectable,detectable_low,detectable_high,seeds_needed,seeds_low,seeds_high,step,tokens,"
    "predicted_tokens,words,epochs,seconds,flops,verdict,run,note";

std::string csv_line(const Line& line) {
  std::string text;
  for (const auto& column : separated(columns, ",")) {
    const auto cell = line.find(column);
    text += (text.empty() ? "" : ",") + (cell == line.end() ? "" : escaped_csv(cell->second));
  }
  return text + "\n";
}

void add(Line& line, const char* low, const char* high, const std::optional<Interval>& interval) {
  if (!interval) return;
  line[low] = number(interval->low);
  line[high] = number(interval->high);
}

/// A line of a point of a curve, without its loss.
Line point_line(const char* kind, const std::string& arm, const CurvePoint& at) {
  return {{"kind", kind},
          {"arm", arm},
          {"step", number(at.step)},
          {"tokens", number(at.tokens)},
          {"seconds", number(at.seconds)},
          {"flops", number(at.flops)},
          {"note", at.of}};
}

std::string setting_lines(const StudyReport& report) {
  const auto& rules = report.rules;
  std::string text;
  for (const auto& [name, value] : {std::pair{"margin", rules.margin},
                                    {"confidence", rules.confidence},
                                    {"power", rules.power},
                                    {"arms", static_cast<double>(rules.arms)}})
    text += csv_line({{"kind", "setting"}, {"value", number(value)}, {"note", name}});
  return text + csv_line({{"kind", "setting"}, {"note", "metric " + report.metric + in_brackets(report.unit)}});
}

void add_usage(Line& line, const Usage& used) {
  for (const auto& [name, value] : {std::pair{"step", used.step},
                                    {"tokens", used.tokens},
                                    {"predicted_tokens", used.predicted_tokens},
                                    {"words", used.words},
                                    {"epochs", used.epochs},
                                    {"seconds", used.seconds},
                                    {"flops", used.flops}})
    line[name] = number(value);
}

void add_mean(Line& line, const Summary& summary) {
  if (summary.count > 0) line["mean"] = number(summary.mean);
  if (summary.count > 1) line["sd"] = number(summary.sd);
}

/// What a difference is, what its deciding interval is computed from, and its p.
void add_difference(Line& line, const Difference& d) {
  add(line, "low", "high", d.interval);
  line["p"] = number(d.p);
  line["p_holm"] = number(d.p_holm);
  if (d.seeds == 0) return;
  line["difference"] = number(d.mean);
  line["seeds"] = std::to_string(d.seeds);
  if (d.seeds > 1) line["difference_sd"] = number(d.sd);
  if (d.examples.count == 0) return;
  line["examples"] = std::to_string(d.examples.count);
  line["clusters"] = std::to_string(d.examples.clusters);
  line["items"] = std::to_string(d.examples.items);
  line["example_error"] = number(d.examples.error);
  line["example_freedom"] = number(d.examples.freedom);
}

Line arm_line(const ArmReport& arm) {
  const auto& d = arm.difference;
  Line line{{"kind", "arm"},
            {"arm", arm.name},
            {"failed", std::to_string(arm.failed.size())},
            {"p_corrected", number(d.p_corrected)},
            {"p_equivalence", number(d.p_equivalence)},
            {"effect_size", number(d.effect_size)},
            {"detectable", number(d.detectable)},
            {"seeds_needed", number(d.seeds_needed)},
            {"seeds_low", number(d.seeds_range.low)},
            {"seeds_high", number(d.seeds_range.high)},
            {"verdict", arm.verdict}};
  add_mean(line, arm.summary);
  if (!arm.runs.empty()) add_usage(line, mean_usage(arm));
  add_difference(line, d);
  add(line, "t_low", "t_high", d.t_interval);
  add(line, "detectable_low", "detectable_high", d.detectable_range);
  for (const auto& key : arm.differs) line["note"] += (line["note"].empty() ? "" : "; ") + key;
  return line;
}

std::string secondary_lines(const StudyReport& report) {
  std::string text;
  for (const auto& arm : report.arms)
    for (size_t i = 0; i < arm.secondary.size(); ++i) {
      Line line{{"kind", "secondary"}, {"arm", arm.name}, {"note", traits_of(report.secondary[i]).name}};
      add_mean(line, arm.secondary[i].summary);
      add_difference(line, arm.secondary[i].difference);
      text += csv_line(line);
    }
  return text;
}

std::string pair_lines(const StudyReport& report) {
  std::string text;
  for (const auto& [first, second, difference] : report.pairs) {
    Line line{{"kind", "pair"}, {"arm", first}, {"note", second}};
    add_difference(line, difference);
    text += csv_line(line);
  }
  return text;
}

json secondary_json(const StudyReport& report, const ArmReport& arm) {
  json all = json::array();
  for (size_t i = 0; i < arm.secondary.size(); ++i) {
    const auto& summary = arm.secondary[i].summary;
    const auto& d = arm.secondary[i].difference;
    const auto facts = traits_of(report.secondary[i]);
    json one{{"metric", facts.name},
             {"unit", facts.unit},
             {"mean", json_of_known(summary.mean, summary.count > 0)},
             {"sd", json_of_known(summary.sd, summary.count > 1)}};
    if (!arm.is_baseline) one["difference"] = parts_json(d);
    all.push_back(one);
  }
  return all;
}

json difference_json(const ArmReport& arm) {
  const auto& d = arm.difference;
  auto all = parts_json(d);
  all.update({{"t_interval", interval_json(d.t_interval)},
              {"bootstrap_interval", nullptr},
              {"p_corrected", optional_json(d.p_corrected)},
              {"p_equivalence", optional_json(d.p_equivalence)},
              {"effect_size", optional_json(d.effect_size)},
              {"detectable", optional_json(d.detectable)},
              {"detectable_range", interval_json(d.detectable_range)},
              {"seeds_needed", optional_json(d.seeds_needed)},
              {"seeds_range", {optional_json(d.seeds_range.low), optional_json(d.seeds_range.high)}},
              {"verdict", arm.verdict}});
  return all;
}

Line run_line(const ReportedRun& run) {
  const auto& result = run.result;
  Line line{{"kind", "run"},
            {"arm", result.arm},
            {"seed", std::to_string(result.seed)},
            {"state", name_of(run.state)},
            {"run", result.folder},
            {"note", run.outlying ? "outlier" : run.message}};
  if (run.state != RunState::done) return line;
  line["value"] = number(result.value);
  add_usage(line, result);
  return line;
}

/// `has_unit`: curves are in the unit of the metric.
std::string curve_lines(const ArmReport& arm, bool has_unit) {
  std::string text;
  for (size_t i = 0; i < arm.curve.mean.size(); ++i) {
    auto line = point_line("mean_curve", arm.name, arm.curve.mean[i]);
    line["mean"] = number(arm.curve.mean[i].loss);
    line["sd"] = number(arm.curve.sd[i]);
    text += csv_line(line);
  }
  if (!has_unit) return text;  // curves are in nats by token
  const auto& differences = arm.difference_curve;
  for (size_t i = 0; i < differences.mean.size(); ++i) {
    auto line = point_line("difference_curve", arm.name, differences.mean[i]);
    line["difference"] = number(differences.mean[i].loss);
    if (!differences.t_interval.empty()) add(line, "t_low", "t_high", differences.t_interval[i]);
    text += csv_line(line);
  }
  return text;
}

}  // namespace

std::string to_text(const StudyReport& report, int64_t columns) { return to_text(document_of(report, false), columns); }

std::string to_markdown(const StudyReport& report) { return to_markdown(document_of(report, false)); }

std::string to_latex(const StudyReport& report) {
  auto text = report.arms.empty() ? "" : to_latex(paper_table(report));
  for (const auto& table : report.tables) text += (text.empty() ? "" : "\n") + to_latex(table);
  auto notes = tied_words(report);
  notes.insert(notes.end(), report.notes.begin(), report.notes.end());
  return text + to_latex(notes);
}

std::string to_html(const StudyReport& report) { return to_html(document_of(report, true)); }

json parts_json(const Difference& d) {
  const auto& [error, freedom, count, clusters, items] = d.examples;
  return {{"mean", json_of_known(d.mean, d.seeds > 0)},
          {"sd", json_of_known(d.sd, d.seeds > 1)},
          {"seeds", d.seeds},
          {"interval", interval_json(d.interval)},
          {"examples",
           {{"error", error}, {"freedom", freedom}, {"count", count}, {"clusters", clusters}, {"items", items}}},
          {"p", optional_json(d.p)},
          {"p_holm", optional_json(d.p_holm)}};
}

std::string to_csv(const StudyReport& report) {
  auto text = columns + "\n";
  for (const auto& arm : report.arms) text += csv_line(arm_line(arm));
  for (const auto& run : report.runs) text += csv_line(run_line(run));
  text += secondary_lines(report) + pair_lines(report);
  for (const auto& floor : floors_of(report))
    text += csv_line({{"kind", "floor"}, {"mean", number(floor.value)}, {"note", floor.name}});
  text += setting_lines(report);
  for (const auto& arm : report.arms) text += curve_lines(arm, traits_of(report.by).has_curve_in_unit);
  for (const auto& run : report.runs)
    for (const auto& point : run.curve) {
      auto line = point_line("curve", run.result.arm, point);
      line["seed"] = std::to_string(run.result.seed);
      line["value"] = number(point.loss);
      text += csv_line(line);
    }
  for (const auto& table : report.tables)
    for (const auto& row : table.rows) {
      std::string note;
      for (size_t i = 0; i < row.size(); ++i) note += concat(i == 0 ? "" : "; ", table.header[i].name, ": ", row[i]);
      text += csv_line({{"kind", "table"}, {"arm", table.title}, {"note", note}});
    }
  for (const auto& set : tied_words(report)) text += csv_line({{"kind", "tied"}, {"note", set}});
  for (const auto& note : report.notes) text += csv_line({{"kind", "note"}, {"note", note}});
  return text;
}

json to_json(const StudyReport& report) {
  json arms = json::array();
  for (const auto& arm : report.arms) {
    json runs = json::array();
    for (const auto& run : arm.runs) {
      runs.push_back({{"seed", run.seed}, {"value", run.value}, {"run", run.folder}});
      for (const auto& value : run.secondary) runs.back()["secondary"].push_back(value.value);
    }
    json one{{"name", arm.name},
             {"runs", runs},
             {"failed", arm.failed},
             {"mean", json_of_known(arm.summary.mean, !arm.runs.empty())},
             {"sd", json_of_known(arm.summary.sd, arm.runs.size() > 1)}};
    if (!arm.is_baseline) one["difference"] = difference_json(arm);
    if (!arm.secondary.empty()) one["secondary"] = secondary_json(report, arm);
    arms.push_back(one);
  }
  const auto known_floor =
      report.floor > 0 ? json{{"name", traits_of(report.by).floor}, {"value", report.floor}} : json();
  json floors = json::array();
  for (const auto& floor : floors_of(report)) floors.push_back({{"name", floor.name}, {"value", floor.value}});
  json pairs = json::array();
  for (const auto& [first, second, difference] : report.pairs) {
    pairs.push_back(parts_json(difference));
    pairs.back()["arms"] = {first, second};
  }
  json tables = json::array();
  for (const auto& table : report.tables) tables.push_back(to_json(table));
  return {{"study", report.name},
          {"metric", report.metric},
          {"unit", report.unit},
          {"arms", arms},
          {"pairs", pairs},
          {"confidence", report.rules.confidence},
          {"margin", report.rules.margin},
          {"simultaneous", report.rules.arms},
          {"floor", known_floor},
          {"floors", floors},
          {"tied", report.tied},
          {"notes", report.notes},
          {"baseline", report.baseline},
          {"declaration", report.declaration},
          {"tables", tables}};
}

}  // namespace cloze

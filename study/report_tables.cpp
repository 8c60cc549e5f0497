#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/log.h"
#include "study/report.h"

namespace cloze {

namespace {

using nlohmann::json;

/// The columns of the table of arms.
struct Row {
  std::string arm{}, runs{}, value{}, difference{}, interval{}, p{}, verdict{};
};

/// Decimals that show two digits of the smallest spread.
int decimals_of(const StudyReport& report) {
  double spread = INFINITY;
  for (const auto& arm : report.arms)
    if (arm.summary.sd > 0) spread = std::min(spread, arm.summary.sd);
  return std::isfinite(spread) ? std::clamp(1 - static_cast<int>(std::floor(std::log10(spread))), 2, 6) : 4;
}

std::string fixed(double value, int decimals, bool sign = false) {
  char text[64];
  std::snprintf(text, sizeof text, sign ? "%+.*f" : "%.*f", decimals, value);
  return text;
}

std::string p_text(double p) { return p < 0.001 ? "< 0.001" : fixed(p, 3); }

std::vector<Row> rows_of(const StudyReport& report) {
  const int decimals = decimals_of(report);
  std::vector<Row> rows;
  for (const auto& arm : report.arms) {
    Row row{.arm = arm.name, .runs = std::to_string(arm.runs.size()), .verdict = arm.verdict};
    if (!arm.runs.empty()) {
      row.value = fixed(arm.summary.mean, decimals);
      if (arm.runs.size() > 1) row.value += " ± " + fixed(arm.summary.sd, decimals);
    }
    const auto& d = arm.difference;
    if (arm.is_baseline) row.verdict = "baseline";
    if (!arm.is_baseline && d.seeds > 0) row.difference = fixed(d.mean, decimals, true);
    if (d.t_interval)
      row.interval =
          "[" + fixed(d.t_interval->low, decimals, true) + ", " + fixed(d.t_interval->high, decimals, true) + "]";
    if (d.p_holm) row.p = p_text(*d.p_holm);
    rows.push_back(row);
  }
  return rows;
}

/// Characters of UTF-8.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}
std::string padded(const std::string& text, size_t width) {
  return text + std::string(width > width_of(text) ? width - width_of(text) : 0, ' ');
}

std::string headline(const StudyReport& report) {
  return words(report.name, ": ", report.metric, " loss on held-out text in ", report.unit,
               report.rules.margin > 0 ? words(", differences of ", shortest(report.rules.margin), " matter") : "");
}

std::string level_of(const StudyReport& report) { return shortest(100 * report.rules.confidence); }

std::string escaped_csv(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string escaped_latex(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string("&%$#_{}").find(c) != std::string::npos) out += "\\";
    out += c == '~'    ? std::string("\\textasciitilde{}")
           : c == '^'  ? std::string("\\textasciicircum{}")
           : c == '\\' ? std::string("\\textbackslash{}")
                       : std::string(1, c);
  }
  return out;
}

std::string escaped_markdown(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string tied_words(const std::vector<std::string>& set) {
  std::string names;
  for (const auto& name : set) names += (names.empty() ? "" : ", ") + name;
  return "not told apart: " + names;
}

json interval_json(const std::optional<Interval>& interval) {
  return interval ? json{interval->low, interval->high} : json();
}
template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

}  // namespace

std::string to_text(const StudyReport& report, int64_t columns) {
  const auto rows = rows_of(report);
  const Row head{"arm", "runs", "mean ± sd", "difference", level_of(report) + " % interval", "p (Holm)", "verdict"};
  const auto width = [&](std::string Row::* field) {
    size_t widest = width_of(head.*field);
    for (const auto& row : rows) widest = std::max(widest, width_of(row.*field));
    return widest;
  };
  std::vector<std::string Row::*> fields{&Row::arm, &Row::runs, &Row::value, &Row::difference, &Row::interval, &Row::p};
  const auto whole = [&](const auto& shown) {
    size_t sum = width(&Row::verdict);
    for (const auto field : shown) sum += width(field) + 2;
    return static_cast<int64_t>(sum);
  };
  // A narrow terminal gets fewer columns; the verdict stays.
  for (const auto dropped : {&Row::runs, &Row::p, &Row::interval, &Row::value})
    if (whole(fields) > columns) std::erase(fields, dropped);
  std::string text = headline(report) + "\n\n";
  const auto line = [&](const Row& row) {
    for (const auto field : fields) text += padded(row.*field, width(field)) + "  ";
    text += row.verdict + "\n";
  };
  if (!rows.empty()) line(head);
  for (const auto& row : rows) line(row);
  for (const auto& table : report.tables)
    text += (rows.empty() && &table == &report.tables.front() ? "" : "\n") + to_text(table);
  if (!report.tied.empty()) text += "\n";
  for (const auto& set : report.tied) text += tied_words(set) + "\n";
  if (!report.notes.empty()) text += "\n";
  for (const auto& note : report.notes) text += note + "\n";
  return text;
}

std::string to_markdown(const StudyReport& report) {
  std::string text = words("# ", report.name, "\n\n", headline(report), ".\n");
  if (!report.arms.empty())
    text += words("\n| arm | runs | mean ± sd | difference | ", level_of(report),
                  " % interval | p (Holm) | verdict |\n|---|---|---|---|---|---|---|\n");
  for (const auto& row : rows_of(report)) {
    for (const auto& cell : {row.arm, row.runs, row.value, row.difference, row.interval, row.p, row.verdict})
      text += "| " + escaped_markdown(cell) + " ";
    text += "|\n";
  }
  text += "\n";
  for (const auto& set : report.tied) text += "- " + tied_words(set) + "\n";
  for (const auto& note : report.notes) text += "- " + note + "\n";
  for (const auto& table : report.tables) text += "\n" + to_markdown(table);
  if (report.arms.empty()) return text;
  text += "\nThe arms differ in these keys:\n\n";
  for (const auto& arm : report.arms) {
    std::string keys;
    for (const auto& key : arm.differs) keys += (keys.empty() ? "`" : ", `") + key + "`";
    text += "- " + arm.name + ": " + (keys.empty() ? "the base as it is" : keys) + "\n";
  }
  text += "\nEvery run again:\n\n```sh\n";
  for (const auto& command : report.commands) text += command + "\n";
  return text + "```\n";
}

std::string to_csv(const StudyReport& report) {
  std::string text =
      "kind,arm,seed,value,mean,sd,difference,t_low,t_high,bootstrap_low,bootstrap_high,p,p_holm,p_equivalence,"
      "effect_size,detectable,seeds_needed,step,tokens,seconds,verdict,run\n";
  const auto number = [](double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", value);
    return std::string(digits);
  };
  const auto maybe = [&](const auto& value) { return value ? number(static_cast<double>(*value)) : std::string(); };
  for (const auto& arm : report.arms) {
    for (const auto& run : arm.runs)
      text += words("run,", escaped_csv(arm.name), ",", run.seed, ",", number(run.value), ",,,,,,,,,,,,,,", run.step,
                    ",", run.tokens, ",", number(run.seconds), ",,", escaped_csv(run.folder), "\n");
    const auto& d = arm.difference;
    const auto low = [&](const auto& i) { return i ? number(i->low) : std::string(); };
    const auto high = [&](const auto& i) { return i ? number(i->high) : std::string(); };
    text += words("arm,", escaped_csv(arm.name), ",,,", number(arm.summary.mean), ",", number(arm.summary.sd), ",",
                  arm.is_baseline ? "" : number(d.mean), ",", low(d.t_interval), ",", high(d.t_interval), ",",
                  low(d.bootstrap_interval), ",", high(d.bootstrap_interval), ",", maybe(d.p), ",", maybe(d.p_holm),
                  ",", maybe(d.p_equivalence), ",", maybe(d.effect_size), ",", maybe(d.detectable), ",",
                  maybe(d.seeds_needed), ",,,,", escaped_csv(arm.verdict), ",\n");
  }
  if (report.arms.empty()) text.clear();
  for (const auto& table : report.tables) text += (text.empty() ? "" : "\n") + to_csv(table);
  return text;
}

std::string to_latex(const StudyReport& report) {
  std::string text =
      words("% ", headline(report), "\n\\begin{tabular}{lrrrl}\n\\toprule\narm & mean $\\pm$ sd & difference & ",
            level_of(report), "\\,\\% interval & verdict \\\\\n\\midrule\n");
  for (const auto& row : rows_of(report)) {
    auto value = row.value;
    if (const auto at = value.find("±"); at != std::string::npos) value.replace(at, std::string("±").size(), "\\pm");
    const auto math = [](const std::string& cell) { return cell.empty() ? cell : "$" + cell + "$"; };
    text += words(escaped_latex(row.arm), " & ", math(value), " & ", math(row.difference), " & ", math(row.interval),
                  " & ", escaped_latex(row.verdict), " \\\\\n");
  }
  text += "\\bottomrule\n\\end{tabular}\n";
  if (report.arms.empty()) text.clear();
  for (const auto& table : report.tables) text += (text.empty() ? "" : "\n") + to_latex(table);
  return text;
}

json to_json(const StudyReport& report) {
  json arms = json::array();
  for (const auto& arm : report.arms) {
    json runs = json::array();
    for (const auto& run : arm.runs) runs.push_back({{"seed", run.seed}, {"value", run.value}, {"run", run.folder}});
    json one{{"name", arm.name}, {"runs", runs}, {"mean", arm.summary.mean}, {"sd", arm.summary.sd}};
    const auto& d = arm.difference;
    if (!arm.is_baseline)
      one["difference"] = {{"mean", d.mean},
                           {"t_interval", interval_json(d.t_interval)},
                           {"bootstrap_interval", interval_json(d.bootstrap_interval)},
                           {"p", optional_json(d.p)},
                           {"p_holm", optional_json(d.p_holm)},
                           {"p_equivalence", optional_json(d.p_equivalence)},
                           {"effect_size", optional_json(d.effect_size)},
                           {"detectable", optional_json(d.detectable)},
                           {"seeds_needed", optional_json(d.seeds_needed)},
                           {"verdict", arm.verdict}};
    arms.push_back(one);
  }
  json tables = json::array();
  for (const auto& table : report.tables) tables.push_back(to_json(table));
  return {{"study", report.name},
          {"metric", report.metric},
          {"unit", report.unit},
          {"arms", arms},
          {"tied", report.tied},
          {"notes", report.notes},
          {"baseline", report.baseline},
          {"declaration", report.declaration},
          {"tables", tables}};
}

}  // namespace cloze

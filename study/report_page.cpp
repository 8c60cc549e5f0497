// A report as one page.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/log.h"
#include "core/page.h"
#include "core/plot.h"
#include "core/text.h"
#include "study/report_rows.h"

namespace cloze {

namespace {

constexpr size_t run_points = 60, mean_points = 200;  // of a curve: more than a reader sees

/// Escapes, and writes minus signs as such.
std::string shown(const std::string& text) { return escaped_html(text); }
std::string signed_text(const std::string& number) {
  std::string text;
  for (const char c : number) text += c == '-' ? std::string("−") : std::string(1, c);
  return escaped_html(text);
}

/// The classes that give an arm its colour, and its dashes where there are more arms than colours.
std::string style_of(size_t arm) {
  if (arm == 0) return "a0";
  const size_t dashes = (arm - 1) / 6 % 3;
  return words("a", 1 + (arm - 1) % 6, dashes > 0 ? words(" d", dashes) : "");
}

size_t index_of(const StudyReport& report, const std::string& arm) {
  const auto found = std::find_if(report.arms.begin(), report.arms.end(), [&](const auto& a) { return a.name == arm; });
  return static_cast<size_t>(found - report.arms.begin());
}

/// Smallest and largest of some numbers.
struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double x) {
    if (!std::isfinite(x)) return;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  void add(const Interval& interval) {
    add(interval.low);
    add(interval.high);
  }
};

std::string head_of(const StudyReport& report) {
  auto html = words("<header>\n<p class=\"kicker\">", report.source.empty() ? "Comparison of runs" : "Study",
                    "</p>\n<h1>", shown(report.name), "</h1>\n<p class=\"question\">", shown(question_of(report)),
                    "</p>\n<dl class=\"facts\">\n");
  for (const auto& [name, value] : facts_of(report))
    html += words("<div><dt>", name, "</dt><dd>", shown(value), "</dd></div>\n");
  return html + "</dl>\n</header>\n";
}

/// A row of a figure: an arm, what is said of it, and its picture.
std::string figure_row(const std::string& name, const std::string& said, const std::string& svg) {
  return words("<div class=\"name\">", shown(name), "</div><div class=\"said\">", shown(said),
               "</div><div class=\"draw\">", svg, "</div>\n");
}

/// The last row of a figure.
std::string axis_row(const std::string& content) { return words("<div class=\"draw axis\">", content, "</div>\n"); }

/// The differences of all arms on one axis, with the margin.
std::string forest_of(const StudyReport& report) {
  const double margin = report.rules.margin;
  Range range;
  range.add(0);
  for (const auto& arm : report.arms) {
    if (arm.difference.seeds > 0) range.add(arm.difference.mean);
    if (arm.difference.t_interval) range.add(*arm.difference.t_interval);
    if (arm.difference.bootstrap_interval) range.add(*arm.difference.bootstrap_interval);
  }
  if (margin > 0) range.add({-1.25 * margin, 1.25 * margin});
  const auto axis = nice_axis(range.low, range.high, 5, true);
  const auto background = row_grid(axis) + (margin > 0 ? row_stripe(axis, -margin, margin, "margin") : "");
  std::string html = "<figure>\n<div class=\"rows\">\n";
  for (size_t i = 1; i < report.arms.size(); ++i) {
    const auto& arm = report.arms[i];
    const auto& d = arm.difference;
    auto parts = background + words("<line class=\"zero\" x1=\"", 100 * axis.share(0), "%\" x2=\"", 100 * axis.share(0),
                                    "%\" y1=\"0\" y2=\"100%\"/><g class=\"", style_of(i), "\">");
    if (d.t_interval) parts += row_segment(axis, d.t_interval->low, d.t_interval->high, "interval");
    if (d.bootstrap_interval) parts += row_segment(axis, d.bootstrap_interval->low, d.bootstrap_interval->high, "boot");
    if (d.seeds > 0) parts += row_dot(axis, d.mean, 4.5, "dot", words(arm.name, ": ", significant(d.mean, 4)));
    html += figure_row(arm.name, arm.verdict,
                       row_svg(words("difference of ", arm.name, " to ", report.baseline), parts + "</g>"));
  }
  const bool higher = report.rules.higher_is_better;
  html += axis_row(row_svg("axis of differences", row_axis(axis)));
  html += axis_row(words("<span class=\"sides\"><span>", higher ? "← worse" : "← better", "</span><span>difference to ",
                         shown(in_one_line(report.baseline)), " [", shown(report.unit), "]</span><span>",
                         higher ? "better →" : "worse →", "</span></span>"));
  html += "</div>\n";
  return html + words("<figcaption>Points: mean paired differences. Thick: ", row_heads(report).interval,
                      " of Student’s t over seeds. Thin: bootstrap over seeds and examples.",
                      margin > 0 ? " Shaded: differences below the margin." : "", "</figcaption>\n</figure>\n");
}

std::string cell(const std::string& text) { return "<td class=\"n\">" + signed_text(text) + "</td>"; }

std::string verdict_table(const StudyReport& report) {
  const auto heads = row_heads(report);
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of "
      "arms\"><table>\n<thead><tr><th>arm</th>";
  for (const auto& head : {heads.runs, heads.value, heads.difference, heads.interval, heads.bootstrap, heads.p,
                           heads.effect, heads.equivalence})
    html += "<th class=\"n\">" + shown(head) + "</th>";
  html += "<th>verdict</th></tr></thead>\n<tbody>\n";
  for (const auto& row : rows_of(report)) {
    html += "<tr><th scope=\"row\">" + shown(row.arm) + "</th>";
    for (const auto& text :
         {row.runs, row.value, row.difference, row.interval, row.bootstrap, row.p, row.effect, row.equivalence})
      html += cell(text);
    html += "<td class=\"wide\">" + shown(row.verdict) + "</td></tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string verdicts_of(const StudyReport& report) {
  std::string html;
  if (report.arms.size() > 1) html += forest_of(report);
  html += verdict_table(report);
  if (!report.tied.empty()) html += html_list(tied_words(report));
  return html_section("Verdicts", html);
}

/// What a curve is drawn over.
struct Currency {
  const char* id;
  const char* name;
  double (*of)(const CurvePoint&);
};
constexpr std::array<Currency, 4> currencies{
    {{"steps", "steps", [](const CurvePoint& p) { return static_cast<double>(p.step); }},
     {"tokens", "tokens", [](const CurvePoint& p) { return static_cast<double>(p.tokens); }},
     {"flops", "FLOPs", [](const CurvePoint& p) { return p.flops; }},
     {"time", "time", [](const CurvePoint& p) { return p.seconds; }}}};

/// A currency in the unit of its axis.
struct Scale {
  const Currency* currency;
  double unit = 1;
  std::string label{};
  Range range{};
  double at(const CurvePoint& point) const { return currency->of(point) / unit; }
};
Scale scale_of(const StudyReport& report, const Currency& currency) {
  Scale scale{.currency = &currency, .label = currency.name};
  Range whole;
  for (const auto& run : report.runs)
    for (const auto& point : run.curve) whole.add(currency.of(point));
  if (currency.id == std::string("time")) {
    scale.unit = whole.high < 300 ? 1 : whole.high < 3 * 3600 ? 60 : 3600;
    scale.label = words("training time [", scale.unit == 1 ? "s" : scale.unit == 60 ? "min" : "h", "]");
  }
  scale.range = {whole.low / scale.unit, whole.high / scale.unit};
  return scale;
}

/// Losses of the first tenth of a run are cut off where they would flatten the rest.
Range shown_losses(const StudyReport& report) {
  int64_t last = 0;
  for (const auto& run : report.runs)
    for (const auto& point : run.curve) last = std::max(last, point.step);
  Range range, whole;
  for (const auto& run : report.runs)
    for (const auto& point : run.curve) {
      whole.add(point.loss);
      if (10 * point.step >= last) range.add(point.loss);
    }
  return whole.high - whole.low > 1.2 * (range.high - range.low) && range.low < range.high ? range : whole;
}

std::vector<PlotPoint> points_of(const std::vector<CurvePoint>& curve, const Scale& scale, size_t most) {
  std::vector<PlotPoint> points;
  for (const auto& point : thinned(curve, most)) points.push_back({scale.at(point), point.loss});
  return points;
}

std::string loss_chart(const StudyReport& report, const Scale& scale) {
  const auto losses = shown_losses(report);
  LineChart chart{.title = words("held-out ", report.metric, " loss of all arms by ", scale.label),
                  .x_label = scale.label,
                  .x = nice_axis(scale.range.low, scale.range.high, 5, false),
                  .y = nice_axis(losses.low, losses.high, 5, true)};
  for (const auto& run : report.runs)
    chart.lines.push_back({.style = style_of(index_of(report, run.result.arm)) + " thin",
                           .title = words(run.result.arm, ", seed ", run.result.seed),
                           .points = points_of(run.curve, scale, run_points)});
  for (size_t i = 0; i < report.arms.size(); ++i) {
    const auto& curve = report.arms[i].curve;
    const auto mean = points_of(curve.mean, scale, mean_points);
    const auto sd = thinned(curve.sd, mean_points);
    PlotBand band{.style = style_of(i), .low = mean, .high = mean};
    for (size_t p = 0; p < mean.size(); ++p) {
      band.low[p].y -= sd[p];
      band.high[p].y += sd[p];
    }
    if (report.arms[i].runs.size() > 1) chart.bands.push_back(band);
    chart.lines.push_back({.style = style_of(i), .title = "mean of " + report.arms[i].name, .points = mean});
  }
  return "<div class=\"plot\">" + to_svg(chart) + "</div>\n";
}

/// Differences to the baseline; what the first tenth of training shows is cut off as in the chart of losses.
std::string difference_chart(const StudyReport& report, const Scale& scale) {
  const double margin = report.rules.margin;
  Range range;
  range.add(0);
  if (margin > 0) range.add({-margin, margin});
  for (const auto& arm : report.arms) {
    const auto& curve = arm.difference_curve;
    for (size_t p = 0; p < curve.mean.size(); ++p)
      if (10 * curve.mean[p].step >= curve.mean.back().step) range.add(curve.mean[p].loss);
    if (!curve.t_interval.empty()) range.add(curve.t_interval.back());
  }
  LineChart chart{.title = words("difference to ", report.baseline, " by ", scale.label),
                  .x_label = scale.label,
                  .x = nice_axis(scale.range.low, scale.range.high, 5, false),
                  .y = nice_axis(range.low, range.high, 5, true)};
  const auto level = [&](double y) { return std::vector<PlotPoint>{{chart.x.low, y}, {chart.x.high, y}}; };
  if (margin > 0) chart.bands.push_back({.style = "margin", .low = level(-margin), .high = level(margin)});
  chart.lines.push_back({.style = "zero", .points = level(0)});
  for (size_t i = 1; i < report.arms.size(); ++i) {
    const auto& curve = report.arms[i].difference_curve;
    const auto mean = points_of(curve.mean, scale, mean_points);
    const auto intervals = thinned(curve.t_interval, mean_points);
    PlotBand band{.style = style_of(i)};
    for (size_t p = 0; p < intervals.size(); ++p) {
      band.low.push_back({mean[p].x, intervals[p].low});
      band.high.push_back({mean[p].x, intervals[p].high});
    }
    chart.bands.push_back(band);
    chart.lines.push_back({.style = style_of(i), .title = report.arms[i].name, .points = mean});
  }
  return "<div class=\"plot low\">" + to_svg(chart) + "</div>\n";
}

std::string legend_of(const StudyReport& report) {
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < report.arms.size(); ++i) entries.push_back({style_of(i), report.arms[i].name});
  return html_legend(entries);
}

std::string curves_of(const StudyReport& report) {
  std::string picks, charts;
  for (const auto& currency : currencies) {
    const auto scale = scale_of(report, currency);
    if (!(scale.range.high > 0)) continue;
    picks +=
        words("<input class=\"pick\" type=\"radio\" name=\"by\" id=\"by-", currency.id, "\"",
              picks.empty() ? " checked" : "", "><label for=\"by-", currency.id, "\">by ", currency.name, "</label>\n");
    charts += words("<div class=\"by by-", currency.id, "\">\n", legend_of(report), "<p class=\"soft\">held-out ",
                    shown(report.metric), " loss [nats]</p>\n", loss_chart(report, scale));
    if (report.arms.size() > 1 && report.loss_unit == LossUnit::nats)
      charts += words("<p class=\"soft\">paired difference to ", shown(report.baseline), " [", shown(report.unit),
                      "]</p>\n", difference_chart(report, scale));
    charts += "</div>\n";
  }
  if (charts.empty()) return "";
  return html_section(
      "Along training",
      words("<figure>\n", picks, charts, "<figcaption>Thick: means over finished runs, with a band of one ",
            "standard deviation in the upper chart and of the ", row_heads(report).interval,
            " in the lower. Thin: single runs. Steep losses of the first tenth may leave the charts.",
            "</figcaption>\n</figure>\n"));
}

/// The value of each run, a row for each arm.
std::string dots_of(const StudyReport& report) {
  Range range;
  for (const auto& arm : report.arms)
    for (const auto& run : arm.runs) range.add(run.value);
  if (range.low > range.high) return "";
  const auto axis = nice_axis(range.low, range.high, 5, true);
  const auto rows = rows_of(report);
  std::string html = "<figure>\n<div class=\"rows\">\n";
  for (size_t i = 0; i < report.arms.size(); ++i) {
    const auto& arm = report.arms[i];
    auto parts = row_grid(axis) + words("<g class=\"", style_of(i), "\">");
    for (const auto& run : report.runs)
      if (run.result.arm == arm.name && run.state == RunState::done)
        parts += row_dot(axis, run.result.value, run.outlying ? 5.5 : 4.5, run.outlying ? "run outlying" : "run",
                         words("seed ", run.result.seed, ": ", significant(run.result.value, 6)));
    if (!arm.runs.empty()) parts += row_bar(axis, arm.summary.mean, "mean");
    html += figure_row(arm.name, rows[i].value, row_svg("values of the runs of " + arm.name, parts + "</g>"));
  }
  html += axis_row(row_svg("axis of values", row_axis(axis)));
  return html + words("</div>\n<figcaption>Dots: finished runs. Bars: means. Rings: outliers. Held-out ",
                      shown(report.metric), " loss [", shown(report.unit), "].</figcaption>\n</figure>\n");
}

std::string run_row(const ReportedRun& run, int decimals, bool flops) {
  const auto& result = run.result;
  auto html = words("<tr><th scope=\"row\">", shown(result.arm), "</th><td class=\"n\">", result.seed, "</td>");
  if (run.state == RunState::done) {
    html += words("<td>", run.outlying ? "outlier" : "done", "</td>", cell(fixed(result.value, decimals)),
                  cell(thousands(static_cast<uint64_t>(result.step))),
                  cell(result.tokens > 0 ? thousands(static_cast<uint64_t>(result.tokens)) : ""),
                  cell(result.seconds > 0 ? duration(result.seconds) : ""));
    if (flops) html += cell(result.flops > 0 ? with_prefix(result.flops) : "");
  } else {
    html += words("<td>", run.state, "</td><td></td><td></td><td></td><td></td>", flops ? "<td></td>" : "");
  }
  return html + words("<td><code>", shown(result.folder), "</code></td></tr>\n");
}

std::string runs_of(const StudyReport& report) {
  const bool flops =
      std::any_of(report.runs.begin(), report.runs.end(), [](const auto& r) { return r.result.flops > 0; });
  auto html = dots_of(report);
  html += words(
      "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Table of runs\"><table>\n<thead><tr>",
      "<th>arm</th><th class=\"n\">seed</th><th>state</th><th class=\"n\">", shown(report.metric), " [",
      shown(report.unit), "]</th><th class=\"n\">steps</th><th class=\"n\">tokens</th><th class=\"n\">time</th>",
      flops ? "<th class=\"n\">FLOPs</th>" : "", "<th>folder</th></tr></thead>\n<tbody>\n");
  for (const auto& arm : report.arms)
    for (const auto& run : report.runs)
      if (run.result.arm == arm.name) html += run_row(run, decimals_of(report), flops);
  return html_section("Runs", html + "</tbody>\n</table></div>\n");
}

/// What the arms used up in other currencies than that of the budget.
std::string usage_of(const StudyReport& report) {
  const auto usage = usage_table(report);
  return usage.rows.empty() ? "" : html_section(usage.title, html_table(usage.header, usage.rows, 1));
}

std::string keys_of(const StudyReport& report) {
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr><th>arm</th><th>keys</th></tr></thead>\n<tbody>\n";
  for (const auto& arm : report.arms) {
    std::string keys;
    for (const auto& key : arm.differs) keys += (keys.empty() ? "<code>" : "<br><code>") + shown(key) + "</code>";
    html += words("<tr><th scope=\"row\">", shown(arm.name), "</th><td class=\"wide\">",
                  keys.empty() ? "the base as it is" : keys, "</td></tr>\n");
  }
  return html_section("What the arms differ in", html + "</tbody>\n</table></div>\n");
}

/// The tables of tuning, splits and searches.
std::string tables_of(const StudyReport& report) {
  std::string html;
  for (const auto& table : report.tables) {
    const auto picture = table.picture.empty() ? "" : "<div class=\"plot\">" + table.picture + "</div>\n";
    html += html_section(table.title, picture + html_table(table.header, table.rows, table.header.size()));
  }
  return html;
}

std::string commands_of(const StudyReport& report) {
  std::string html =
      "<p>In the working directory of the runs:</p>\n<div class=\"scroll tall\" tabindex=\"0\"><pre><code>";
  for (const auto& command : report.commands) html += shown(command) + "\n";
  return html_section("Every run again", html + "</code></pre></div>\n");
}

}  // namespace

std::string to_html(const StudyReport& report) {
  const bool compares = !report.arms.empty();  // a search has trials alone
  const auto comparison = compares ? curves_of(report) + runs_of(report) + usage_of(report) + keys_of(report) : "";
  const auto head = compares ? head_of(report) + verdicts_of(report)
                             : words("<h1>", shown(report.name), "</h1>\n<p class=\"question\">",
                                     shown(question_of(report)), "</p>\n");
  const auto notes = report.notes.empty() ? "" : html_section("Notes", html_list(report.notes));
  const auto methods =
      compares ? commands_of(report) + html_section("How it was computed", html_list(methods_of(report))) : "";
  return html_page(report.name + ": " + question_of(report), head + notes + tables_of(report) + comparison + methods);
}

}  // namespace cloze

// The page of a view.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/columns.h"
#include "core/text.h"
#include "study/page.h"
#include "study/plot.h"
#include "views/view.h"

namespace cloze {

namespace {

std::string fixed_digits(double value, int decimals) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string paragraph(const std::string& text) { return "<p class=\"soft\">" + escaped_html(text) + "</p>\n"; }

/// A chart under the name of its y axis.
std::string figure(const LineChart& chart) {
  return paragraph(chart.title) + "<div class=\"plot\">" + to_svg(chart) + "</div>\n";
}

/// An axis over the rows of a table, from 1.
Axis axis_of_rows(size_t count) {
  Axis axis{.low = 1, .high = std::max(2.0, static_cast<double>(count))};
  for (size_t row = 1; row <= count; ++row) axis.ticks.push_back(static_cast<double>(row));
  return axis;
}

/// A line over groups, which stand side by side, and their table. `note`: what is said before them.
std::string groups_section(const std::string& heading, const std::string& first, const std::vector<TokenGroup>& groups,
                           const std::string& note = "") {
  double highest = 0;
  PlotLine line{.style = "a1", .title = "loss"};
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& group = groups[i];
    highest = std::max(highest, group.loss);
    line.points.push_back({static_cast<double>(i + 1), group.loss});
    rows.push_back(
        {group.name, std::to_string(group.count), fixed_digits(group.loss, 4), fixed_digits(100 * group.accuracy, 2)});
  }
  const LineChart chart{.title = "loss [nats]",
                        .x_label = first + ", row of the table",
                        .x = axis_of_rows(groups.size()),
                        .y = nice_axis(0, highest, 5, true),
                        .lines = {line}};
  const auto before = note.empty() ? "" : paragraph(note);
  return html_section(heading, before + figure(chart) + html_table({first, "tokens", "loss", "right %"}, rows, 1));
}

std::string calibration_section(const Calibration& calibration) {
  const auto axis = nice_axis(0, 1, 5, true);
  LineChart chart{.title = "share that is right", .x_label = "confidence", .x = axis, .y = axis};
  chart.lines.push_back({.style = "a0", .title = "as confident as right", .points = {{0, 0}, {1, 1}}});
  PlotLine line{.style = "a1", .title = "this run"};
  std::vector<std::vector<std::string>> rows;
  for (const auto& bin : calibration.bins) {
    line.points.push_back({bin.confidence, bin.accuracy});
    chart.dots.push_back({.style = "a1", .title = words(bin.count, " tokens"), .at = {bin.confidence, bin.accuracy}});
    rows.push_back({fixed_digits(bin.low, 3) + " to " + fixed_digits(bin.high, 3), std::to_string(bin.count),
                    fixed_digits(bin.confidence, 4), fixed_digits(bin.accuracy, 4)});
  }
  chart.lines.push_back(line);
  const auto text =
      words("Expected calibration error ", fixed_digits(calibration.error, 4), " over ", calibration.count,
            " tokens, 15 bins of equal width (Guo et al. 2017): the mean distance between the probability "
            "of the most probable token and the share of times that it is right.");
  std::vector<LegendEntry> legend;
  for (const auto& [style, title, points] : chart.lines) legend.push_back({style, title});
  return html_section("Calibration", paragraph(text) + html_legend(legend) + figure(chart) +
                                         html_table({"confidence", "tokens", "mean confidence", "right"}, rows, 1));
}

std::string projection_section(const View& view) {
  if (!view.mean_cosine) return html_section("Sentences", paragraph("Two texts or more make a picture of sentences."));
  double widest = 1e-9;
  for (const auto& [x, y] : view.projection.points) widest = std::max({widest, std::abs(x), std::abs(y)});
  const auto axis = nice_axis(-widest, widest, 5, true);
  LineChart chart{
      .title = words("second component, ", fixed_digits(100 * view.projection.second_share, 1), " %"),
      .x_label = words("first component, ", fixed_digits(100 * view.projection.first_share, 1), " % of the variance"),
      .x = axis,
      .y = axis};
  for (size_t i = 0; i < view.projection.points.size(); ++i)
    chart.dots.push_back({.style = "a2",
                          .title = cut(view.sentences[i], 120),
                          .at = {view.projection.points[i].first, view.projection.points[i].second}});
  const auto text =
      words("Embeddings of ", view.sentences.size(), " texts (the mean of the tokens' states, last layer), ",
            "by their two principal components; a dot shows its text under the pointer. Mean cosine of two "
            "texts: ",
            fixed_digits(*view.mean_cosine, 3), " (0: spread evenly, 1: one direction).");
  return html_section("Sentences", paragraph(text) + figure(chart));
}

std::string attention_section(const View& view) {
  const auto& maps = view.attention;
  if (maps.heads.empty())
    return html_section("Attention", paragraph("This attention has no matrix of probabilities to show."));
  constexpr int64_t most_pixels = 272;  // twice what a side of a picture takes on the page
  const auto size = static_cast<int64_t>(maps.tokens.size()), side = std::min(size, most_pixels);
  std::string tokens;
  for (const auto& token : maps.tokens) tokens += (tokens.empty() ? "" : " ") + token;
  std::string body = paragraph(
      "A square for each head; rows are queries and columns keys, in the order of the tokens: " + tokens +
      ". White is 0, black the largest " + (side < size ? "mean of neighbours" : "probability") + " of the head.");
  for (size_t layer = 0; layer < maps.heads.size(); ++layer) {
    body += "<p class=\"kicker\">layer " + std::to_string(layer + 1) + "</p>\n<div class=\"maps\">";
    for (size_t head = 0; head < maps.heads[layer].size(); ++head) {
      const auto map = shrunk(maps.heads[layer][head], size, side);
      const auto name = words("layer ", layer + 1, ", head ", head + 1);
      body += words("<img alt=\"", name, "\" title=\"", name, "\" src=\"",
                    picture_uri(map, side, *std::max_element(map.begin(), map.end())), "\">");
    }
    body += "</div>\n";
  }
  return html_section("Attention", body);
}

/// What the style sheet of reports does not have.
constexpr const char* maps_style =
    "<style>.maps { display: flex; flex-wrap: wrap; gap: .5rem; margin: 0 0 1rem; } .maps img { width: 8.5rem; height: "
    "8.5rem; image-rendering: pixelated; border: 1px solid var(--faint); }</style>\n";

}  // namespace

std::string to_html(const View& view) {
  const auto title = "What " + view.run + " does with a text";
  std::string body = maps_style + ("<h1>" + escaped_html(title) + "</h1>\n");
  body += paragraph(words(view.texts, " texts, checkpoint ", view.checkpoint, "; ", view.scored_by, "."));
  body += groups_section("Loss by position", "position in the text", view.positions);
  body += view.has_training_counts
              ? groups_section("Loss by frequency", "occurrences in the training text", view.frequencies)
              : groups_section("Loss by frequency", "occurrences in these texts", view.frequencies,
                               "How often a token occurs in the training text is not known; these are the numbers in "
                               "the texts of this page.");
  body += calibration_section(view.calibration);
  body += projection_section(view);
  body += attention_section(view);
  return html_page(title, body);
}

}  // namespace cloze

// The page of a view.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/columns.h"
#include "core/page.h"
#include "core/plot.h"
#include "core/spelling.h"
#include "core/text.h"
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

/// The first texts, each token the darker the higher its loss.
std::string losses_section(const View& view) {
  double highest = 0;
  for (const auto& text : view.read)
    for (const auto loss : text.losses) highest = std::max(highest, loss);
  std::string html = paragraph(
      words(view.read.size() < static_cast<size_t>(view.texts) ? words("The first ", view.read.size(), " texts. ") : "",
            "The darker a token, the higher its loss, up to ", fixed_digits(highest, 2),
            " nats; a token shows its own under the pointer."));
  for (const auto& [pieces, losses] : view.read) {
    html += "<p class=\"losses\">";
    for (size_t i = 0; i < pieces.size(); ++i)
      html += words("<span style=\"--loss: ", fixed_digits(highest > 0 ? losses[i] / highest : 0, 3), "\" title=\"",
                    fixed_digits(losses[i], 2), " nats\">", escaped_html(visible(pieces[i])), "</span> ");
    html += "</p>\n";
  }
  return html_section("Loss by token", html);
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

/// The square of a head with the tokens along its sides. Lengths are in pixels.
struct MapFrame {
  explicit MapFrame(const std::vector<std::string>& of) : tokens(of) {
    const auto count = static_cast<int64_t>(tokens.size());
    side = std::clamp<int64_t>(count * of_label, 136, 320);
    stride = static_cast<size_t>((count * of_label + side - 1) / side);
    size_t longest = 0;
    for (const auto& token : tokens) longest = std::max(longest, width_of(label(token)));
    margin = 8 + 5 * static_cast<int64_t>(longest);
  }

  static constexpr int64_t of_label = 10, below = 16;  // room for a token, and for the name of the head
  static std::string label(const std::string& token) { return cut(visible(token), 10); }

  /// The tokens, or every `stride`th: of queries on the left, of keys above.
  std::string labels() const {
    std::string html;
    for (size_t i = 0; i < tokens.size(); i += stride) {
      const double at = static_cast<double>(margin) +
                        (static_cast<double>(i) + 0.5) * static_cast<double>(side) / static_cast<double>(tokens.size());
      const auto text = escaped_html(label(tokens[i]));
      html += words("<text x=\"", margin - 4, "\" y=\"", fixed_digits(at, 1),
                    "\" text-anchor=\"end\" dominant-baseline=\"central\">", text,
                    "</text><text transform=\"translate(", fixed_digits(at, 1), " ", margin - 4,
                    ") rotate(-90)\" dominant-baseline=\"central\">", text, "</text>");
    }
    return html;
  }

  /// The square of `picture`, named by its layer and head; the labels are those of the element `labels`.
  std::string square(const std::string& picture, size_t layer, size_t head) const {
    const auto width = margin + side;
    return words("<svg role=\"img\" width=\"", width, "\" height=\"", width + below, "\"><title>layer ", layer,
                 ", head ", head, "</title><image href=\"", picture, "\" x=\"", margin, "\" y=\"", margin,
                 "\" width=\"", side, "\" height=\"", side, "\" preserveAspectRatio=\"none\"/><rect x=\"", margin,
                 "\" y=\"", margin, "\" width=\"", side, "\" height=\"", side, "\"/><use href=\"#labels\"/><text x=\"",
                 margin, "\" y=\"", width + below - 4, "\">head ", head, "</text></svg>\n");
  }

  const std::vector<std::string>& tokens;
  int64_t side = 0, margin = 0;
  size_t stride = 1;
};

std::string attention_section(const View& view) {
  const auto& maps = view.attention;
  if (maps.heads.empty())
    return html_section("Attention", paragraph("This attention has no matrix of probabilities to show."));
  constexpr int64_t most_pixels = 272;
  const auto size = static_cast<int64_t>(maps.tokens.size()), side = std::min(size, most_pixels);
  const MapFrame frame(maps.tokens);
  std::string tokens;
  for (const auto& token : maps.tokens) tokens += (tokens.empty() ? "" : " ") + token;
  std::string body =
      paragraph(words("A square for each head: a row is a query, whose token stands on the left, a column a key, whose "
                      "token stands above. White is 0, black the largest ",
                      side < size ? "mean of neighbours" : "probability", " of the head. The tokens",
                      frame.stride > 1 ? words(", of which one in ", frame.stride, " is named") : "", ": ", tokens));
  body += "<svg width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><g id=\"labels\">" + frame.labels() +
          "</g></defs></svg>\n";
  for (size_t layer = 0; layer < maps.heads.size(); ++layer) {
    body += "<p class=\"kicker\">layer " + std::to_string(layer + 1) + "</p>\n<div class=\"maps\">";
    for (size_t head = 0; head < maps.heads[layer].size(); ++head) {
      const auto map = shrunk(maps.heads[layer][head], size, side);
      body += frame.square(picture_uri(map, side, *std::max_element(map.begin(), map.end())), layer + 1, head + 1);
    }
    body += "</div>\n";
  }
  return html_section("Attention", body);
}

/// What the style sheet of reports does not have.
constexpr const char* view_style = R"css(<style>
.maps { display: flex; flex-wrap: wrap; gap: .5rem 1rem; margin: 0 0 1rem; }
.maps image { image-rendering: pixelated; }
.maps rect { fill: none; stroke: var(--faint); }
#labels text, .maps text { fill: var(--soft); font-size: 9px; }
.losses { max-width: none; line-height: 1.9; }
.losses span { background: rgb(213 94 0 / calc(var(--loss) * .7)); border-radius: 3px; padding: .1rem .2rem; }
</style>
)css";

}  // namespace

std::string to_html(const View& view) {
  const auto title = "What " + view.run + " does with a text";
  std::string body = view_style + ("<h1>" + escaped_html(title) + "</h1>\n");
  body += paragraph(words(view.texts, " texts, checkpoint ", view.checkpoint, "; ", view.scored_by, "."));
  body += losses_section(view);
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

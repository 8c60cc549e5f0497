// The page of a view.
#include <algorithm>
#include <cmath>

#include "core/report/chart.h"
#include "core/report/report.h"
#include "core/spelling.h"
#include "core/text.h"
#include "inference/views/view.h"

namespace cloze {

namespace {

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
  ChartSeries line{.title = "loss", .colour = 1};
  Table table{.header = columns_of_numbers({first, "tokens", "loss", "right %"})};
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& group = groups[i];
    highest = std::max(highest, group.loss);
    line.points.push_back({static_cast<double>(i + 1), group.loss});
    table.rows.push_back(
        {group.name, std::to_string(group.count), fixed(group.loss, 4), fixed(100 * group.accuracy, 2)});
  }
  const Chart chart{.title = heading,
                    .x_label = first + ", row of the table",
                    .y_label = "loss [nats]",
                    .series = {line},
                    .x = axis_of_rows(groups.size()),
                    .y = nice_axis(0, highest, 5, true)};
  const auto before = note.empty() ? "" : html_note(note);
  return html_section(heading, before + chart_html(chart) + to_html(table));
}

/// The first texts, each token the darker the higher its loss.
std::string losses_section(const View& view) {
  double highest = 0;
  for (const auto& text : view.read)
    for (const auto loss : text.losses) highest = std::max(highest, loss);
  std::string html = html_note(concat(
      view.read.size() < static_cast<size_t>(view.texts) ? concat("The first ", view.read.size(), " texts. ") : "",
      "The darker a token, the higher its loss, up to ", fixed(highest, 2),
      " nats; a token shows its own under the pointer."));
  for (const auto& [pieces, losses] : view.read) {
    html += "<p class=\"losses\">";
    for (size_t i = 0; i < pieces.size(); ++i)
      html += concat("<span style=\"--loss: ", fixed(highest > 0 ? losses[i] / highest : 0, 3), "\" title=\"",
                     fixed(losses[i], 2), " nats\">", escaped_html(visible(pieces[i])), "</span> ");
    html += "</p>\n";
  }
  return html_section("Loss by token", html);
}

std::string calibration_section(const Calibration& calibration) {
  const auto axis = nice_axis(0, 1, 5, true);
  Chart chart{.title = "calibration",
              .x_label = "confidence",
              .y_label = "share that is right",
              .series = {{.title = "as confident as right", .points = {{0, 0}, {1, 1}}},
                         {.title = "this run", .mark = ChartMark::dots, .colour = 1}},
              .x = axis,
              .y = axis};
  auto& line = chart.series.back();
  Table table{.header = columns_of_numbers({"confidence", "tokens", "mean confidence", "right"})};
  for (const auto& bin : calibration.bins) {
    line.points.push_back({bin.confidence, bin.accuracy});
    line.hints.push_back(concat(bin.count, " tokens"));
    table.rows.push_back({fixed(bin.low, 3) + " to " + fixed(bin.high, 3), std::to_string(bin.count),
                          fixed(bin.confidence, 4), fixed(bin.accuracy, 4)});
  }
  const auto text =
      concat("Expected calibration error ", fixed(calibration.error, 4), " over ", calibration.count,
             " tokens, 15 bins of equal width (Guo et al. 2017): the mean distance between the probability "
             "of the most probable token and the share of times that it is right.");
  std::vector<std::pair<std::string, std::string>> legend;
  for (const auto& series : chart.series) legend.emplace_back(colour_classes(series.colour), series.title);
  return html_section("Calibration", html_note(text) + legend_html(legend) + chart_html(chart) + to_html(table));
}

std::string projection_section(const View& view) {
  if (!view.mean_cosine) return html_section("Sentences", html_note("Two texts or more make a picture of sentences."));
  double widest = 1e-9;
  for (const auto& [x, y] : view.projection.points) widest = std::max({widest, std::abs(x), std::abs(y)});
  const auto axis = nice_axis(-widest, widest, 5, true);
  Chart chart{.title = "sentences",
              .x_label = concat("first component, ", fixed(100 * view.projection.first_share, 1), " % of the variance"),
              .y_label = concat("second component, ", fixed(100 * view.projection.second_share, 1), " %"),
              .series = {{.mark = ChartMark::points, .colour = 2, .hints = view.sentences}},
              .x = axis,
              .y = axis};
  for (const auto& [x, y] : view.projection.points) chart.series[0].points.push_back({x, y});
  const auto text =
      concat("Embeddings of ", view.sentences.size(), " texts (the mean of the tokens' states, last layer), ",
             "by their two principal components; a dot shows its text under the pointer. Mean cosine of two "
             "texts: ",
             fixed(*view.mean_cosine, 3), " (0: spread evenly, 1: one direction).");
  return html_section("Sentences", html_note(text) + chart_html(chart));
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
      html +=
          concat("<text x=\"", margin - 4, "\" y=\"", fixed(at, 1),
                 "\" text-anchor=\"end\" dominant-baseline=\"central\">", text, "</text><text transform=\"translate(",
                 fixed(at, 1), " ", margin - 4, ") rotate(-90)\" dominant-baseline=\"central\">", text, "</text>");
    }
    return html;
  }

  /// The square of `picture`, named by its layer and head; the labels are those of the element `labels`.
  std::string square(const std::string& picture, size_t layer, size_t head) const {
    const auto width = margin + side;
    return concat("<svg role=\"img\" width=\"", width, "\" height=\"", width + below, "\"><title>layer ", layer,
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
    return html_section("Attention", html_note("This attention has no matrix of probabilities to show."));
  constexpr int64_t most_pixels = 272;
  const auto size = static_cast<int64_t>(maps.tokens.size()), side = std::min(size, most_pixels);
  const MapFrame frame(maps.tokens);
  std::string tokens;
  for (const auto& token : maps.tokens) tokens += (tokens.empty() ? "" : " ") + token;
  std::string body = html_note(
      concat("A square for each head: a row is a query, whose token stands on the left, a column a key, whose "
             "token stands above. White is 0, black the largest ",
             side < size ? "mean of neighbours" : "probability", " of the head. The tokens",
             frame.stride > 1 ? concat(", of which one in ", frame.stride, " is named") : "", ": ", tokens));
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
  body += html_note(concat(counted(static_cast<uint64_t>(view.texts), "text"), ", checkpoint ", view.checkpoint, "; ",
                           view.scored_by, "."));
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

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/error.h"
#include "core/file.h"
#include "core/report/chart.h"
#include "objectives/config.h"
#include "train/inspection/inspect.h"

namespace cloze {

namespace {

/// A histogram as percentages of its own sum, so that all fit one axis.
struct Shares {
  std::string title;
  size_t colour = 0;
  std::vector<double> shares{};
  bool expected = false;  ///< a line; the others are bars
};

/// The histograms of a panel that are not empty.
std::vector<Shares> shares_of(const LengthCounts& l) {
  std::vector<Shares> all;
  const auto add = [&](std::string title, size_t colour, const auto& counts, bool expected = false) {
    std::vector<double> shares(counts.begin(), counts.end());
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (auto& x : shares) x *= 100 / sum;
    if (sum > 0) all.push_back({std::move(title), colour, std::move(shares), expected});
  };
  add("runs found, tokens", 1, l.runs);
  add("runs found, words", 2, l.words);
  add(concat("drawn, ", l.unit), 0, l.drawn);
  add(concat("expected of the draws, ", l.unit), 4, l.expected, true);
  return all;
}

/// The panel of lengths up to 30; without series where there are none.
Chart panel_of(const LengthCounts& l) {
  Chart panel{.title = l.name, .x_label = "length", .y_label = "share [%]"};
  const auto all = shares_of(l);
  size_t longest = 1, bars = 0;
  for (const auto& one : all) {
    longest = std::max(longest, std::min<size_t>(one.shares.size(), 31));
    bars += !one.expected;
  }
  const bool from_0 = !l.drawn.empty() && l.drawn[0] > 0;
  const double width = 0.8 / static_cast<double>(std::max<size_t>(1, bars));
  for (size_t k = 0; k < all.size(); ++k) {
    const double of_line = bars > 0 ? 0.4 - width / 2 : 0;  // on the bar of the draws
    const double shift = all[k].expected ? of_line : (static_cast<double>(k) + 0.5) * width - 0.4;
    ChartSeries series{.title = all[k].title,
                       .mark = all[k].expected ? ChartMark::dots : ChartMark::bars,
                       .colour = all[k].colour,
                       .bar_width = width};
    for (size_t n = from_0 ? 0 : 1; n < std::min(longest, all[k].shares.size()); ++n)
      series.points.push_back({static_cast<double>(n) + shift, all[k].shares[n]});
    panel.series.push_back(std::move(series));
  }
  const double first = from_0 ? -0.6 : 0.4, last = static_cast<double>(longest) - 0.4;
  panel.x = nice_axis(first, last, last - first <= 21 ? static_cast<int>(last - first) : 8, false);  // each length
  return panel;
}

constexpr const char* no_lengths =
    ": this objective has no spans, so there are no lengths to plot; leave --picture out";

}  // namespace

void check_picture(const Objectives& objectives, const std::string& file) {
  require<ConfigError>(std::filesystem::path(file).extension() == ".svg", file, ": must end in .svg");
  require<ConfigError>(any_that(objectives, &ObjectiveKind::draws_lengths), file, no_lengths);
}

void draw_lengths(const Inspection& inspection, const std::string& file) {
  std::vector<Chart> panels;
  for (const auto& lengths : inspection.lengths)
    if (auto panel = panel_of(lengths); !panel.series.empty()) panels.push_back(std::move(panel));
  require<ConfigError>(!panels.empty(), file, no_lengths);
  write_atomic(file, chart_svg("", panels));
}

}  // namespace cloze

#include <filesystem>
#include <numeric>

#include "analysis/inspect.h"
#include "core/file.h"
#include "run/process.h"

namespace cloze {

namespace {

/// A histogram as percentages of its own sum, so that all fit one axis.
struct Series {
  std::string title;
  const char* colour;
  std::vector<double> shares;
  bool expected = false;  ///< a line; the others are bars
};

/// The histograms of a panel that are not empty.
std::vector<Series> series_of(const LengthCounts& l) {
  std::vector<Series> series;
  const auto add = [&](std::string title, const char* colour, const auto& counts, bool expected = false) {
    std::vector<double> shares(counts.begin(), counts.end());
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (auto& x : shares) x *= 100 / sum;
    if (sum > 0) series.push_back({std::move(title), colour, std::move(shares), expected});
  };
  add("runs found, tokens", "#1f5fa8", l.runs);
  add("runs found, words", "#c0392b", l.words);
  add(words("drawn, ", l.unit), "#8a8f98", l.drawn);
  add(words("expected of the draws, ", l.unit), "#000000", l.expected, true);
  return series;
}

/// The parts of a gnuplot script.
struct Script {
  std::string data, plots;
  size_t blocks = 0;  ///< named blocks in `data`
};

/// Adds lengths [first, end) of a series; returns the name of their block.
std::string add_block(const Series& series, size_t first, size_t end, Script& script) {
  const std::string block = words("$p", script.blocks++);
  script.data += block + " << EOD\n";
  for (size_t n = first; n < std::min(end, series.shares.size()); ++n)
    script.data += words(n, " ", series.shares[n], "\n");
  script.data += "EOD\n";
  return block;
}

/// Adds a panel, of lengths up to 30.
void add_panel(const LengthCounts& l, Script& script) {
  const auto series = series_of(l);
  if (series.empty()) return;
  size_t longest = 1, bars = 0;
  for (const auto& s : series) {
    longest = std::max(longest, std::min<size_t>(s.shares.size(), 31));
    bars += !s.expected;
  }
  const bool from_0 = !l.drawn.empty() && l.drawn[0] > 0;
  const double width = 0.8 / static_cast<double>(std::max<size_t>(1, bars));
  script.plots += words("set boxwidth ", width, "\nset title '", l.name, "'\nset xrange [", from_0 ? -0.6 : 0.4, ":",
                        static_cast<double>(longest) - 0.4, "]\nset xtics nomirror ", longest > 20 ? 5 : 1, "\n");
  for (size_t k = 0; k < series.size(); ++k) {
    const auto& s = series[k];
    const auto block = add_block(s, from_0 ? 0 : 1, longest, script);
    const double of_line = bars > 0 ? 0.4 - width / 2 : 0;  // on the bar of the draws
    const double shift = s.expected ? of_line : (static_cast<double>(k) + 0.5) * width - 0.4;
    script.plots += words(k ? ", " : "plot ", block, " using ($1+", shift, "):2 ",
                          s.expected ? "with linespoints lc rgb '#000000' pt 7 ps 0.6 lw 1.2"
                                     : words("with boxes lc rgb '", s.colour, "'"),
                          " title '", s.title, "'");
  }
  script.plots += "\n";
}

}  // namespace

void draw_lengths(const Inspection& found, const std::string& file) {
  const auto path = std::filesystem::absolute(file);
  const bool svg = path.extension() == ".svg";
  require<ConfigError>(svg || path.extension() == ".png", file, ": must end in .svg or .png");
  Script parts;
  for (const auto& lengths : found.lengths) add_panel(lengths, parts);
  require<ConfigError>(!parts.plots.empty(), file,
                       ": this objective has no spans, so there are no lengths to plot; leave --picture out");
  const size_t panels = found.lengths.size();
  const std::string script = words("set terminal ", svg ? "svg" : "pngcairo", " size 760,", 340 * panels + 40,
                                   " background 'white'\nset output '", path.filename().string(),
                                   "'\nset style fill solid 0.8 noborder\nset grid y lc rgb '#dddddd'\n",
                                   "set xlabel 'length'\nset ylabel 'share [%]'\nset yrange [0:*]\n", parts.data,
                                   "set multiplot layout ", panels, ",1\n", parts.plots, "unset multiplot\n");
  const auto name = path.string() + ".gnuplot";
  write_atomic(name, script);
  const bool drawn = run_gnuplot(path.parent_path().string(), path.filename().string() + ".gnuplot");
  std::filesystem::remove(name);
  require(drawn && std::filesystem::exists(path), file,
          ": not plotted; gnuplot is missing or failed (Debian: apt-get install gnuplot-nox)");
}

}  // namespace cloze

#include <filesystem>
#include <numeric>

#include "analysis/inspect.h"
#include "core/file.h"
#include "run/process.h"

namespace cloze {

void draw_lengths(const Inspection& found, const std::string& file) {
  const auto path = std::filesystem::absolute(file);
  const bool svg = path.extension() == ".svg";
  require<ConfigError>(svg || path.extension() == ".png", file, ": must end in .svg or .png");
  std::string data, plots;
  const size_t panels = std::max<size_t>(1, found.lengths.size());
  for (const auto& l : found.lengths) {
    // Each series as shares of its own sum, so that all fit one axis; lengths up to 30.
    struct Series {
      std::string title;
      const char* colour;
      std::vector<double> counts;
    };
    std::vector<Series> series;
    const auto add = [&](std::string title, const char* colour, const auto& counts) {
      std::vector<double> shares(counts.begin(), counts.end());
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (auto& x : shares) x *= 100 / sum;
      if (sum > 0) series.push_back({std::move(title), colour, std::move(shares)});
    };
    add("runs found, tokens", "#1f5fa8", l.runs), add("runs found, words", "#c0392b", l.words),
        add(words("drawn, ", l.unit), "#8a8f98", l.drawn);
    const size_t bars = series.size();
    add(words("expected of the draws, ", l.unit), "#000000", l.expected);
    size_t longest = 1;
    for (const auto& s : series) longest = std::max(longest, std::min<size_t>(s.counts.size(), 31));
    const bool from_0 = !l.drawn.empty() && l.drawn[0] > 0;
    std::string plot;
    for (size_t k = 0; k < series.size(); ++k) {
      const std::string block = words("$p", data.size());
      data += block + " << EOD\n";
      for (size_t n = from_0 ? 0 : 1; n < std::min(longest, series[k].counts.size()); ++n)
        data += words(n, " ", series[k].counts[n], "\n");
      data += "EOD\n";
      const double width = 0.8 / static_cast<double>(bars), shift = k < bars
                                                                        ? (static_cast<double>(k) + 0.5) * width - 0.4
                                                                    : bars > 0 ? 0.4 - width / 2
                                                                               : 0;
      plot += words(k ? ", " : "plot ", block, " using ($1+", shift, "):2 ",
                    k < bars ? words("with boxes lc rgb '", series[k].colour, "'")
                             : "with linespoints lc rgb '#000000' pt 7 ps 0.6 lw 1.2",
                    " title '", series[k].title, "'");
      if (k == 0)
        plots += words("set boxwidth ", width, "\nset title '", l.name, "'\nset xrange [", from_0 ? -0.6 : 0.4, ":",
                       static_cast<double>(longest) - 0.4, "]\nset xtics nomirror ", longest > 20 ? 5 : 1, "\n");
    }
    if (!series.empty()) plots += plot + "\n";
  }
  require<ConfigError>(!plots.empty(), file,
                       ": this objective has no spans, so there are no lengths to plot; leave --picture out");
  const std::string script = words("set terminal ", svg ? "svg" : "pngcairo", " size 760,", 340 * panels + 40,
                                   " background 'white'\nset output '", path.filename().string(),
                                   "'\nset style fill solid 0.8 noborder\nset grid y lc rgb '#dddddd'\n",
                                   "set xlabel 'length'\nset ylabel 'share [%]'\nset yrange [0:*]\n", data,
                                   "set multiplot layout ", panels, ",1\n", plots, "unset multiplot\n");
  const auto name = path.string() + ".gnuplot";
  write_atomic(name, script);
  const bool drawn = run_gnuplot(path.parent_path().string(), path.filename().string() + ".gnuplot");
  std::filesystem::remove(name);
  require(drawn && std::filesystem::exists(path), file,
          ": not plotted; gnuplot is missing or failed (Debian: apt-get install gnuplot-nox)");
}

}  // namespace cloze

#pragma once
// The picture of a run: every loss over its steps, beside what an answer without reading would have.
#include <string>
#include <vector>

namespace cloze {

struct CurvePoint {
  double x = 0, y = 0;
};

/// The curve under the noise: at each point the value of a straight line fitted to its neighbours, weighted by their
/// distance; an eighth of the points before it on either side, so that the steep beginning keeps its shape.
/// Neither lags behind a falling loss, as a running mean does, nor needs a correction at its first points.
/// Source: Cleveland 1979, "Robust locally weighted regression", section 2, without the robust repeats.
std::vector<double> smoothed(const std::vector<CurvePoint>& points);

/// Draws `run`/loss.svg and loss.png of metrics.jsonl with gnuplot: a panel for each loss with training, smoothed and
/// held out; false, with a word in the log, when that did not work. `unigram_loss` stands in the panels of token losses
/// whose rows name no baseline; 0: in none. More than 2,000 points are drawn as the lowest and the highest of
/// neighbours, and smoothed as their means.
bool draw_loss(const std::string& run, double unigram_loss);

}  // namespace cloze

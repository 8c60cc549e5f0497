#pragma once
// The loss curves of a run: every loss over its steps, next to its baseline.
#include <string>
#include <vector>

#include "core/report/axis.h"
#include "objectives/config.h"

namespace cloze {

/// A loss at a step: x is the step, y the loss [nats per prediction].
using LossPoint = PlotPoint;

/// The smoothed curve: at each point the value of a straight line fitted to its neighbours, weighted by their distance.
/// The window reaches, on either side, an eighth of the number of preceding points, so that the steep start keeps its
/// shape. Unlike a running mean it does not lag on a falling loss and needs no correction at the first points.
/// Source: Cleveland 1979, "Robust locally weighted regression", section 2, without the robustness iterations.
std::vector<double> smoothed(const std::vector<LossPoint>& points);

/// Plots metrics.jsonl to `run`/loss.svg: a panel for each loss with its training, smoothed and held-out curves.
/// `objectives`: those of the run. Returns false where no loss has two points, and, with a line in the log, where the
/// file cannot be written. `unigram_loss` is the baseline in the panels of token losses whose rows name none; 0: no
/// baseline. More than 2,000 points are binned: the plot shows the minimum and the maximum of each bin, and smoothing
/// runs on the means of the bins.
bool draw_loss(const std::string& run, const Objectives& objectives, double unigram_loss);

}  // namespace cloze

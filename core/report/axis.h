#pragma once
// Axes of plots: where values stand, and which ticks are named.
#include <string>
#include <vector>

namespace cloze {

/// An axis, linear or logarithmic.
struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks{};
  bool logarithmic = false;
  /// Where a value stands: 0 at `low`, 1 at `high`.
  double fraction(double value) const;
  /// The value that stands there.
  double at(double fraction) const;
};

/// An axis over [low, high] with about `count` ticks at multiples of 1, 2 or 5 times a power of ten. `loose`: it begins
/// and ends at ticks. Values that are not finite give the axis of [0, 1].
/// Source: Heckbert 1990, "Nice numbers for graph labels", Graphics Gems.
Axis nice_axis(double low, double high, int count, bool loose);

/// A logarithmic axis over [low, high], both above 0, with ticks at powers of ten, over less than three decades also at
/// 2 and 5 times these. Where no two of these lie within, the ticks are the ends.
Axis log_axis(double low, double high);

/// The text of a tick: all ticks of a linear axis have the same decimals; from 10,000 on (of a logarithmic axis from
/// 1,000 on) 12.5 k, 20 M.
std::string tick_text(const Axis& axis, double tick);

/// A point of a plot.
struct PlotPoint {
  double x = 0, y = 0;
};

}  // namespace cloze

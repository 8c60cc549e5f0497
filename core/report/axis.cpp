#include "core/report/axis.h"

#include <algorithm>
#include <cmath>

#include "core/log.h"
#include "core/text.h"

namespace cloze {

double Axis::fraction(double value) const {
  return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

double Axis::at(double fraction) const {
  return logarithmic ? low * std::pow(high / low, fraction) : low + fraction * (high - low);
}

Axis log_axis(double low, double high) {
  Axis axis{.low = low, .high = high, .logarithmic = true};
  const double decades = std::log10(high / low);
  const int every = std::max(1, static_cast<int>(decades / 6));
  const auto add = [&](double tick) {
    if (tick >= low && tick <= high) axis.ticks.push_back(tick);
  };
  for (int power = static_cast<int>(std::floor(std::log10(low))); std::pow(10, power) <= high; power += every) {
    add(std::pow(10, power));
    if (decades >= 3) continue;
    add(2 * std::pow(10, power));
    add(5 * std::pow(10, power));
  }
  if (axis.ticks.size() < 2) axis.ticks = {low, high};
  return axis;
}

Axis nice_axis(double low, double high, int count, bool loose) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) {
    low = 0;
    high = 1;
  }
  if (high - low < 1e-12 * std::max(std::abs(low), std::abs(high)) || low == high) {
    const double room = low == 0 ? 1 : 0.01 * std::abs(low);
    low -= room;
    high += room;
  }
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough))), lead = rough / power;
  const double step = power * (lead < 1.5 ? 1 : lead < 3 ? 2 : lead < 7 ? 5 : 10);
  Axis axis{.low = low, .high = high};
  if (loose) {
    axis.low = std::floor(low / step + 1e-9) * step;
    axis.high = std::ceil(high / step - 1e-9) * step;
  }
  const auto first = std::llround(std::ceil(axis.low / step - 1e-9)),
             last = std::llround(std::floor(axis.high / step + 1e-9));
  for (auto i = first; i <= last; ++i) axis.ticks.push_back(static_cast<double>(i) * step);
  return axis;
}

std::string tick_text(const Axis& axis, double tick) {
  if (axis.logarithmic) return tick >= 1e3 && tick < 1e16 ? with_prefix(tick) : digits(tick, tick < 1e3 ? 4 : 2);
  if (std::max(std::abs(axis.low), std::abs(axis.high)) >= 10'000) return tick == 0 ? "0" : with_prefix(tick);
  const double step = axis.ticks.size() > 1 ? axis.ticks[1] - axis.ticks[0] : 1;
  const int decimals = std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 9);
  return (tick < 0 ? "−" : "") + fixed(std::abs(tick), decimals);
}

}  // namespace cloze

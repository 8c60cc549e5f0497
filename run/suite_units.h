#pragma once
// The units in which figures of evaluation suites are printed.
#include <cmath>
#include <cstdio>
#include <string>

namespace cloze {

/// Whether the field prints a metric in percent.
inline bool is_share(const std::string& metric) {
  return metric.ends_with("accuracy") || metric.find("p@") != std::string::npos;
}

/// A metric with its unit: `accuracy %`.
inline std::string metric_words(const std::string& metric) { return metric + (is_share(metric) ? " %" : ""); }

/// A figure in the unit of its metric.
inline double in_unit(double value, const std::string& metric) { return is_share(metric) ? 100 * value : value; }

/// The same as a cell of a table; `none` for NaN.
inline std::string figure_cell(double value, const std::string& metric) {
  if (std::isnan(value)) return "none";
  char text[48];
  std::snprintf(text, sizeof text, is_share(metric) ? "%.2f" : "%.4f", in_unit(value, metric));
  return text;
}

}  // namespace cloze

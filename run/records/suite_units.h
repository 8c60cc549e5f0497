#pragma once
// Names of evaluation suites, and the units and directions of their figures.
#include <cmath>
#include <filesystem>
#include <string>

#include "core/text.h"

namespace cloze {

/// The name of a suite: that of its file or folder without the folders before it and the endings of JSON lines, of
/// compression and of tables.
inline std::string suite_name(const std::string& path) {
  auto whole = std::filesystem::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // of a path that ends in a slash
  auto name = whole.filename().string();
  for (const std::string ending : {".gz", ".xz", ".jsonl", ".json", ".tsv", ".csv", ".txt", ".yaml"})
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

/// Whether a larger figure is a better one: all but surprisals.
inline bool is_higher_better(const std::string& metric) { return metric != "surprisal"; }

/// Whether the field prints a metric in percent.
inline bool is_proportion(const std::string& metric) {
  return metric.ends_with("accuracy") || metric.find("p@") != std::string::npos;
}

/// A metric with its unit: `accuracy %`.
inline std::string metric_words(const std::string& metric) { return metric + (is_proportion(metric) ? " %" : ""); }

/// A figure in the unit of its metric.
inline double in_unit(double value, const std::string& metric) { return is_proportion(metric) ? 100 * value : value; }

/// The same as a cell of a table; `none` for NaN.
inline std::string figure_cell(double value, const std::string& metric) {
  return std::isnan(value) ? "none" : fixed(in_unit(value, metric), is_proportion(metric) ? 2 : 4);
}

}  // namespace cloze

#pragma once
// A value of a metric, as tasks and suites give it, and the units in which it is shown.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/report/significance.h"
#include "core/text.h"

namespace cloze {

/// The groups of a suite's items, from wide to narrow.
enum class SuiteLevel { suite, phenomenon, paradigm };

/// A metric of answers. Shares and correlations are in [0, 1] and [-1, 1], never in percent.
struct Score {
  SuiteLevel level = SuiteLevel::suite;
  std::string group{};                                      ///< of phenomenon and paradigm; empty: all items
  std::string metric{};                                     ///< `accuracy`, `spearman`, `p@1`, `f1_macro`
  double value = std::numeric_limits<double>::quiet_NaN();  ///< NaN: it is undefined
  std::optional<Bounds> interval{};                         ///< of 95 %; none where the items do not give one
  std::optional<double> official{};  ///< by the rules of the suite's published program, where they differ; NaN: that
                                     ///< cannot answer
  int64_t count = 0;                 ///< what it is of: items, words of a tag accuracy, questions of spans
  int64_t ties = 0;                  ///< items whose best candidates score the same
  std::string reason{};              ///< of a task: why there is no value
  std::vector<std::pair<std::string, double>> floors{};  ///< of a task: the same of each floor, by its name
  bool is_defined() const { return !std::isnan(value); }
  bool operator==(const Score&) const = default;
};

/// Whether a larger score is a better one: all but surprisals.
inline bool is_higher_better(const std::string& metric) { return metric != "surprisal"; }

/// Whether the field prints a metric in percent.
inline bool is_proportion(const std::string& metric) {
  const bool is_of_texts = metric.starts_with("rouge") || metric == "bleu" || metric == "chrf";
  return metric.ends_with("accuracy") || metric.find("p@") != std::string::npos || is_of_texts;
}

/// A metric with its unit: `accuracy %`.
inline std::string metric_words(const std::string& metric) { return metric + (is_proportion(metric) ? " %" : ""); }

/// A score in the unit of its metric.
inline double in_unit(double value, const std::string& metric) { return is_proportion(metric) ? 100 * value : value; }

/// The same as a cell of a table; `none` for NaN.
inline std::string score_cell(double value, const std::string& metric) {
  return std::isnan(value) ? "none" : fixed(in_unit(value, metric), is_proportion(metric) ? 2 : 4);
}

/// `[25.00, 75.00]` in the unit of the metric; empty for a score without an interval.
inline std::string interval_cell(const Score& score) {
  if (!score.interval) return "";
  return concat("[", score_cell(score.interval->low, score.metric), ", ",
                score_cell(score.interval->high, score.metric), "]");
}

/// `66.71 [64.01, 69.40]`
inline std::string value_cell(const Score& score) {
  return concat(score_cell(score.value, score.metric), score.interval ? " " : "", interval_cell(score));
}

}  // namespace cloze

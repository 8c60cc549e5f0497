#pragma once
// suites.json of a run: the scores of its suites at its end, with the sums that statistics over runs need.
//
//   {"step", "suites": {NAME: {METRIC: {"value", "higher_is_better", "floor", "asked", "items", "sum": [E],
//   "count": [E]}}}, "xxh3"}
//
// Sums are over the clusters of a suite (paradigms), of a suite with a single one over its items. They are left out
// where a score is no mean, such as a correlation.
#include <map>
#include <string>
#include <vector>

#include "core/json_fields.h"

namespace cloze {

/// A score of a suite.
struct RecordedScore {
  double value = 0;  ///< as Score has it: accuracies from 0 to 1
  bool higher_is_better = true;
  double floor = 0;                    ///< what guessing reaches; 0: not known
  std::string items_hash{};            ///< XXH3 of the items; empty: not known
  int64_t items = 0;                   ///< that are right or wrong; 0: not known
  std::vector<double> sum{}, count{};  ///< [E]; the value is the sum of the first by that of the second
};
template <class V>
void describe(V& v, RecordedScore& f) {
  v.number("value", f.value);
  v("higher_is_better", f.higher_is_better);
  v("floor", f.floor);
  v("asked", f.items_hash);
  v.or_else("items", f.items, 0);
  v.numbers("sum", f.sum);
  v.numbers("count", f.count);
}

/// The file, whose hash is over the suites.
struct SuiteRecord {
  int64_t step = 0;
  std::map<std::string, std::map<std::string, RecordedScore>> suites{};  ///< by suite and metric
  std::string xxh3{};
};
template <class V>
void describe(V& v, SuiteRecord& r) {
  v("step", r.step);
  v("suites", r.suites);
  v("xxh3", r.xxh3);
}

}  // namespace cloze

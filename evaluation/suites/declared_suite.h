#pragma once
// A suite of a known shape, said in a few lines of YAML: fields of a line -> passages -> metric.
//
//   suite: agreement
//   items: items/agreement.jsonl
//   passages: ["{prefix} {good}", "{prefix} {bad}"]
//   right: 0
//   metric: accuracy
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config_rule.h"
#include "evaluation/suites/ranking.h"

namespace cloze {

/// What the passages of an item are compared for.
enum class DeclaredMetric { accuracy, spearman };
constexpr auto choices(DeclaredMetric) {
  using enum DeclaredMetric;
  return std::array{Choice{accuracy, "accuracy", "the fraction of items whose right passage has the highest score"},
                    Choice{spearman, "spearman", "of pairs: the correlation of scores with the judgements of people"}};
}

/// The keys of the file. A pattern is a text with fields of the line in braces; `{{` and `}}` are braces.
struct DeclaredSuite {
  std::string suite{}, items{};
  std::vector<std::string> passages{}, context{};
  std::string right = "0", paradigm{}, phenomenon{};
  DeclaredMetric metric = DeclaredMetric::accuracy;
};
template <class V>
void describe(V& v, DeclaredSuite& c) {
  v("suite", c.suite, "name of the suite; empty: that of the file");
  v("items", c.items, "file of JSON lines, one item each; seen from the folder of this file");
  v("passages", c.passages, "patterns of the passages that are compared; {field} alone may be a list of them");
  v("context", c.context, "pattern of what stands before all passages, or one for each; it is read and not scored");
  v("right", c.right,
    "number of the right passage, from 0, or the field that has it; of spearman the field with the "
    "fraction of people who prefer the first");
  v("metric", c.metric, "");
  v("paradigm", c.paradigm, "pattern of the narrowest group of an item; empty: all items are one");
  v("phenomenon", c.phenomenon, "pattern of the group of its paradigm; empty: none");
}

/// The suite that a file NAME.yaml declares; none for other files. Throws ConfigError for mistakes in it, DataError
/// with the place for lines that lack a field, or have too few passages or no right one.
std::optional<RankingSuite> read_declared(const SuiteFiles& files);

}  // namespace cloze

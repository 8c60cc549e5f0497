#pragma once
// The values of two arms, paired by the seeds of their runs.
#include <vector>

#include "study/measures/metric.h"

namespace cloze {

/// The value of a run.
struct SeedValue {
  int64_t seed = 0;
  const MetricValue* of = nullptr;
};
using ArmValues = std::vector<SeedValue>;

/// Mean and spread of an arm.
Summary summarize(const ArmValues& arm);

/// Values of the seeds that two arms share, in the order of the first.
struct Pairs {
  std::vector<const MetricValue*> arm{}, baseline{};
  Pairs() = default;
  Pairs(const ArmValues& arm, const ArmValues& baseline);
  size_t count() const { return arm.size(); }

  /// Everything of their difference but p_holm, with the error of examples where all have the same; without pairs an
  /// empty one.
  Difference compare(const ComparisonRules& rules) const;
  /// The difference with its p, without what a verdict needs besides.
  Difference test(const ComparisonRules& rules) const;

 private:
  ExampleError error_of_examples() const;
};

}  // namespace cloze

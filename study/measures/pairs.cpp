#include "study/measures/pairs.h"

#include <algorithm>

namespace cloze {

namespace {

std::vector<double> numbers_of(const std::vector<const MetricValue*>& values) {
  std::vector<double> numbers;
  for (const auto* value : values) numbers.push_back(value->value);
  return numbers;
}

std::vector<const ExampleLosses*> examples_of(const std::vector<const MetricValue*>& values) {
  std::vector<const ExampleLosses*> examples;
  for (const auto* value : values) examples.push_back(&value->examples);
  return examples;
}

}  // namespace

Summary summarize(const ArmValues& arm) {
  std::vector<double> numbers;
  for (const auto& [seed, value] : arm) numbers.push_back(value->value);
  return summarize(numbers);
}

Pairs::Pairs(const ArmValues& of_arm, const ArmValues& of_baseline) {
  for (const auto& [seed, value] : of_arm) {
    const auto other = std::ranges::find(of_baseline, seed, &SeedValue::seed);
    if (other == of_baseline.end()) continue;
    arm.push_back(value);
    baseline.push_back(other->of);
  }
}

ExampleError Pairs::error_of_examples() const {
  const auto& first = *baseline.front();
  const auto is_same = [&](const MetricValue* value) {
    return value->text == first.text && value->examples.sum.size() == first.examples.sum.size();
  };
  const bool has_examples = !first.examples.sum.empty() || !first.examples.draws.empty();
  if (!has_examples || !std::ranges::all_of(arm, is_same) || !std::ranges::all_of(baseline, is_same)) return {};
  return example_error(examples_of(arm), examples_of(baseline));
}

Difference Pairs::compare(const ComparisonRules& rules) const {
  if (arm.empty()) return {};
  return compare_seeds(numbers_of(arm), numbers_of(baseline), rules,
                       count() > 1 ? error_of_examples() : ExampleError{});
}

Difference Pairs::test(const ComparisonRules& rules) const {
  auto difference = paired_t_test(numbers_of(arm), numbers_of(baseline), rules);
  if (count() < 2) return difference;
  difference.examples = error_of_examples();
  difference.p = error_of(difference).p(difference.mean);
  return difference;
}

}  // namespace cloze

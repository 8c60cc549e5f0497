#include "data/sampling/step_batches.h"

#include "core/part_range.h"
#include "core/random.h"

namespace cloze {

namespace {

/// The rows of a part, from the shortest to the longest.
std::vector<uint64_t> dealt_to(const PartRange& batches, uint64_t rows, const StepBatches& step) {
  std::vector<uint64_t> own;
  for (uint64_t first = 0, turn = 0; first < rows; first += step.count, ++turn)
    for (uint64_t i = 0; i < step.count && first + i < rows; ++i) {
      const auto batch = static_cast<int64_t>(turn % 2 == 0 ? i : step.count - 1 - i);
      if (batch >= batches.begin && batch < batches.end) own.push_back(first + i);
    }
  return own;
}

}  // namespace

std::vector<std::vector<uint64_t>> dealt_by_length(uint64_t rows, const StepBatches& step, uint64_t key) {
  std::vector<std::vector<uint64_t>> dealt;
  const auto parts = static_cast<int64_t>(step.parts), count = static_cast<int64_t>(step.count);
  for (int64_t part = 0; part < parts; ++part) {
    const auto batches = parts_of(part, parts, count);
    const auto own = dealt_to(batches, rows, step);
    const Permutation order(static_cast<uint64_t>(batches.size()), key);
    for (uint64_t batch = 0; batch < static_cast<uint64_t>(batches.size()); ++batch) {
      auto& of_batch = dealt.emplace_back();
      for (uint64_t i = order(batch) * step.batch_size; i < (order(batch) + 1) * step.batch_size && i < own.size(); ++i)
        of_batch.push_back(own[i]);
    }
  }
  return dealt;
}

}  // namespace cloze

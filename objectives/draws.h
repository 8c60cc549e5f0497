#pragma once
// Sampling without replacement.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/random.h"

namespace cloze {

/// Partial Fisher-Yates shuffle: the first k of `items` become a random sample of all, in random order.
template <class T>
void partial_shuffle(std::vector<T>& items, size_t k, Stream& stream) {
  for (size_t i = 0; i < k; ++i) std::swap(items[i], items[i + stream.below(items.size() - i)]);
}

/// Marks a uniformly random subset of k of n elements with k draws. Source: Floyd in Bentley and Floyd 1987, "A sample
/// of brilliance".
inline void mark_subset(std::vector<uint8_t>& marks, int64_t n, int64_t k, Stream& stream) {
  marks.assign(static_cast<size_t>(n), 0);
  for (int64_t j = n - k; j < n; ++j) {
    const uint64_t at = stream.below(static_cast<uint64_t>(j) + 1);
    marks[marks[at] ? static_cast<size_t>(j) : at] = 1;
  }
}

}  // namespace cloze

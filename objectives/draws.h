#pragma once
// Sampling from a list.
#include <cstddef>
#include <utility>
#include <vector>

#include "core/random.h"

namespace cloze {

/// Partial Fisher-Yates shuffle: the first k of `items` become a random sample of all, in random order.
template <class T>
void partial_shuffle(std::vector<T>& items, size_t k, Stream& stream) {
  for (size_t i = 0; i < k; ++i) std::swap(items[i], items[i + stream.below(items.size() - i)]);
}

}  // namespace cloze

#pragma once
// The order in which a task's items are trained on.
#include <cstdint>

#include "core/random.h"

namespace cloze {

/// The item that is trained on as number `index` since the beginning, `n` in an epoch: every epoch is a permutation of
/// all items by (seed, `order`, epoch), so that there is no state to save.
///
/// order   that of the training rows: Rng(rng.key("train")) of the generator `rng` of a run's stream `order`
///         (run/config/train_config.h, `rng_of`)
/// n       items, or groups of rows (`row_groups`); n > 0
inline uint64_t item_at(const Rng& order, uint64_t n, uint64_t index) {
  const auto epoch = index / n;
  return Permutation(n, mix(order.key("task order"), epoch))(index % n);
}

}  // namespace cloze

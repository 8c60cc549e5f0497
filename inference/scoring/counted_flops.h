#pragma once
// What the forward passes over rows of texts cost.
#include <vector>

#include "objectives/network.h"

namespace cloze {

/// While one exists, the forward passes that scores and embeddings need are counted, as Cost counts multiply-adds. One
/// at a time.
class CountedFlops {
 public:
  CountedFlops() { counting_ = this; }
  ~CountedFlops() { counting_ = nullptr; }
  CountedFlops(const CountedFlops&) = delete;
  CountedFlops& operator=(const CountedFlops&) = delete;
  double total() const { return total_; }
  /// Adds a forward pass over rows, and that of a head, if one is given; nothing where no count exists.
  static void add(const Network& network, const Objective* head, const std::vector<RowSizes>& rows) {
    if (!counting_) return;
    Cost cost;
    if (head) cost = head->cost(*network.backbone, rows);
    counting_->total_ += 2 * (network.backbone->multiply_adds(rows) + cost.trained + cost.frozen);
  }

 private:
  static inline CountedFlops* counting_ = nullptr;
  double total_ = 0;
};

}  // namespace cloze

#include "inference/scoring/counted_flops.h"

namespace cloze {

namespace {

CountedFlops* counting = nullptr;

}  // namespace

CountedFlops::CountedFlops() { counting = this; }
CountedFlops::~CountedFlops() { counting = nullptr; }

void CountedFlops::add(const Network& network, const Objective* head, const std::vector<RowSizes>& rows) {
  if (!counting) return;
  Cost cost;
  if (head) cost = head->cost(*network.backbone, rows);
  counting->total_ += 2 * (network.backbone->multiply_adds(rows) + cost.trained + cost.frozen);
}

}  // namespace cloze

#pragma once
// What the first process of a run has the others do.
#include "train/training.h"

namespace cloze {

/// What all processes of a run do next, together.
enum class Order { step, measure, save, end };

/// Has the others do what the first process, which calls this, does next; they say how long they have waited.
void give_order(Training& training, Order order);
/// Waits for what the first process does next, and takes its time of training, which budgets are measured by.
Order next_order(Training& training);

/// Brings the other processes to where the first one stands: its progress, weights, moments and mems.
void share_start(Training& training);

}  // namespace cloze

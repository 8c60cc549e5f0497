#pragma once
// The learning rate schedule, as pure functions of progress.
#include "run/config.h"

namespace cloze {

/// Factor on the peak learning rate for the update after `done` of `total` (steps, tokens or seconds).
/// Linear with `decay_from_start`: 1 - done / total once the warm-up ends, so that the rate drops there, as in
/// google-bert; its first update has rate 0 (as in optimization.py, which reads the step before it increments it).
double schedule_factor(const ScheduleConfig& schedule, double done, double total);

/// Length of the warm-up in the unit of `total`: below 1 a fraction of it, else a number of steps.
double warmup_of(const ScheduleConfig& schedule, double total);

}  // namespace cloze

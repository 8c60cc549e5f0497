#pragma once
// The learning rate over a run, as pure functions of progress.
#include "run/config.h"

namespace cloze {

/// Factor of the peak learning rate for the update that follows `done` of `total` (steps, tokens or seconds).
/// Linear with `decay_from_start`: 1 - done / total once the warm-up ends, so that the rate drops there, as in
/// google-bert; its first update has rate 0 (spec of optimization.py, where the step is read before it is raised).
double schedule_factor(const ScheduleConfig& schedule, double done, double total);

/// Warm-up in the unit of `total`: a share of it below 1, else a number of steps.
double warmup_of(const ScheduleConfig& schedule, double total);

}  // namespace cloze

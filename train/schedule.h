#pragma once
// The learning rate over a run, as pure functions of progress.
#include "train/config.h"

namespace cloze {

/// Factor of the peak learning rate for the update that follows `done` of `total` (steps, tokens or seconds).
/// Linear with `decay_from_start`: 1 - done / total once the warm-up ends, so that the rate drops there, as in
/// google-bert; its first update has rate 0 (spec of optimization.py, where the step is read before it is raised).
double schedule_factor(const ScheduleConfig& schedule, double done, double total);

/// Warm-up in the unit of `total`: a share of it below 1, else a number of steps.
double warmup_of(const ScheduleConfig& schedule, double total);

/// How much of a budget is used: by the limit that is nearest its end.
struct Progress {
  double done = 0, total = 1;
  bool over() const { return done >= total; }
  double share() const { return done / total; }
};

/// Counted in steps where steps are limited, whichever limit is nearest, since a warm-up may be given in steps; else in
/// tokens or seconds. A budget without limits is never over.
Progress progress_of(const BudgetConfig& budget, int64_t steps, int64_t tokens, double seconds);

}  // namespace cloze

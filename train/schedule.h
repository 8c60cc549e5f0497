#pragma once
// The learning rate schedule, as pure functions of progress.
#include "run/config/config.h"

namespace cloze {

/// Factor on the peak learning rate for the update after `done` of `total` (steps, tokens or seconds).
/// Linear with `decay_from_start`: 1 - done / total once the warm-up ends, so that the rate drops there, as in
/// google-bert; its first update has rate 0 (as in optimization.py, which reads the step before it increments it).
///
/// wsd          Hu et al. 2024 (MiniCPM, arXiv 2404.06395), section 4, with the decays of Hagele et al. 2024
///              (arXiv 2405.18392). Differs: no exponential decay.
/// wsd_s        Wen et al. 2024 (arXiv 2410.05192), every budget twice the one before, with the decays of wsd.
/// one_cycle    Smith and Topin 2018 as PyTorch's OneCycleLR of two phases. Differs: momentum stays; PyTorch ends each
///              phase one update earlier, so that its factors are those of `total` - 1 and `warmup` - 1.
/// transformer  Vaswani et al. 2017, equation 3, divided by its peak (d_model warmup)^-0.5.
double schedule_factor(const ScheduleConfig& schedule, double done, double total);

/// Length of the warm-up in the unit of `total`: below 1 a fraction of it, else a number of steps.
double warmup_of(const ScheduleConfig& schedule, double total);

/// Whether the rates until `step`, which stands at the share `used` of the budget, would be others under another
/// budget.
bool follows_budget(const ScheduleConfig& schedule, int64_t step, double used);

/// True if two schedules give a step the same rate as long as each is within its stable share.
bool same_stable_rates(const ScheduleConfig& a, const ScheduleConfig& b);

}  // namespace cloze

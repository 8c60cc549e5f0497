#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cloze {

double warmup_of(const ScheduleConfig& s, double total) { return s.warmup < 1 ? s.warmup * total : s.warmup; }

double schedule_factor(const ScheduleConfig& s, double done, double total) {
  const double warmup = warmup_of(s, total);
  if (done < warmup && !(s.decay_in_warmup && s.decay_from_start)) return done / warmup;
  const double rise = done < warmup ? done / warmup : 1;
  if (s.shape == ScheduleShape::constant) return rise;
  if (s.shape == ScheduleShape::inverse_sqrt) return rise * std::sqrt(std::max(warmup, 1.0) / std::max(done, 1.0));
  const double rest = std::max(total - warmup, 1e-12);
  double left = s.decay_from_start ? 1 - done / total : 1 - (done - warmup) / rest;
  left = std::clamp(left, 0.0, 1.0);
  if (s.shape == ScheduleShape::cosine) left = 0.5 * (1 + std::cos(std::numbers::pi * (1 - left)));
  return rise * (s.end_factor + (1 - s.end_factor) * left);
}

}  // namespace cloze

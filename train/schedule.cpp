#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cloze {

namespace {

/// From 1 to 0 by half a cosine.
double half_cosine(double part) { return 0.5 * (1 + std::cos(std::numbers::pi * part)); }

/// What is left of a decay after `part` of it, in [0, 1].
double left_of_decay(DecayForm form, double part) {
  switch (form) {
    case DecayForm::linear:
      return 1 - part;
    case DecayForm::cosine:
      return half_cosine(part);
    case DecayForm::one_minus_sqrt:
      return 1 - std::sqrt(part);
  }
  fail("this form of a decay is not known");
}

/// The part of a decay that is over when the next budget of wsd or wsd_s ends at `end`; 0 before it.
double part_of_decay(const ScheduleConfig& s, double done, double end) {
  const double start = end * (1 - s.decay);
  return done <= start ? 0 : std::min(1.0, (done - start) / (end - start));
}

/// The end of the budget that `done` lies in: of wsd `total`, of wsd_s also total / 2, total / 4, ...
double next_end(const ScheduleConfig& s, double done, double total) {
  double end = total;
  if (s.shape == ScheduleShape::wsd_s)
    for (int64_t k = 1; k < s.decays && done < end / 2; ++k) end /= 2;
  return end;
}

}  // namespace

double warmup_of(const ScheduleConfig& s, double total) { return s.warmup < 1 ? s.warmup * total : s.warmup; }

double schedule_factor(const ScheduleConfig& s, double done, double total) {
  const double warmup = warmup_of(s, total);
  const bool multiplied = s.decay_in_warmup && s.decay_from_start;
  const double rise = done < warmup ? done / warmup : 1;
  const double after_warmup = std::clamp((done - warmup) / std::max(total - warmup, 1e-12), 0.0, 1.0);
  const auto above_floor = [&](double left) { return s.end_factor + (1 - s.end_factor) * left; };
  switch (s.shape) {
    case ScheduleShape::linear:
    case ScheduleShape::cosine: {
      if (done < warmup && !multiplied) return rise;
      const double left = s.decay_from_start ? std::clamp(1 - done / total, 0.0, 1.0) : 1 - after_warmup;
      return rise * above_floor(s.shape == ScheduleShape::cosine ? half_cosine(1 - left) : left);
    }
    case ScheduleShape::constant:
      return rise;
    case ScheduleShape::inverse_sqrt:
      if (done < warmup && !multiplied) return rise;
      return rise * std::sqrt(std::max(warmup, 1.0) / std::max(done, 1.0));
    case ScheduleShape::wsd:
    case ScheduleShape::wsd_s: {
      const double part = part_of_decay(s, done, next_end(s, done, total));
      return part > 0 ? above_floor(left_of_decay(s.decay_form, part)) : rise;
    }
    case ScheduleShape::one_cycle:
      if (done < warmup) return s.start_factor + (1 - s.start_factor) * (1 - half_cosine(done / warmup));
      return above_floor(half_cosine(after_warmup));
    case ScheduleShape::transformer:
      return std::min((done + 1) / warmup, std::sqrt(warmup / (done + 1)));
  }
  fail("this shape of a schedule is not known");
}

bool follows_budget(const ScheduleConfig& s, int64_t step, double used) {
  if (s.warmup > 0 && s.warmup < 1) return true;
  const bool rises = static_cast<double>(step) <= s.warmup && !(s.decay_from_start && s.decay_in_warmup);
  constexpr double rounding = 1e-9;
  return !rises && used > stable_share(s) + rounding;
}

bool same_stable_rates(const ScheduleConfig& a, const ScheduleConfig& b) {
  const auto flat = [](ScheduleShape shape) {
    return shape == ScheduleShape::constant || shape == ScheduleShape::wsd || shape == ScheduleShape::wsd_s;
  };
  const bool in_steps = a.warmup >= 1 || a.warmup == 0;
  return in_steps && a.warmup == b.warmup && (a.shape == b.shape || (flat(a.shape) && flat(b.shape)));
}

}  // namespace cloze

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

/// Where an update stands.
struct ScheduleTime {
  double done, total, warmup;
  double rise() const { return done < warmup ? done / warmup : 1; }
  /// The share of what comes after the warm-up that is over.
  double after_warmup() const { return std::clamp((done - warmup) / std::max(total - warmup, 1e-12), 0.0, 1.0); }
};

double above_floor(const EndFactor& end, double left) { return end.end_factor + (1 - end.end_factor) * left; }

/// What is left of a decay over the whole budget, or over all but the warm-up.
double left_at(const DecayStart& start, const ScheduleTime& at) {
  return start.decay_from_start ? std::clamp(1 - at.done / at.total, 0.0, 1.0) : 1 - at.after_warmup();
}

double factor(const LinearSchedule& s, const ScheduleTime& at) {
  if (at.done < at.warmup && !s.multiplies_warmup()) return at.rise();
  return at.rise() * above_floor(s, left_at(s, at));
}

double factor(const CosineSchedule& s, const ScheduleTime& at) {
  if (at.done < at.warmup && !s.multiplies_warmup()) return at.rise();
  return at.rise() * above_floor(s, half_cosine(1 - left_at(s, at)));
}

double factor(const ConstantSchedule&, const ScheduleTime& at) { return at.rise(); }

double factor(const InverseSqrtSchedule& s, const ScheduleTime& at) {
  if (at.done < at.warmup && !s.multiplies_warmup()) return at.rise();
  return at.rise() * std::sqrt(std::max(at.warmup, 1.0) / std::max(at.done, 1.0));
}

/// The peak, and after it the decay of a budget that ends at `end`.
double before_decay(const FinalDecay& s, const ScheduleTime& at, double end) {
  const double start = end * (1 - s.decay);
  const double part = at.done <= start ? 0 : std::min(1.0, (at.done - start) / (end - start));
  return part > 0 ? above_floor(s, left_of_decay(s.decay_form, part)) : at.rise();
}

double factor(const WsdSchedule& s, const ScheduleTime& at) { return before_decay(s, at, at.total); }

/// The budget ends at total / 2^k for each k of `decays`; the next end counts.
double factor(const WsdSSchedule& s, const ScheduleTime& at) {
  double end = at.total;
  for (int64_t k = 1; k < s.decays && at.done < end / 2; ++k) end /= 2;
  return before_decay(s, at, end);
}

double factor(const OneCycleSchedule& s, const ScheduleTime& at) {
  if (at.done < at.warmup) return s.start_factor + (1 - s.start_factor) * (1 - half_cosine(at.done / at.warmup));
  return above_floor(s, half_cosine(at.after_warmup()));
}

/// Source: Howard and Ruder 2018, equation 3 (arXiv 1801.06146). Differs: the warm-up is not rounded down to a step.
double factor(const SlantedTriangleSchedule& s, const ScheduleTime& at) {
  const double part = at.done < at.warmup ? at.done / at.warmup : 1 - at.after_warmup();
  return (1 + part * (s.ratio - 1)) / s.ratio;
}

double factor(const TransformerSchedule&, const ScheduleTime& at) {
  return std::min((at.done + 1) / at.warmup, std::sqrt(at.warmup / (at.done + 1)));
}

}  // namespace

double warmup_of(const ScheduleConfig& s, double total) { return s.warmup < 1 ? s.warmup * total : s.warmup; }

double schedule_factor(const ScheduleConfig& s, double done, double total) {
  const ScheduleTime at{done, total, warmup_of(s, total)};
  return std::visit([&](const auto& shape) { return factor(shape, at); }, s.shape);
}

bool follows_budget(const ScheduleConfig& s, int64_t step, double used) {
  if (s.warmup > 0 && s.warmup < 1) return true;
  const auto* start = part_in<DecayStart>(s.shape);
  const bool rises = static_cast<double>(step) <= s.warmup && !(start && start->multiplies_warmup());
  constexpr double rounding = 1e-9;
  return !rises && used > stable_fraction(s) + rounding;
}

bool same_stable_rates(const ScheduleConfig& a, const ScheduleConfig& b) {
  const auto flat = [](const ScheduleShape& shape) {
    return part_in<ConstantSchedule>(shape) || part_in<FinalDecay>(shape);
  };
  const bool in_steps = a.warmup >= 1 || a.warmup == 0;
  return in_steps && a.warmup == b.warmup && (a.shape.index() == b.shape.index() || (flat(a.shape) && flat(b.shape)));
}

}  // namespace cloze

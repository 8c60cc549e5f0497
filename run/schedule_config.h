#pragma once
// The section `schedule` of a run.
#include "core/config_rule.h"

namespace cloze {

/// The form of the learning rate over a run.
enum class ScheduleShape { linear, cosine, constant, inverse_sqrt, wsd, wsd_s, one_cycle, transformer };
constexpr auto choices(ScheduleShape) {
  using enum ScheduleShape;
  return std::array{
      Choice{linear, "linear", "a straight line from the peak to end_factor"},
      Choice{cosine, "cosine", "half a cosine from the peak to end_factor (Loshchilov and Hutter 2017)"},
      Choice{constant, "constant", "the peak to the end"},
      Choice{inverse_sqrt, "inverse_sqrt", "the peak times sqrt(warmup / step)"},
      Choice{wsd, "wsd", "the peak until the last `decay` of the budget, then decay_form (Hu et al. 2024)"},
      Choice{
          wsd_s, "wsd_s",
          "as wsd for each of `decays` budgets, every one twice the one before; between them training goes on at the "
          "peak from the decayed weights (Wen et al. 2024)"},
      Choice{one_cycle, "one_cycle",
             "half a cosine from start_factor up to the peak over the warm-up, half a cosine down to end_factor (Smith "
             "and Topin 2018, as PyTorch's OneCycleLR)"},
      Choice{transformer, "transformer",
             "the peak times min(step / warmup, sqrt(warmup / step)), steps counted from 1 (Vaswani et al. 2017)"}};
}

/// The form of a decay (wsd, wsd_s).
enum class DecayForm { linear, cosine, one_minus_sqrt };
constexpr auto choices(DecayForm) {
  using enum DecayForm;
  return std::array{Choice{linear, "linear"}, Choice{cosine, "cosine"},
                    Choice{one_minus_sqrt, "1-sqrt", "1 - sqrt(share of the decay that is over), Hagele et al. 2024"}};
}

/// The learning rate as a function of progress.
struct ScheduleConfig {
  std::string like;
  ScheduleShape shape = ScheduleShape::linear;
  double warmup = 0.1;
  double start_factor = 0.04;
  double end_factor = 0.0;
  double decay = 0.2;
  DecayForm decay_form = DecayForm::one_minus_sqrt;
  int64_t decays = 3;
  bool decay_from_start = false;
  bool decay_in_warmup = false;
};

/// The share of the budget before which the rate of a step is the same for every budget, given a warm-up in steps: runs
/// of several budgets are one run so far. 0: the rate depends on the budget from the start.
double stable_share(const ScheduleConfig& schedule);

inline void decays_linearly(ScheduleConfig& s, bool from_start) {
  s.shape = ScheduleShape::linear;
  s.decay_from_start = from_start;
  s.decay_in_warmup = false;
  s.end_factor = 0;
}

template <class V>
void describe(V& v, ScheduleConfig& c) {
  v.like(c, "the start and the end of the decay follow that code",
         {{"google-bert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"albert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"spanbert", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true); }},
          {"electra", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/true), s.decay_in_warmup = true; }},
          {"huggingface", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"fairseq-roberta", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"megatron", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false); }},
          {"xlnet", [](ScheduleConfig& s) { decays_linearly(s, /*from_start=*/false), s.end_factor = 1e-3; }},
          {"t5", [](ScheduleConfig& s) { s.shape = ScheduleShape::inverse_sqrt; }}});
  v("shape", c.shape, "the rate after the warm-up");
  v("warmup", c.warmup,
    "length of the linear warm-up from 0: below 1 a fraction of the budget, from 1 on a number of steps",
    in_range(0, 1e12));
  v("start_factor", c.start_factor, "first learning rate as a fraction of the peak (one_cycle)", in_range(0, 1));
  v("end_factor", c.end_factor, "final learning rate as a fraction of the peak (linear, cosine, wsd, wsd_s, one_cycle)",
    in_range(0, 1));
  v("decay", c.decay, "length of a decay as a fraction of the budget at which it ends (wsd, wsd_s)", in_range(0, 1));
  v("decay_form", c.decay_form, "form of a decay (wsd, wsd_s)");
  v("decays", c.decays, "number of decays (wsd_s): 3 end at a quarter, a half and all of the budget", in_range(1, 32));
  v("decay_from_start", c.decay_from_start, "linear decay counts from step 0 instead of the end of the warm-up");
  v("decay_in_warmup", c.decay_in_warmup,
    "with decay_from_start: the warm-up is multiplied by the decay, so that the peak is never reached, as in ELECTRA's "
    "code");
}

}  // namespace cloze

#pragma once
// The section `schedule` of a run.
#include <variant>

#include "core/config/config_rule.h"
#include "core/config/kinds.h"

namespace cloze {

/// Where a decay of the learning rate ends.
struct EndFactor {
  double end_factor = 0.0;
};
template <class V>
void describe(V& v, EndFactor& c) {
  v("end_factor", c.end_factor, "final learning rate as a fraction of the peak", in_range(0, 1));
}

/// Where a decay of the learning rate begins.
struct DecayStart {
  bool decay_from_start = false;
  bool decay_in_warmup = false;
  /// The warm-up is multiplied by the decay.
  bool multiplies_warmup() const { return decay_in_warmup && decay_from_start; }
};
template <class V>
void describe(V& v, DecayStart& c) {
  v("decay_from_start", c.decay_from_start, "the decay counts from step 0 instead of the end of the warm-up");
  v("decay_in_warmup", c.decay_in_warmup,
    "with decay_from_start: the warm-up is multiplied by the decay, so that the peak is never reached, as in ELECTRA's "
    "code");
}

struct LinearSchedule : EndFactor, DecayStart {
  static constexpr const char* kind = "linear";
  static constexpr const char* words = "a straight line from the peak to end_factor";
};
template <class V>
void describe(V& v, LinearSchedule& c) {
  describe(v, static_cast<EndFactor&>(c));
  describe(v, static_cast<DecayStart&>(c));
}

struct CosineSchedule : EndFactor, DecayStart {
  static constexpr const char* kind = "cosine";
  static constexpr const char* words = "half a cosine from the peak to end_factor (Loshchilov and Hutter 2017)";
};
template <class V>
void describe(V& v, CosineSchedule& c) {
  describe(v, static_cast<EndFactor&>(c));
  describe(v, static_cast<DecayStart&>(c));
}

struct ConstantSchedule {
  static constexpr const char* kind = "constant";
  static constexpr const char* words = "the peak to the end";
};
template <class V>
void describe(V&, ConstantSchedule&) {}

struct InverseSqrtSchedule : DecayStart {
  static constexpr const char* kind = "inverse_sqrt";
  static constexpr const char* words = "the peak times sqrt(warmup / step)";
};
template <class V>
void describe(V& v, InverseSqrtSchedule& c) {
  describe(v, static_cast<DecayStart&>(c));
}

/// The form of a decay.
enum class DecayForm { linear, cosine, one_minus_sqrt };
constexpr auto choices(DecayForm) {
  using enum DecayForm;
  return std::array{Choice{linear, "linear"}, Choice{cosine, "cosine"},
                    Choice{one_minus_sqrt, "1-sqrt", "1 - sqrt(share of the decay that is over), Hagele et al. 2024"}};
}

/// A decay at the end of a budget.
struct FinalDecay : EndFactor {
  double decay = 0.2;
  DecayForm decay_form = DecayForm::one_minus_sqrt;
};
template <class V>
void describe(V& v, FinalDecay& c) {
  describe(v, static_cast<EndFactor&>(c));
  v("decay", c.decay, "length of a decay as a fraction of the budget at which it ends", in_range(0, 1));
  v("decay_form", c.decay_form, "form of a decay");
}

struct WsdSchedule : FinalDecay {
  static constexpr const char* kind = "wsd";
  static constexpr const char* words =
      "the peak until the last `decay` of the budget, then decay_form (Hu et al. 2024)";
};
template <class V>
void describe(V& v, WsdSchedule& c) {
  describe(v, static_cast<FinalDecay&>(c));
}

struct WsdSSchedule : FinalDecay {
  static constexpr const char* kind = "wsd_s";
  static constexpr const char* words =
      "as wsd for each of `decays` budgets, every one twice the one before; between them training goes on at the peak "
      "from the decayed weights (Wen et al. 2024)";
  int64_t decays = 3;
};
template <class V>
void describe(V& v, WsdSSchedule& c) {
  describe(v, static_cast<FinalDecay&>(c));
  v("decays", c.decays, "number of decays: 3 end at a quarter, a half and all of the budget", in_range(1, 32));
}

struct OneCycleSchedule : EndFactor {
  static constexpr const char* kind = "one_cycle";
  static constexpr const char* words =
      "half a cosine from start_factor up to the peak over the warm-up, half a cosine down to end_factor (Smith and "
      "Topin 2018, as PyTorch's OneCycleLR)";
  double start_factor = 0.04;
};
template <class V>
void describe(V& v, OneCycleSchedule& c) {
  v("start_factor", c.start_factor, "first learning rate as a fraction of the peak", in_range(0, 1));
  describe(v, static_cast<EndFactor&>(c));
}

struct TransformerSchedule {
  static constexpr const char* kind = "transformer";
  static constexpr const char* words =
      "the peak times min(step / warmup, sqrt(warmup / step)), steps counted from 1 (Vaswani et al. 2017)";
};
template <class V>
void describe(V&, TransformerSchedule&) {}

struct SlantedTriangleSchedule {
  static constexpr const char* kind = "slanted_triangle";
  static constexpr const char* words =
      "a straight line from peak / ratio up to the peak over the warm-up, and one down to it again (ULMFiT; Howard and "
      "Ruder 2018, with warmup: 0.1)";
  double ratio = 32;
};
template <class V>
void describe(V& v, SlantedTriangleSchedule& c) {
  v("ratio", c.ratio, "the peak divided by the lowest rate", in_range(1, 1e9));
}

/// The form of the learning rate over a run.
struct ScheduleShape : std::variant<LinearSchedule, CosineSchedule, ConstantSchedule, InverseSqrtSchedule, WsdSchedule,
                                    WsdSSchedule, OneCycleSchedule, TransformerSchedule, SlantedTriangleSchedule> {
  using variant::variant;
};
inline void keep_shared(const ScheduleShape& from, ScheduleShape& to) {
  keep_parts<EndFactor, DecayStart, FinalDecay>(from, to);
}

/// The learning rate as a function of progress.
struct ScheduleConfig {
  std::string like;
  ScheduleShape shape{};
  double warmup = 0.1;
};

/// The share of the budget before which the rate of a step is the same for every budget, given a warm-up in steps: runs
/// of several budgets are one run so far. 0: the rate depends on the budget from the start.
double stable_fraction(const ScheduleConfig& schedule);

/// The schedule that decays along a straight line.
inline PresetValues linear_schedule(const char* from_start, const char* in_warmup = "false",
                                    const char* end_factor = "0") {
  return {{"shape", "linear"},
          {"decay_from_start", from_start},
          {"decay_in_warmup", in_warmup},
          {"end_factor", end_factor}};
}

template <class V>
void describe(V& v, ScheduleConfig& c) {
  v.like(c, "the start and the end of the decay follow that code",
         {{"google-bert", linear_schedule(/*from_start=*/"true")},
          {"albert", linear_schedule(/*from_start=*/"true")},
          {"spanbert", linear_schedule(/*from_start=*/"true")},
          {"electra", linear_schedule(/*from_start=*/"true", /*in_warmup=*/"true")},
          {"huggingface", linear_schedule(/*from_start=*/"false")},
          {"fairseq-roberta", linear_schedule(/*from_start=*/"false")},
          {"megatron", linear_schedule(/*from_start=*/"false")},
          {"xlnet", linear_schedule(/*from_start=*/"false", /*in_warmup=*/"false", /*end_factor=*/"1e-3")},
          {"t5", {{"shape", "inverse_sqrt"}}}});
  v.kind("shape", c.shape, "the rate after the warm-up");
  v("warmup", c.warmup,
    "length of the linear warm-up from 0: below 1 a fraction of the budget, from 1 on a number of steps",
    in_range(0, 1e12));
}

}  // namespace cloze

#pragma once
// The options that objectives share.
#include <cstdint>

#include "core/config/config_rule.h"

namespace cloze {

/// The options of every objective.
struct ObjectiveTerms {
  double weight = 1.0;
  int64_t from_step = 0;
  int64_t until_step = 0;
  /// The loss counts in optimizer step `step` + 1.
  bool active(int64_t step) const { return step >= from_step && (until_step == 0 || step < until_step); }
};

template <class V>
void describe_terms(V& v, ObjectiveTerms& c, const char* weight) {
  v("weight", c.weight, weight, in_range(0, 1e6));
  v("from_step", c.from_step, "number of optimizer steps before this loss counts", at_least(0));
  v("until_step", c.until_step, "number of optimizer steps after which it no longer counts; 0 = to the end",
    at_least(0));
}

/// The term that keeps the log-sum-exp of the logits near 0. Source: Mesh TensorFlow's
/// softmax_cross_entropy_with_logits; Chowdhery et al. 2022, section 5 (arXiv 2204.02311).
struct ZLoss {
  double z_loss = 0;
};
template <class V>
void describe_z_loss(V& v, ZLoss& c) {
  v("z_loss", c.z_loss, "factor of the squared log-sum-exp of the logits, in training; T5 uses 1e-4", in_range(0, 1));
}

/// The options of every next-token objective.
struct NextTokenTerms : ZLoss {
  double label_smoothing = 0;
  bool transform = false;
};

template <class V, class Config>
void describe_next_token(V& v, Config& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("label_smoothing", c.label_smoothing,
    "share of the label's probability that is spread over all tokens, in training", in_range(0, 1, open_end));
  describe_z_loss(v, c);
}

}  // namespace cloze

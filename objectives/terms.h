#pragma once
// What objectives have in common, as it stands in YAML.
#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"

namespace cloze {

/// What every objective has.
struct ObjectiveTerms {
  double weight = 1.0;
  int64_t from_step = 0;
  int64_t until_step = 0;
  /// Optimizer step `step` + 1 counts this loss.
  bool active(int64_t step) const { return step >= from_step && (until_step == 0 || step < until_step); }
};

template <class V>
void describe_terms(V& v, ObjectiveTerms& c, const char* weight) {
  v("weight", c.weight, weight, in_range(0, 1e6));
  v("from_step", c.from_step, "optimizer steps before this loss begins to count", at_least(0));
  v("until_step", c.until_step, "optimizer steps after which it no longer counts; 0 = it counts to the end",
    at_least(0));
}

/// What every objective has that predicts the next token.
struct NextTokenTerms : ObjectiveTerms {
  double label_smoothing = 0;
  double z_loss = 0;
  bool transform = false;
};

template <class V>
void describe_next_token(V& v, NextTokenTerms& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("label_smoothing", c.label_smoothing, "share of each label that is spread over all tokens, in training",
    in_range(0, 1, open_end));
  v("z_loss", c.z_loss, "factor of the square of the logits' log-sum-exp, in training; T5 has 1e-4", in_range(0, 1));
}

}  // namespace cloze

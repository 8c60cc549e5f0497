#pragma once
#include "core/config/config_rule.h"
#include "core/tensor/feature_kernel.h"
#include "models/attention/sizes.h"

namespace cloze {

/// FAVOR+: softmax attention approximated by random features, linear in the length. There are no attention
/// probabilities, hence no dropout on them. Source: Choromanski et al. 2021, section 2 (arXiv 2009.14794). Differs: the
/// features of a causal query are stabilised by the keys up to its own position, so that nothing of the future leaks
/// in.
struct PerformerAttention {
  static constexpr const char* kind = "performer";
  static constexpr bool bounds_length = false, causal = true;
  int64_t nb_features = 256;
  FeatureKernel kernel = FeatureKernel::softmax;
  double kernel_epsilon = 1e-6;
  int64_t feature_redraw_interval = 1000;

  bool takes_unpadded_rows() const { return kernel != FeatureKernel::trigonometric; }
  std::shared_ptr<Attention> make(const AttentionSizes& sizes, int64_t layer, PositionScheme& positions) const;
};
template <class V>
void describe(V& v, PerformerAttention& c) {
  v("nb_features", c.nb_features, "number of random features per head", in_range(1, 1 << 20));
  v("kernel", c.kernel, "the kernel that the features approximate");
  v("kernel_epsilon", c.kernel_epsilon, "added to every positive feature", in_range(0, 1));
  v("feature_redraw_interval", c.feature_redraw_interval, "steps between redraws of the features; 0 = never redrawn",
    at_least(0));
}

}  // namespace cloze

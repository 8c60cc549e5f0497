#pragma once
// The moments of Adam, which several rules share.
#include "core/config/config_rule.h"
#include "optimizers/rule.h"

namespace cloze {

/// The moments of Adam, and how they become a direction.
struct AdamMoments {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  bool epsilon_hat = false;
  bool bias_correction = true;

  static std::vector<Moment> moments(const MatrixShape&) {
    return {{"exp_avg", Extent::flat}, {"exp_avg_sq", Extent::flat}};
  }
};
template <class V>
void describe(V& v, AdamMoments& c) {
  v("beta1", c.beta1, "decay of the first moment", in_range(0, 1, open_end));
  v("beta2", c.beta2, "decay of the second moment", in_range(0, 1, open_end));
  v("epsilon", c.epsilon, "added to the square root of the second moment", in_range(0, 1));
  v("epsilon_hat", c.epsilon_hat,
    "epsilon is added before the bias correction of the second moment and is corrected with it, as in fairseq and "
    "TensorFlow (Kingma and Ba 2015, end of section 2)");
  v("bias_correction", c.bias_correction, "moments are divided by 1 - beta^t");
}

}  // namespace cloze

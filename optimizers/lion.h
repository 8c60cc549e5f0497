#pragma once
#include "core/config/config_rule.h"
#include "optimizers/rule.h"

namespace cloze {

/// Source: Chen et al. 2023, algorithm 2 (arXiv 2302.06675).
struct Lion {
  static constexpr const char* kind = "lion";
  static constexpr const char* words =
      "the step of a weight is the sign of its momentum; rates are three to ten times smaller than those of adamw";
  static constexpr bool elementwise = true;
  double beta1 = 0.9;
  double beta2 = 0.99;

  static std::vector<Moment> moments(const MatrixShape&) { return {{"exp_avg", Extent::flat}}; }
  void update(const optimizers::Step& step, const optimizers::Target& target) const;
  void update(const optimizers::Step& step, const optimizers::DeviceBuffers& buffers) const;
};
template <class V>
void describe(V& v, Lion& c) {
  v("beta1", c.beta1, "share of the momentum in what the step has the sign of; the gradient has the rest",
    in_range(0, 1, open_end));
  v("beta2", c.beta2, "decay of the momentum", in_range(0, 1, open_end));
}

}  // namespace cloze

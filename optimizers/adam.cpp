// The direction of Adam. Source: Kingma and Ba 2015, algorithm 1 (arXiv 1412.6980).
#include <cmath>

#include "optimizers/adam_direction.h"

namespace cloze::optimizers {

namespace {

/// 1 - beta^t, the bias correction of a moving average that starts at zero.
double correction(const AdamMoments& options, const Step& step, double beta) {
  return options.bias_correction ? 1 - std::pow(beta, static_cast<double>(step.update)) : 1;
}

/// The term added to the square root of the corrected second moment.
double epsilon(const AdamMoments& options, const Step& step) {
  return options.epsilon_hat ? options.epsilon / std::sqrt(correction(options, step, options.beta2)) : options.epsilon;
}

}  // namespace

kernels::Adam adam_at(const AdamMoments& options, const Step& step) {
  return {.beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .epsilon = static_cast<float>(epsilon(options, step)),
          .rest1 = static_cast<float>(1 - options.beta1),
          .rest2 = static_cast<float>(1 - options.beta2),
          .correction1 = static_cast<float>(correction(options, step, options.beta1)),
          .correction2 = static_cast<float>(correction(options, step, options.beta2)),
          .grad_scale = static_cast<float>(step.grad_scale)};
}

kernels::Parameters adam_range(const Buffers& buffers, const Chunk& chunk) {
  return buffers.of(chunk, buffers.moment(chunk, "exp_avg"), buffers.moment(chunk, "exp_avg_sq"));
}

Tensor adam_direction(const AdamMoments& options, const Step& step, const Target& of) {
  const auto &mean = of.moments.at("exp_avg"), &square = of.moments.at("exp_avg_sq"), &gradient = of.gradient;
  mean.mul_(options.beta1).add_(gradient, 1 - options.beta1);
  square.mul_(options.beta2).add_(gradient.square(), 1 - options.beta2);
  return mean / correction(options, step, options.beta1) /
         ((square / correction(options, step, options.beta2)).sqrt() + epsilon(options, step));
}

}  // namespace cloze::optimizers

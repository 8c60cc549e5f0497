// AdamW, and the direction of Adam. Source: Loshchilov and Hutter 2019, algorithm 2 (arXiv 1711.05101).
#include "train/optimizers.h"

namespace cloze::optimizers {

namespace {

/// 1 - beta^t, the bias correction of a moving average that starts at zero.
double correction(const Step& step, double beta) {
  return step.config.bias_correction ? 1 - std::pow(beta, static_cast<double>(step.update)) : 1;
}

/// The term added to the square root of the corrected second moment.
double epsilon(const Step& step) {
  const auto& config = step.config;
  return config.epsilon_hat ? config.epsilon / std::sqrt(correction(step, config.beta2)) : config.epsilon;
}

}  // namespace

kernels::Adam adam_at(const Step& step) {
  const auto& config = step.config;
  return {.beta1 = static_cast<float>(config.beta1),
          .beta2 = static_cast<float>(config.beta2),
          .epsilon = static_cast<float>(epsilon(step)),
          .correction1 = static_cast<float>(correction(step, config.beta1)),
          .correction2 = static_cast<float>(correction(step, config.beta2)),
          .grad_scale = static_cast<float>(step.grad_scale)};
}

void adamw(const Step& step, const Buffers& buffers, float* m, float* v) {
  const auto adam = adam_at(step);
  parallel_each(buffers.chunks.size(), [&](size_t i) {
    const auto& chunk = buffers.chunks[i];
    const double decay = step.decay_of(buffers.matrix_of(chunk).decays);
    kernels::table().updates.adamw(adam, static_cast<float>(step.learning_rate),
                                   static_cast<float>(step.learning_rate * decay), buffers.of(chunk, m, v));
  });
}

Tensor plain_adam_direction(const Step& step, const Tensor& gradient, const Moments& m) {
  const auto& config = step.config;
  m.exp_avg.mul_(config.beta1).add_(gradient, 1 - config.beta1);
  m.exp_avg_sq.mul_(config.beta2).add_(gradient.square(), 1 - config.beta2);
  return m.exp_avg / correction(step, config.beta1) /
         ((m.exp_avg_sq / correction(step, config.beta2)).sqrt() + epsilon(step));
}

void plain_adamw(const Step& step, bool decays, const Tensor& p, const Tensor& gradient, const Moments& m) {
  const auto direction = plain_adam_direction(step, gradient, m);
  p.mul_(1 - step.learning_rate * step.decay_of(decays)).sub_(direction, step.learning_rate);
}

}  // namespace cloze::optimizers

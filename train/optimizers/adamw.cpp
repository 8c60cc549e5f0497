// AdamW, and the direction of Adam. Source: Loshchilov and Hutter 2019, algorithm 2 (arXiv 1711.05101).
#include "train/optimizers/optimizers.h"

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

void update(const AdamW& rule, const Step& step, const Buffers& buffers, const Memory& memory) {
  const auto adam = adam_at(rule, step);
  parallel_each(buffers.chunks.size(), [&](size_t i) {
    const auto& chunk = buffers.chunks[i];
    const double decay = step.decay_of(buffers.matrix_of(chunk).decays);
    kernels::table().updates.adamw(adam, static_cast<float>(step.learning_rate),
                                   static_cast<float>(step.learning_rate * decay),
                                   buffers.of(chunk, memory.exp_avg, memory.exp_avg_sq));
  });
}

Tensor plain_adam_direction(const AdamMoments& options, const Step& step, const Tensor& gradient, const Moments& m) {
  const auto &mean = m.at("exp_avg"), &square = m.at("exp_avg_sq");
  mean.mul_(options.beta1).add_(gradient, 1 - options.beta1);
  square.mul_(options.beta2).add_(gradient.square(), 1 - options.beta2);
  return mean / correction(options, step, options.beta1) /
         ((square / correction(options, step, options.beta2)).sqrt() + epsilon(options, step));
}

void update(const AdamW& rule, const Step& step, bool decays, const Tensor& p, const Tensor& gradient,
            const Moments& m) {
  const auto direction = plain_adam_direction(rule, step, gradient, m);
  p.mul_(1 - step.learning_rate * step.decay_of(decays)).sub_(direction, step.learning_rate);
}

}  // namespace cloze::optimizers

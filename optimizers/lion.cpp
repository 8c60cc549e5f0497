// Lion: the sign of an interpolation between momentum and gradient. Source: Chen et al. 2023, algorithm 2 (arXiv
// 2302.06675).
#include "optimizers/lion.h"

#include "core/tensor/device_support.h"
#include "optimizers/update.h"

namespace cloze {

void Lion::update(const optimizers::Step& step, const optimizers::Target& target) const {
  const auto &p = target.values, &momentum = target.moments.at("exp_avg");
  const auto direction = momentum.lerp(target.gradient, 1 - beta1).sign();
  momentum.lerp_(target.gradient, 1 - beta2);
  p.mul_(1 - step.learning_rate * step.decay_of(target.decays)).sub_(direction, step.learning_rate);
}

void Lion::update(const optimizers::Step& step, const optimizers::DeviceBuffers& buffers) const {
  device::run(buffers.values, "lion", buffers.tiles, buffers.count(), buffers.tiles, device::data(buffers.table),
              static_cast<float>(beta1), static_cast<float>(beta2), static_cast<float>(step.grad_scale),
              static_cast<float>(step.learning_rate), static_cast<float>(step.weight_decay),
              device::data(buffers.values), device::data(buffers.grads),
              device::data(buffers.flat_moments.at("exp_avg")), device::data(buffers.shadow));
}

}  // namespace cloze

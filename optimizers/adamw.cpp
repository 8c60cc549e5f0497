// AdamW. Source: Loshchilov and Hutter 2019, algorithm 2 (arXiv 1711.05101).
#include "optimizers/adamw.h"

#include "core/tensor/device_support.h"
#include "optimizers/adam_direction.h"

namespace cloze {

using namespace optimizers;

void AdamW::update(const Step& step, const Target& target) const {
  const auto direction = adam_direction(*this, step, target);
  target.values.mul_(1 - step.learning_rate * step.decay_of(target.decays)).sub_(direction, step.learning_rate);
}

void AdamW::update(const Step& step, const Buffers& buffers) const {
  const auto adam = adam_at(*this, step);
  parallel_each(buffers.chunks.size(), [&](size_t i) {
    const auto& chunk = buffers.chunks[i];
    const double decay = step.decay_of(buffers.matrix_of(chunk).decays);
    kernels::table().updates.adamw(adam, static_cast<float>(step.learning_rate),
                                   static_cast<float>(step.learning_rate * decay), adam_range(buffers, chunk));
  });
}

void AdamW::update(const Step& step, const DeviceBuffers& buffers) const {
  device::run(buffers.values, "adamw", buffers.tiles, buffers.count(), buffers.tiles, device::data(buffers.table),
              adam_at(*this, step), static_cast<float>(step.learning_rate), static_cast<float>(step.weight_decay),
              device::data(buffers.values), device::data(buffers.grads),
              device::data(buffers.flat_moments.at("exp_avg")), device::data(buffers.flat_moments.at("exp_avg_sq")),
              device::data(buffers.shadow));
}

}  // namespace cloze

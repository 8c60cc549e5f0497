// LAMB: Adam's direction, scaled to the norm of each tensor. Source: You et al. 2020, algorithm 2 (arXiv 1904.00962).
#include "optimizers/lamb.h"

#include <array>
#include <cmath>

#include "core/tensor/device_support.h"
#include "optimizers/adam_direction.h"

namespace cloze {

using namespace optimizers;

namespace {

double trust_ratio(double weights, double updates) { return weights > 0 && updates > 0 ? weights / updates : 1; }

}  // namespace

void Lamb::update(const Step& step, const Buffers& buffers) const {
  const auto& chunks = buffers.chunks;
  const auto& kernel = kernels::table().updates;
  const auto adam = adam_at(*this, step);
  std::vector<std::array<double, 2>> sums(chunks.size()), norms(buffers.matrices.size());  // squares: weights, updates
  parallel_each(chunks.size(), [&](size_t i) {
    const auto range = adam_range(buffers, chunks[i]);
    const double decay = step.decay_of(buffers.matrix_of(chunks[i]).decays);
    kernel.direction(adam, static_cast<float>(decay), range);
    sums[i] = {kernel.sum_of_squares(range.n, range.p), kernel.sum_of_squares(range.n, range.g)};
  });
  for (size_t i = 0; i < chunks.size(); ++i)
    for (size_t side : {0, 1}) norms[chunks[i].matrix][side] += sums[i][side];
  parallel_each(chunks.size(), [&](size_t i) {
    const auto& [weights, steps] = norms[chunks[i].matrix];
    const bool decays = buffers.matrix_of(chunks[i]).decays;
    const double ratio = decays ? trust_ratio(std::sqrt(weights), std::sqrt(steps)) : 1;
    kernel.descend(static_cast<float>(step.learning_rate * ratio), 0, buffers.of(chunks[i]));
  });
}

void Lamb::update(const Step& step, const DeviceBuffers& buffers) const {
  const auto squares = buffers.numbers(2 * buffers.tiles), factors = buffers.numbers(buffers.count());
  device::run(buffers.values, "lamb_updates", buffers.tiles, buffers.count(), buffers.tiles,
              device::data(buffers.table), adam_at(*this, step), static_cast<float>(step.weight_decay),
              device::data(buffers.values), device::data(buffers.grads),
              device::data(buffers.flat_moments.at("exp_avg")), device::data(buffers.flat_moments.at("exp_avg_sq")),
              device::data(squares));
  device::run(buffers.values, "lamb_factors", buffers.count(), buffers.count(), device::data(buffers.table),
              device::data(squares), device::data(factors));
  descend(buffers, factors, step.learning_rate, /*weight_decay=*/0);
}

void Lamb::update(const Step& step, const Target& target) const {
  const auto& p = target.values;
  auto direction = adam_direction(*this, step, target) + step.decay_of(target.decays) * p;
  if (target.decays) {
    const auto weights = p.norm(), steps = direction.norm();
    direction = direction * at::where(weights.gt(0).logical_and(steps.gt(0)), weights / steps, at::ones_like(steps));
  }
  p.sub_(direction, step.learning_rate);
}

}  // namespace cloze

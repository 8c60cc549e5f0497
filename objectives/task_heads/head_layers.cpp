#include "objectives/task_heads/head_layers.h"

#include <cmath>

#include "objectives/task_heads/class_positions.h"

namespace cloze {

namespace {

/// The deviation of numbers evenly within 1 / sqrt(inputs).
double torch_deviation(int64_t inputs) { return 1 / std::sqrt(3.0 * static_cast<double>(inputs)); }

/// The mean [B, D] of the states [B, T, D] of real tokens.
Tensor mean_of_real(const Tensor& hidden, const Tensor& mask) {
  if (!mask.defined()) return hidden.to(at::kFloat).mean(1).to(hidden.scalar_type());
  const auto real = mask.to(at::kFloat).unsqueeze(-1);
  return ((hidden.to(at::kFloat) * real).sum(1) / real.sum(1).clamp_min(1)).to(hidden.scalar_type());
}

}  // namespace

void set_first_weights(Param weight, FirstWeights first, double range) {
  switch (first) {
    case FirstWeights::normal:
      weight.set_init_range(range, Spread::normal);
      break;
    case FirstWeights::truncated:
      weight.set_init_range(range, Spread::truncated);
      break;
    case FirstWeights::glorot:
      set_xavier(weight);
      break;
    case FirstWeights::torch_linear:
      weight.set_init_range(torch_deviation(weight.value().size(1)), Spread::uniform);
  }
}

HeadLinear::HeadLinear(int64_t in, int64_t out, bool with_bias, FirstWeights first, double range)
    : weight(own_param("weight", {out, in}, Init::weight)) {
  const bool draws_bias = first == FirstWeights::torch_linear;
  if (with_bias) bias = own_param("bias", {out}, draws_bias ? Init::weight : Init::zero, Role::bias);
  set_first_weights(weight, first, range);
  if (with_bias && draws_bias) bias.set_init_range(torch_deviation(in), Spread::uniform);
}

Tensor TextState::positions(const Batch& batch) const {
  using enum HeadDesign;
  const bool of_family = head == huggingface || head == original || head == babylm_pooled;
  if (of_family && batch.class_positions.defined()) return batch.class_positions;
  if (head == babylm_left) return at::zeros_like(batch.input_ids.select(1, 0));
  return class_positions_of(token, batch.input_ids, batch.attention_mask, eos);
}

Tensor TextState::of(const Tensor& hidden, const Batch& batch) const {
  if (mean) return mean_of_real(hidden, batch.attention_mask);
  const auto index = positions(batch).unsqueeze(-1).unsqueeze(-1).expand({-1, 1, hidden.size(-1)});
  return hidden.gather(1, index).squeeze(1);
}

}  // namespace cloze

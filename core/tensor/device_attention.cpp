#include <ATen/Context.h>

#include <limits>
#include <mutex>

#include "core/tensor/device_support.h"
#include "core/tensor/plain_heads.h"

namespace cloze::device {

namespace {

/// x + b, whose gradient is summed in fp32.
struct DeviceBias : Function<DeviceBias> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor&, const Param& b) {
    keep(context, "b", b);
    return x + b.compute();
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    add_bias_gradient(kept(context, "b"), as_rows(grads[0]));
    return {grads[0], Tensor(), Tensor()};
  }
};

Tensor biased(const Tensor& x, const Param& b) { return b.defined() ? DeviceBias::apply(x, b.value(), b) : x; }

/// `parts` projections of one input, [B, T, parts D], by heads: [B, H, T, C] each.
std::vector<Tensor> heads_of(const Tensor& x, int64_t parts, int64_t heads) {
  auto split = x.view({x.size(0), x.size(1), parts, heads, -1}).unbind(2);
  for (auto& part : split) part = part.transpose(1, 2);
  return split;
}

/// The next masks of LibTorch's attention are those of this dropout: again in a layer that is computed again.
void draw_from(const Dropout& drop, at::Device device) {
  auto generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(mix(drop.key, drop.site));
}

/// Attention by one operator of LibTorch, which keeps no scores.
Tensor attend(const plain::Heads& h, const AttentionContext& context, const Dropout& drop) {
  const bool has_bias = context.distance_bias.defined();
  const bool is_causal_alone = context.causal && !context.key_mask.defined() && !context.prefix.defined() &&
                               context.window < 0 && !has_bias && h.q.size(2) == h.k.size(2);
  const auto mask = is_causal_alone ? Tensor() : plain::attention_mask(h, context);
  auto added = mask;  // true = may be attended to, or numbers to add to the scores
  if (has_bias) {
    added = plain::pair_bias(h, context).unsqueeze(0);  // [1, H, T, S]
    if (mask.defined()) added = added.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  }
  if (drop.on()) draw_from(drop, h.q.device());
  auto mixed =
      at::scaled_dot_product_attention(h.q, h.k, h.v, added.defined() ? std::optional<Tensor>(added) : std::nullopt,
                                       drop.on() ? drop.p : 0.0, is_causal_alone, plain::scale_of(h, context));
  if (mask.defined()) mixed = mixed.masked_fill(mask.any(-1, /*keepdim=*/true).logical_not(), 0.0);
  return mixed.transpose(1, 2).flatten(2);  // [B, T, D]
}

bool goes_by_scores(const Dropout& drop) { return drop.on() && has_exact_masks(); }

}  // namespace

Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop) {
  const auto all = biased(qkv, bias);
  if (context.window >= 0 || goes_by_scores(drop)) return plain::self_attention(all, Param(), heads, context, drop);
  const auto parts = heads_of(all, 3, heads);
  return attend({parts[0], parts[1], parts[2]}, context, drop);
}

Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop) {
  const auto queries = biased(q, q_bias), others = biased(kv, kv_bias);
  if (goes_by_scores(drop)) return plain::cross_attention(queries, Param(), others, Param(), heads, context, drop);
  const auto parts = heads_of(others, 2, heads);
  return attend({heads_of(queries, 1, heads)[0], parts[0], parts[1]}, context, drop);
}

}  // namespace cloze::device

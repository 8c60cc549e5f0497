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

/// Scores of positions and segments are numbers that LibTorch's operator adds to those of the content.
Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop) {
  if (goes_by_scores(drop)) return plain::relative_attention(q, kv, r, heads, terms, drop);
  const auto own = heads_of(q, 1, heads)[0];  // [B, H, N, C]
  const auto others = heads_of(kv, 2, heads);
  const double scale = 1 / std::sqrt(static_cast<double>(own.size(-1)));
  const auto with = [&](const Param& bias) { return own + plain::weight(bias, own.scalar_type()).unsqueeze(1); };
  const auto distances = terms.distance_list.defined() ? r.index_select(0, terms.distance_list) : r.narrow(0, 0, 1);
  const auto by_distance =
      at::matmul(with(terms.r_r) * scale, plain::heads_of(distances, heads).transpose(-1, -2));  // [B, H, N, R]
  const auto keys = plain::positions_of(others[0]);
  Tensor added;  // [B, H, N, S]
  if (terms.distance_offset.defined()) {
    const auto index = terms.distance_offset.unsqueeze(1).unsqueeze(-1) + keys;  // [B, 1, N, S]
    added = at::gather(by_distance, -1, index.expand({-1, heads, -1, -1}));
  } else {
    added = plain::relative_shift(by_distance, keys);
  }
  if (terms.segments_differ.defined()) {
    const auto by_segment =
        at::matmul(with(terms.r_s) * scale, plain::weight(terms.segments, own.scalar_type()).permute({1, 2, 0}));
    added =
        added + at::where(terms.segments_differ.unsqueeze(1), by_segment.narrow(-1, 1, 1), by_segment.narrow(-1, 0, 1));
  }
  const auto hidden = terms.visible.defined() ? terms.visible.logical_not().unsqueeze(1) : Tensor();
  if (hidden.defined()) added = added.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  if (drop.on()) draw_from(drop, q.device());
  auto mixed = at::scaled_dot_product_attention(with(terms.r_w), others[0], others[1], added, drop.on() ? drop.p : 0.0,
                                                /*is_causal=*/false, scale);
  if (hidden.defined()) mixed = mixed.masked_fill(hidden.all(-1, /*keepdim=*/true), 0.0);
  return mixed.transpose(1, 2).flatten(2);
}

}  // namespace cloze::device

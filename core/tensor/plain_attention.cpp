#include "core/tensor/plain_heads.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <cmath>
#include <limits>

namespace cloze::plain {

Tensor heads_of(const Tensor& x, int64_t heads) {
  return x.unflatten(-1, {heads, x.size(-1) / heads}).transpose(1, 2);
}  // of the config, so a constant of the trace

Heads split_heads(const Tensor& qkv, const Param& bias, int64_t heads) {
  const auto all = with_bias(qkv, bias);
  const auto parts =
      all.unflatten(-1, {3, heads, all.size(-1) / 3 / heads}).permute({2, 0, 3, 1, 4});  // [3, B, H, T, C]
  return {parts.select(0, 0), parts.select(0, 1), parts.select(0, 2)};
}

Tensor positions_of(const Tensor& x) {
  return at::ones_like(x.select(-1, 0).select(0, 0).select(0, 0), at::kLong).cumsum(0) - 1;
}

namespace {

bool is_recorded(const Tensor& x) {
  return at::GradMode::is_enabled() && x.requires_grad() && !torch::jit::tracer::isTracing();
}

/// at::softmax over the last axis with a backward pass that sums row by row, and bf16 scores in fp32: LibTorch's
/// differs in the last bits between numbers of threads.
struct Softmax : torch::autograd::Function<Softmax> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& scores) {
    const auto p = at::softmax(scores, -1);
    context->save_for_backward({p});
    return p;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto saved = context->get_saved_variables()[0];
    const auto type = saved.scalar_type();
    const auto p = type == at::kBFloat16 ? saved.to(at::kFloat) : saved;
    const auto weighted = grads[0] * p;
    return {(weighted - p * weighted.sum(-1, /*keepdim=*/true)).to(type)};
  }
};

Tensor softmax(const Tensor& scores) { return is_recorded(scores) ? Softmax::apply(scores) : at::softmax(scores, -1); }

}  // namespace

bool goes_by_scores(const Tensor& q, const Dropout& drop) { return drop.active || is_recorded(q); }

Tensor visible_softmax(const Tensor& scores, const Tensor& visible) {
  if (!visible.defined()) return softmax(scores);
  const auto hidden = visible.logical_not();
  return softmax(scores.masked_fill(hidden, -30000.0)).masked_fill(hidden, 0.0);
}

namespace {

/// int64 [T, S]: key minus query position; the last query is aligned with the last key.
Tensor distances(const Heads& h) {
  const auto t = positions_of(h.q), s = positions_of(h.k);
  return (s - s.slice(0, -1)).unsqueeze(0) - (t - t.slice(0, -1)).unsqueeze(1);
}

}  // namespace

Tensor attention_mask(const Heads& h, const AttentionContext& context) {
  Tensor mask;
  const auto restrict_to = [&](const Tensor& more) { mask = mask.defined() ? mask.logical_and(more) : more; };
  if (context.key_mask.defined()) restrict_to(context.key_mask.unsqueeze(1).unsqueeze(1));  // [B, 1, 1, S]
  if (context.causal) {
    const auto past = distances(h).le(0).unsqueeze(0).unsqueeze(0);  // [1, 1, T, S]
    restrict_to(context.prefix.defined()
                    ? past.logical_or(positions_of(h.k).lt(context.prefix.unsqueeze(-1)).unsqueeze(1).unsqueeze(1))
                    : past);
  }
  if (context.window >= 0)
    restrict_to(distances(h).abs().le(context.window).unsqueeze(0).unsqueeze(0));  // [1, 1, T, S]
  return mask;
}

double scale_of(const Heads& h, const AttentionContext& context) {
  return context.scale > 0 ? context.scale : 1 / std::sqrt(static_cast<double>(h.q.size(-1)));
}

Tensor pair_bias(const Heads& h, const AttentionContext& context) {
  if (!context.distance_bias.defined()) return {};
  const auto index = positions_of(h.k).unsqueeze(0) + positions_of(h.q).flip(0).unsqueeze(1);  // [T, S]: s + T - 1 - t
  return at::embedding(context.distance_bias.t(), index).permute({2, 0, 1}).to(h.q.scalar_type());
}

Tensor probabilities_of(const Heads& h, const AttentionContext& context) {
  auto scores = at::matmul(h.q, h.k.transpose(-1, -2));  // [B, H, T, S]
  if (const double scale = scale_of(h, context); scale != 1) scores = scores * scale;
  if (const auto bias = pair_bias(h, context); bias.defined()) scores = scores + bias;
  return visible_softmax(scores, attention_mask(h, context));
}

namespace {

/// Attention by one operator of LibTorch, which keeps no scores.
Tensor attend_at_once(const Heads& h, const AttentionContext& context) {
  const auto mask = attention_mask(h, context);
  auto added = mask;  // true = may be attended to, or numbers to add to the scores
  if (const auto bias = pair_bias(h, context); bias.defined())
    added = mask.defined() ? bias.unsqueeze(0).masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity())
                           : bias.unsqueeze(0);
  const auto mixed =
      at::scaled_dot_product_attention(h.q, h.k, h.v, added.defined() ? std::optional<Tensor>(added) : std::nullopt,
                                       /*dropout_p=*/0.0, /*is_causal=*/false, scale_of(h, context));
  return mask.defined() ? mixed.masked_fill(mask.any(-1, /*keepdim=*/true).logical_not(), 0.0) : mixed;
}

Tensor attend(const Heads& h, const AttentionContext& context, const Dropout& drop) {
  if (context.probabilities) context.probabilities->push_back(probabilities_of(h, context).detach());
  const bool is_usual = context.scale <= 0 && !context.distance_bias.defined();  // LibTorch's own, also in training
  const bool by_scores = drop.on() || (!is_usual && goes_by_scores(h.q, drop));
  const auto mixed = by_scores ? at::matmul(cloze::dropout(probabilities_of(h, context), drop), h.v)
                               : attend_at_once(h, context);  // [B, H, T, C]
  return mixed.transpose(1, 2).flatten(2);                    // [B, T, D]
}

}  // namespace

Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop) {
  return context.window >= 0 ? window_attention(qkv, bias, heads, context, drop)
                             : attend(split_heads(qkv, bias, heads), context, drop);
}

Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop) {
  const auto parts = with_bias(kv, kv_bias).chunk(2, -1);
  return attend({heads_of(with_bias(q, q_bias), heads), heads_of(parts[0], heads), heads_of(parts[1], heads)}, context,
                drop);
}

}  // namespace cloze::plain

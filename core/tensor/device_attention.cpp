#include <array>
#include <mutex>

#include "core/error.h"
#include "core/tensor/device_support.h"
#include "core/tensor/in_order.h"
#include "core/tensor/plain_heads.h"

namespace cloze::device {

void draw_from(const Dropout& drop, at::Device device) {
  auto generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(mix(drop.key, drop.site));
}

Strided rows_of(Tensor& x) {
  const bool has_rows = x.stride(3) == 1 && x.stride(2) == x.size(3) && x.stride(0) == x.size(1) * x.stride(1);
  if (!has_rows) x = x.contiguous();
  return {data(x), x.stride(1)};
}

Tensor joined(std::vector<Tensor> parts, const Param& bias) {
  const int64_t part = parts[0].size(-2) * parts[0].size(-1), width = std::ssize(parts) * part;
  const int64_t rows = parts[0].numel() / part, chunks = chunks_of(rows);
  const auto out = at::empty({rows, width}, parts[0].options());
  std::array<Strided, 3> from{};
  for (size_t k = 0; k < parts.size(); ++k) from[k] = rows_of(parts[k]);
  const auto partial = bias.defined() ? partial_sums(out, chunks, 1, width) : Tensor();
  run(out, "join_columns", chunks * tiles_of(width), rows, width, part, chunks, from[0], from[1], from[2], data(out),
      data(partial));
  if (bias.defined()) add_sums(partial, bias);
  return out;
}

bool goes_by_scores(int64_t width, int64_t heads, const Dropout& drop) {
  return (drop.on() && has_exact_masks()) || width / heads % 8 != 0;
}

namespace {

/// What a kernel of LibTorch for attention is told besides its tensors.
struct Call {
  int64_t heads;
  double scale;
  bool causal = false;
  int64_t window = -1;                             ///< keys on either side; -1: all
  std::shared_ptr<const UnpaddedRows> unpadded{};  ///< of queries and keys [1, N, ...]; null: they are [B, T, ...]
  bool has_global = false;  ///< the first token of each row is a key of every query, beside its window
  Tensor without_keys{};    ///< bool [B, T, 1, 1], true = a query that sees no key; undefined: all see some
  Dropout drop{};
  Param q_bias{}, kv_bias{};  ///< which the projections have already; their gradients are sums of columns
  double p() const { return drop.on() ? drop.p : 0; }
  /// custom_mask_type of the memory-efficient kernel: none, or causal to the last key.
  int64_t mask() const { return causal ? 2 : 0; }
  /// As FlashAttention has tokens of unpadded rows, [N, H, C], and back.
  Tensor flat(const Tensor& x) const { return unpadded ? x.squeeze(0) : x; }
  Tensor in_rows(const Tensor& x) const { return unpadded ? x.unsqueeze(0) : x; }
  Tensor ends() const { return unpadded ? unpadded->ends : Tensor(); }
  int64_t longest(const Tensor& x) const { return unpadded ? unpadded->longest : x.size(1); }
};
struct CallHolder final : torch::CustomClassHolder {
  explicit CallHolder(Call c) : call(std::move(c)) {}
  Call call;
};

/// `parts` projections of one input, [B, T, parts D], by heads: [B, T, H, C] each.
std::vector<Tensor> heads_of(const Tensor& x, int64_t parts, int64_t heads) {
  return x.unflatten(-1, {parts, heads, x.size(-1) / parts / heads}).unbind(2);
}

struct Projections {
  Tensor q, k, v;  // [B, T | S, H, C]

  /// Of one input, [B, T, 3 D], or of queries [B, T, D] and others [B, S, 2 D].
  static Projections of(const Tensor& first, const Tensor& others, int64_t heads) {
    if (!others.defined()) {
      const auto all = heads_of(first, 3, heads);
      return {all[0], all[1], all[2]};
    }
    const auto kv = heads_of(others, 2, heads);
    return {heads_of(first, 1, heads)[0], kv[0], kv[1]};
  }
  plain::Heads heads() const { return {q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)}; }
};

/// What a kernel made, and what its backward pass needs.
struct Mixed {
  Tensor out;           // [B, T, H, C]
  Tensor sums;          // of exp(score), their logarithms
  Tensor seed, offset;  // of its dropout
};

/// Kernels of two kinds: FlashAttention, of bf16 without numbers that are added to scores, and the other.
bool is_flash(const Tensor& q, const Tensor& added) {
  return q.scalar_type() == at::kBFloat16 && !added.defined() && q.size(-1) <= 192;
}

std::optional<Tensor> if_defined(const Tensor& x) { return x.defined() ? std::optional<Tensor>(x) : std::nullopt; }

Mixed mixed_of(const Call& call, const Projections& in, const Tensor& added) {
  const auto& [q, k, v] = in;
  if (call.drop.on()) draw_from(call.drop, q.device());
  const auto ends = if_defined(call.ends());
  const int64_t most_queries = call.longest(q), most_keys = call.longest(k);
  if (is_flash(q, added)) {
    const auto made = at::_flash_attention_forward(call.flat(q), call.flat(k), call.flat(v), ends, ends, most_queries,
                                                   most_keys, call.p(), call.causal, /*return_debug_mask=*/false,
                                                   call.scale, call.window, call.window);
    return {call.in_rows(std::get<0>(made)).contiguous(), std::get<1>(made).contiguous(), std::get<2>(made),
            std::get<3>(made)};
  }
  const auto made = at::_efficient_attention_forward(q, k, v, if_defined(added), ends, ends, most_queries, most_keys,
                                                     call.p(), call.mask(), /*compute_log_sumexp=*/true, call.scale);
  return {std::get<0>(made), std::get<1>(made), std::get<2>(made), std::get<3>(made)};
}

// -- The global key of a window -----------------------------------------------------------------------------------

/// As GlobalKey of kernels.cu.
struct GlobalKey {
  int64_t rows, width, head_width, length, window;
  const void* positions;
  const void* qkv;
  float scale;
  kernels::Dropout drop;
};
GlobalKey global_key(const Call& call, const Tensor& qkv) {
  auto drop = call.drop;
  drop.site ^= 0x10000;
  const int64_t rows = qkv.size(0) * qkv.size(1), width = qkv.size(2) / 3;
  return {rows,
          width,
          width / call.heads,
          qkv.size(1),
          call.window,
          call.unpadded ? data(call.unpadded->positions) : nullptr,
          data(qkv),
          static_cast<float>(call.scale),
          kernel_dropout(drop)};
}

/// Merges it with what the window gave, by the logarithms of sums. Source: Milakov and Gimelshein 2018, section 3
/// (arXiv 1805.02867). FlashAttention's backward pass needs the merged results alone.
void add_global_key(const Call& call, const Tensor& qkv, const Mixed& made) {
  const auto key = global_key(call, qkv);
  require<ShapeError>(made.sums.numel() == key.rows * call.heads,
                      "FlashAttention of this LibTorch has other sums than [heads, tokens]");
  run(qkv, "global_key_forward", key.rows * tiles_of(key.width), key, data(made.out), data(made.sums));
}

/// Adds its part to the gradients of a window.
void add_gradients_of_global(const Call& call, const Tensor& qkv, const Mixed& made, const Tensor& grad,
                             const Projections& gradients) {
  constexpr int64_t tokens_of_part = 128;
  const auto key = global_key(call, qkv);
  const auto fp32 = qkv.options().dtype(at::kFloat);
  const auto of_key = at::empty({key.rows, call.heads}, fp32), of_value = at::empty_like(of_key);
  run(qkv, "global_key_backward", key.rows * tiles_of(key.width), key, data(made.out), data(made.sums), data(grad),
      data(gradients.q), data(of_key), data(of_value));
  const int64_t count = call.unpadded ? call.unpadded->rows : qkv.size(0);
  const int64_t parts = (call.longest(qkv) + tokens_of_part - 1) / tokens_of_part;
  const auto partial = at::empty({count, parts, 2, key.width}, fp32);
  run(qkv, "global_key_sums", count * parts * tiles_of(key.width), key, count, parts, tokens_of_part, data(call.ends()),
      data(grad), data(of_key), data(of_value), data(partial));
  run(qkv, "global_key_gradients", count * tiles_of(key.width), count, key.width, parts, key.length, data(call.ends()),
      data(partial), data(gradients.k), data(gradients.v));
}

/// Of queries, keys, values, and of what was added to the scores or undefined.
struct Gradients : Projections {
  Tensor added{};
};
Gradients gradients_of(const Call& call, const Projections& in, const Tensor& added, bool of_added, const Mixed& made,
                       const Tensor& grad) {
  const auto& [q, k, v] = in;
  const auto ends = call.ends();
  const int64_t most_queries = call.longest(q), most_keys = call.longest(k);
  if (is_flash(q, added)) {
    const InOrder in_order;
    const auto gradients = at::_flash_attention_backward(
        call.flat(grad), call.flat(q), call.flat(k), call.flat(v), call.flat(made.out), made.sums, ends, ends,
        most_queries, most_keys, call.p(), call.causal, made.seed, made.offset, call.scale, call.window, call.window);
    const auto dense = [&](const Tensor& x) { return call.in_rows(x.contiguous()); };
    return {{dense(std::get<0>(gradients)), dense(std::get<1>(gradients)), dense(std::get<2>(gradients))}};
  }
  const auto gradients = at::_efficient_attention_backward(
      grad, q, k, v, if_defined(added), made.out, if_defined(ends), if_defined(ends), most_queries, most_keys,
      made.sums, call.p(), made.seed, made.offset, call.mask(), of_added, call.scale,
      /*num_splits_key=*/1);  // more add in any order
  return {{std::get<0>(gradients), std::get<1>(gradients), std::get<2>(gradients)}, std::get<3>(gradients)};
}

/// Attention by one kernel of LibTorch, which keeps no scores: [B, T, D]. `added` [B, H, T, S], to the scores.
struct DeviceAttention : Function<DeviceAttention> {
  static Tensor forward(AutogradContext* context, const Tensor& first, const std::optional<Tensor>& others,
                        const std::optional<Tensor>& added, const Call& call) {
    const auto queries = first.contiguous(), keys = others ? others->contiguous() : Tensor();
    const auto scores = added.value_or(Tensor());
    const auto made = mixed_of(call, Projections::of(queries, keys, call.heads), scores);
    if (call.has_global) add_global_key(call, queries, made);
    if (call.without_keys.defined()) made.out.masked_fill_(call.without_keys, 0.0);
    context->save_for_backward({queries, keys, scores, made.out, made.sums, made.seed, made.offset});
    context->saved_data["of added"] = scores.defined() && scores.requires_grad();
    context->saved_data["call"] = c10::IValue::make_capsule(c10::make_intrusive<CallHolder>(call));
    return made.out.flatten(2);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &queries = saved[0], &keys = saved[1], &added = saved[2];
    const auto capsule = context->saved_data["call"].toCapsule();
    const auto& call = static_cast<const CallHolder&>(*capsule).call;
    const Mixed made{saved[3], saved[4], saved[5], saved[6]};
    auto grad = grads[0].contiguous().view(made.out.sizes());
    if (call.without_keys.defined()) grad = grad.masked_fill(call.without_keys, 0.0);
    const auto gradients = gradients_of(call, Projections::of(queries, keys, call.heads), added,
                                        context->saved_data["of added"].toBool(), made, grad);
    if (call.has_global) add_gradients_of_global(call, queries, made, grad, gradients);
    if (!keys.defined())
      return {joined({gradients.q, gradients.k, gradients.v}, call.q_bias).view(queries.sizes()), Tensor(),
              gradients.added, Tensor()};
    const auto of_queries = gradients.q.contiguous().view(queries.sizes());
    add_bias_gradient(call.q_bias, as_rows(of_queries));
    return {of_queries, joined({gradients.k, gradients.v}, call.kv_bias).view(keys.sizes()), gradients.added, Tensor()};
  }
};

/// Rows of scores [..., S] that begin where a kernel can read them, in the shape [B, H, T, S].
Tensor aligned(const Tensor& added, const plain::Heads& h) {
  const int64_t keys = added.size(-1), beyond = aligned_keys(keys) - keys;
  const auto padded = (beyond > 0 ? at::constant_pad_nd(added, {0, beyond}) : added).contiguous();
  return padded.narrow(-1, 0, keys).expand({h.q.size(0), h.q.size(1), h.q.size(2), h.k.size(2)});
}

/// What is made of a mask and of distance biases; in the first layer of a stack, for all of them.
MadeMask made_of(const AttentionContext& context, const plain::Heads& h) {
  const bool has_bias = context.distance_bias.defined();
  const auto& of = has_bias ? context.distance_bias : context.key_mask;
  for (size_t i = 0; context.made && i < context.made->size(); ++i) {
    const auto& known = (*context.made)[i];
    if (known.of.is_same(of) && known.added.size(2) == h.q.size(2)) return known;
  }
  const auto mask = plain::attention_mask(h, context);  // true = may be attended to
  if (!mask.defined() && !has_bias) return {};
  MadeMask made{.of = of};
  auto added = has_bias ? plain::pair_bias(h, context).unsqueeze(0) : at::zeros(mask.sizes(), h.q.options());
  if (mask.defined()) {
    added = added.masked_fill(mask.logical_not(), hidden_score);
    const bool all_see_keys = context.padding_is_unread || !context.key_mask.defined();
    if (!all_see_keys) made.without_keys = mask.any(-1, /*keepdim=*/true).logical_not().transpose(1, 2);
  }
  made.added = aligned(added, h);
  if (context.made && of.defined()) context.made->push_back(made);
  return made;
}

/// Attention of one input, [B, T, 3 D], or of queries [B, T, D] to others [B, S, 2 D].
Tensor attend(const Tensor& first, const std::optional<Tensor>& others, const AttentionContext& context, Call call) {
  const auto h = Projections::of(first.detach(), others ? others->detach() : Tensor(), call.heads).heads();
  call.scale = plain::scale_of(h, context);
  call.causal =
      context.causal && !context.key_mask.defined() && !context.prefix.defined() && !context.distance_bias.defined();
  call.window = context.window;
  call.has_global = context.window >= 0 && context.global_mask.defined();
  call.unpadded = context.unpadded;
  const auto made = call.causal || call.window >= 0 ? MadeMask() : made_of(context, h);
  call.without_keys = made.without_keys;
  return DeviceAttention::apply(first, others, if_defined(made.added), call);
}

/// Adds the gradient of b to that of the sums x, which have b already.
struct BiasGradient : Function<BiasGradient> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Param& b) {
    keep(context, "b", b);
    return x;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    add_bias_gradient(kept(context, "b"), as_rows(grads[0]));
    return {grads[0], Tensor()};
  }
};

/// x + b, whose gradient attention adds.
Tensor with_bias(const Tensor& x, const Param& b) { return b.defined() ? x + b.compute().detach() : x; }
/// The same x with that gradient, where attention does not add it.
Tensor graded(const Tensor& x, const Param& b) { return b.defined() ? BiasGradient::apply(x, b) : x; }

/// Whether a kernel has windows for these tokens: FlashAttention, without a mask, and one of ours for one global key.
bool has_windows(const Tensor& qkv, int64_t heads, const AttentionContext& context) {
  const int64_t width = qkv.size(-1) / 3 / heads;
  const bool has_globals = !context.global_mask.defined() || (context.first_is_global && (width & (width - 1)) == 0);
  return qkv.scalar_type() == at::kBFloat16 && width <= 192 && context.dilation == 1 && has_globals &&
         !context.key_mask.defined();
}

/// Self-attention of projections that have their bias, whose gradient it adds.
Tensor attend_to_self(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop) {
  const bool by_scores =
      goes_by_scores(qkv.size(-1) / 3, heads, drop) || (context.window >= 0 && !has_windows(qkv, heads, context));
  if (context.unpadded && (by_scores || context.distance_bias.defined() || context.prefix.defined())) {
    const auto& rows = *context.unpadded;
    return rows.unpad(attend_to_self(rows.pad(qkv), bias, heads, context.with_padding(), drop));
  }
  if (by_scores) return plain::self_attention(graded(qkv, bias), Param(), heads, context, drop);
  return attend(qkv, std::nullopt, context, {.heads = heads, .scale = 0, .drop = drop, .q_bias = bias});
}

}  // namespace

Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop) {
  return attend_to_self(with_bias(qkv, bias), bias, heads, context, drop);
}

Tensor linear_self_attention(const Tensor& x, const Param& w, const Param& b, int64_t heads,
                             const AttentionContext& context, const Dropout& drop) {
  return attend_to_self(linear_without_bias_gradient(x, w, b), b, heads, context, drop);
}

Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop) {
  const auto queries = with_bias(q, q_bias), others = with_bias(kv, kv_bias);
  if (goes_by_scores(q.size(-1), heads, drop))
    return plain::cross_attention(graded(queries, q_bias), Param(), graded(others, kv_bias), Param(), heads, context,
                                  drop);
  return attend(queries, others, context,
                {.heads = heads, .scale = 0, .drop = drop, .q_bias = q_bias, .kv_bias = kv_bias});
}

}  // namespace cloze::device

#include "core/tensor/plain.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <array>

#include "core/error.h"

namespace cloze::plain {

Tensor weight(const Param& param, at::ScalarType dtype) {
  if (!param.defined()) return {};
  const auto& value = param.value();
  if (value.scalar_type() == dtype) return value;
  return at::GradMode::is_enabled() || param.compute().scalar_type() != dtype ? value.to(dtype) : param.compute();
}

namespace {

constexpr int64_t word_mask = 0xFFFFFFFF;

/// The four words of philox() with 7 rounds for each first counter word in `counter` (int64), made of operators that
/// run on any device. Products of 32-bit words wrap around in int64, which keeps both halves.
std::array<Tensor, 4> philox_words(const Tensor& counter, uint32_t third, uint32_t fourth, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const auto high = [](const Tensor& product) { return product.bitwise_right_shift(32).bitwise_and(word_mask); };
  std::array<Tensor, 4> words{counter, at::zeros_like(counter), at::full_like(counter, static_cast<int64_t>(third)),
                              at::full_like(counter, static_cast<int64_t>(fourth))};
  for (int round = 0; round < 7; ++round) {
    const auto a = words[0] * int64_t{0xD2511F53}, b = words[2] * int64_t{0xCD9E8D57};
    words = {high(b).bitwise_xor(words[1]).bitwise_xor(static_cast<int64_t>(k0)), b.bitwise_and(word_mask),
             high(a).bitwise_xor(words[3]).bitwise_xor(static_cast<int64_t>(k1)), a.bitwise_and(word_mask)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return words;
}

}  // namespace

Tensor dropout_mask(at::IntArrayRef sizes, const Dropout& drop, at::Device device) {
  constexpr int64_t lanes = 16, block = 128;  // elements of a row whose draws come from the same 16 counters
  constexpr uint32_t purpose = 0x64726f70;
  const int64_t width = sizes.back(), rows = c10::multiply_integers(sizes) / std::max<int64_t>(width, 1),
                blocks = (width + block - 1) / block;
  const double threshold = std::nearbyint(drop.p * 65536);
  const auto counter =
      at::arange(rows * blocks * lanes, at::TensorOptions(device).dtype(at::kLong)).bitwise_and(word_mask);
  std::vector<Tensor> draws;  // of 16 bits; each [rows blocks, 16]
  for (const auto& word : philox_words(counter, drop.site, purpose, drop.key))
    for (const auto& half : {word.bitwise_and(0xFFFF), word.bitwise_right_shift(16)})
      draws.push_back(half.view({rows * blocks, lanes}));
  const auto kept =
      at::stack(draws, 1).view({rows, blocks * block}).narrow(1, 0, width).ge(static_cast<int64_t>(threshold));
  return (kept.to(at::kFloat) * (1 / (1 - threshold / 65536))).view(sizes);
}

namespace {

/// x W' + b with weights in oneDNN's layout.
Tensor packed_linear(const Tensor& x, const Param& w, const Param& b) {
  static const auto linear_op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
          .typed<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, std::string_view,
                        c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>)>();
  return linear_op.call(x, w.packed(), b.defined() ? std::optional<Tensor>(b.value()) : std::nullopt, "none",
                        c10::List<std::optional<at::Scalar>>(), "");
}

}  // namespace

Tensor linear(const Tensor& x, const Param& w, const Param& b) {
  const auto dtype = x.scalar_type();
  if (w.packed().defined() && dtype == at::kFloat && !at::GradMode::is_enabled() && !torch::jit::tracer::isTracing())
    return packed_linear(x, w, b);
  return b.defined() ? at::linear(x, weight(w, dtype), weight(b, dtype)) : at::linear(x, weight(w, dtype));
}

Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, const std::string& name,
                         const Dropout& drop) {
  return plain::dropout(plain::activation(plain::linear(x, w, b), name), drop);
}

Tensor activation(const Tensor& x, const std::string& name) {
  if (name == "gelu" || name == "gelu_python") return at::gelu(x);
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_python_tanh" || name == "gelu_accurate" ||
      name == "gelu_fast")
    return at::gelu(x, "tanh");
  if (name == "quick_gelu") return x * at::sigmoid(1.702 * x);
  if (name == "gelu_10") return at::clamp(at::gelu(x), -10, 10);
  if (name == "relu") return at::relu(x);
  if (name == "relu2") return at::relu(x).square();
  if (name == "relu6") return at::relu6(x);
  if (name == "leaky_relu") return at::leaky_relu(x, 0.01);
  if (name == "silu" || name == "swish") return at::silu(x);
  if (name == "mish") return at::mish(x);
  if (name == "tanh") return at::tanh(x);
  if (name == "sigmoid") return at::sigmoid(x);
  if (name == "laplace") return 0.5 * (1 + at::erf((x - 0.707107) / (0.282095 * 1.4142135623730951)));
  if (name == "linear") return x;
  fail<ConfigError>("activation '", name, "' is unknown");
}

Tensor linear_rotary(const Tensor& x, const Param& w, const Param& b, const Tensor& table) {
  const auto qkv = plain::linear(x, w, b);  // [..., T, 3 H C]
  const int64_t half = table.size(-1) / 2;
  const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto heads = qkv.unflatten(-1, {-1, 2, half});          // [..., T, 3 H, 2, C / 2]
  const auto angles = table.to(wide).unflatten(-1, {2, half});  // [T, 2, C / 2]
  const auto cosines = angles.select(1, 0).unsqueeze(1), sines = angles.select(1, 1).unsqueeze(1);  // [T, 1, C / 2]
  const int64_t rotated = w.value().size(0) / 3 / half;                                             // 2 H
  const auto both = heads.narrow(-3, 0, rotated).to(wide);
  const auto u = both.select(-2, 0), v = both.select(-2, 1);  // [..., T, 2 H, C / 2]
  const auto turned = at::stack({u * cosines - v * sines, v * cosines + u * sines}, -2).to(x.scalar_type());
  return at::cat({turned, heads.narrow(-3, rotated, rotated / 2)}, -3).flatten(-3);
}

Tensor layer_norm(const Tensor& x, const NormParams& norm) {
  const auto dtype = x.scalar_type();
  const auto gamma = weight(norm.gamma, dtype);
  if (norm.centred) return at::layer_norm(x, gamma.sizes(), gamma, weight(norm.beta, dtype), norm.eps);
  const auto wide = dtype == at::kBFloat16 ? x.to(at::kFloat) : x;
  const auto scaled = (wide * at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + norm.eps)).to(dtype) * gamma;
  return norm.beta.defined() ? scaled + weight(norm.beta, dtype) : scaled;
}

Tensor dropout(const Tensor& x, const Dropout& drop) {
  if (!drop.on()) return x;
  return x * dropout_mask(x.sizes(), drop, x.device()).to(x.scalar_type());
}

Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const NormParams& norm) {
  return plain::layer_norm(plain::linear_dropout_add(x, w, b, drop, residual), norm);
}

Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                          const Tensor& residual) {
  return residual + plain::dropout(plain::linear(x, w, b), drop);
}

Tensor heads_of(const Tensor& x, int64_t heads) {
  return x.unflatten(-1, {heads, x.size(-1) / heads}).transpose(1, 2);
}  // of the config, so a constant of the trace

namespace {

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

Tensor softmax(const Tensor& scores) {
  const bool records = at::GradMode::is_enabled() && scores.requires_grad() && !torch::jit::tracer::isTracing();
  return records ? Softmax::apply(scores) : at::softmax(scores, -1);
}

}  // namespace

Tensor masked_softmax(const Tensor& scores, const Tensor& masked) {
  return masked.defined() ? softmax(scores.masked_fill(masked, -30000.0)).masked_fill(masked, 0.0) : softmax(scores);
}

namespace {

struct Heads {
  Tensor q, k, v;  // [B, H, T | S, C]
};

Tensor with_bias(const Tensor& x, const Param& bias) { return bias.defined() ? x + weight(bias, x.scalar_type()) : x; }

Heads split_heads(const Tensor& qkv, const Param& bias, int64_t heads) {
  const auto all = with_bias(qkv, bias);
  const auto parts =
      all.unflatten(-1, {3, heads, all.size(-1) / 3 / heads}).permute({2, 0, 3, 1, 4});  // [3, B, H, T, C]
  return {parts.select(0, 0), parts.select(0, 1), parts.select(0, 2)};
}

/// 0, 1, 2, ... along axis 2 of x [B, H, T, C].
Tensor positions_of(const Tensor& x) {
  return at::ones_like(x.select(-1, 0).select(0, 0).select(0, 0), at::kLong).cumsum(0) - 1;
}

/// int64 [T, S]: key minus query position; the last query is aligned with the last key.
Tensor distances(const Heads& h) {
  const auto t = positions_of(h.q), s = positions_of(h.k);
  return (s - s.slice(0, -1)).unsqueeze(0) - (t - t.slice(0, -1)).unsqueeze(1);
}

/// bool [B or 1, 1, T or 1, S], true = may be attended to; undefined if every query attends to every key.
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

/// [H, T, S] in the dtype of the heads, or undefined.
Tensor pair_bias(const Heads& h, const AttentionContext& context) {
  if (!context.distance_bias.defined()) return {};
  const auto index = positions_of(h.k).unsqueeze(0) + positions_of(h.q).flip(0).unsqueeze(1);  // [T, S]: s + T - 1 - t
  return at::embedding(context.distance_bias.t(), index).permute({2, 0, 1}).to(h.q.scalar_type());
}

Tensor probabilities_of(const Heads& h, const AttentionContext& context) {
  auto scores = at::matmul(h.q, h.k.transpose(-1, -2));  // [B, H, T, S]
  if (const double scale = scale_of(h, context); scale != 1) scores = scores * scale;
  if (const auto bias = pair_bias(h, context); bias.defined()) scores = scores + bias;
  const auto mask = attention_mask(h, context);
  return masked_softmax(scores, mask.defined() ? mask.logical_not() : Tensor());
}

Tensor attend(const Heads& h, const AttentionContext& context, const Dropout& drop) {
  if (context.probabilities) context.probabilities->push_back(probabilities_of(h, context).detach());
  Tensor mixed;  // [B, H, T, C]
  if (drop.on() || context.scale > 0 ||
      context.distance_bias.defined()) {  // unscaled scores grow large: rounded as in the published code
    mixed = at::matmul(plain::dropout(probabilities_of(h, context), drop), h.v);
  } else {
    const auto mask = attention_mask(h, context);
    mixed =
        at::scaled_dot_product_attention(h.q, h.k, h.v, mask.defined() ? std::optional<Tensor>(mask) : std::nullopt);
    if (mask.defined()) mixed = mixed.masked_fill(mask.any(-1, /*keepdim=*/true).logical_not(), 0.0);
  }
  return mixed.transpose(1, 2).flatten(2);  // [B, T, D]
}

/// Heads [first, first + size(1)) of q, k, v with their dilation.
struct WindowHeads {
  Tensor q, k, v;  // [B, h, T, C]
  int64_t first, heads, dilation;
};

/// Dropout factors for the chunks of a window: probabilities [B, h, n, w, G + 3 w] of the queries in `order` [T].
/// The draws of a query are indexed by the distance of the key; those of global keys have a site of their own.
Tensor window_dropout(const Tensor& probabilities, const Tensor& distance, int64_t window, const Tensor& order,
                      const WindowHeads& part, const Dropout& drop) {
  const int64_t batch = probabilities.size(0), heads = probabilities.size(1), n = probabilities.size(2),
                w = probabilities.size(3), num_globals = probabilities.size(4) - distance.size(1),
                length = order.size(0);
  const auto in_chunks = [&](const Tensor& rows) {
    return at::constant_pad_nd(rows.narrow(1, part.first, heads).index_select(2, order), {0, 0, 0, n * w - length})
        .view({batch, heads, n, w, rows.size(-1)});
  };
  const auto near = in_chunks(dropout_mask({batch, part.heads, length, 2 * window + 1}, drop, probabilities.device()));
  const auto column = (distance + window).clamp(0, 2 * window).expand({batch, heads, n, w, distance.size(1)});
  auto factors = at::gather(near, -1, column);
  if (num_globals > 0) {
    Dropout global_drop = drop;
    global_drop.site ^= 0x10000;
    factors =
        at::cat({in_chunks(dropout_mask({batch, part.heads, length, num_globals}, global_drop, probabilities.device())),
                 factors},
                -1);
  }
  return factors;
}

/// Attention in a window of w keys on either side; returns [B, h, T, C]. Queries are split into chunks of w, each with
/// the 3 w keys around it, so that no [T, T] tensor is made; the global keys [B, G] precede the keys of each chunk. For
/// a dilated window, tokens are reordered so that its keys are contiguous.
Tensor window_heads(const WindowHeads& part, const Tensor& real, const AttentionContext& context, const Dropout& drop) {
  const int64_t w = std::max<int64_t>(context.window, 1);
  const auto position = at::ones_like(real.select(0, 0), at::kLong).cumsum(0) - 1;  // [T]
  const auto residue = position.remainder(part.dilation);                           // [T]
  const auto order = part.dilation > 1 ? at::argsort(residue, /*stable=*/true, 0, /*descending=*/false)
                                       : position;  // [T]: the token at each index
  const auto ordered = [&](const Tensor& x, int64_t axis) {
    return part.dilation > 1 ? x.index_select(axis, order) : x;
  };
  const auto q = ordered(part.q, 2), k = ordered(part.k, 2), v = ordered(part.v, 2);
  const auto chunks = [&](const Tensor& x, int64_t before, int64_t after, int64_t size) {
    return at::constant_pad_nd(x, {0, 0, before, after}).unfold(2, size, w).transpose(-1, -2);
  };
  const auto queries = chunks(q, 0, w - 1, w), keys = chunks(k, w, 2 * w - 1, 3 * w),
             values = chunks(v, w, 2 * w - 1, 3 * w);  // [B, h, n, w | 3 w, C]
  // Column j of a chunk is the key at distance j - w from its first query.
  const auto from = at::arange(w, q.options().dtype(at::kLong)).unsqueeze(1),
             to = at::arange(3 * w, q.options().dtype(at::kLong)).unsqueeze(0);
  const auto distance = to - w - from;  // [w, 3 w]
  auto local = real;
  if (context.global_mask.defined()) local = real.logical_and(context.global_mask.logical_not());
  const auto near = at::constant_pad_nd(ordered(local, 1), {w, 2 * w - 1})
                        .unfold(1, 3 * w, w)
                        .unsqueeze(1)
                        .unsqueeze(3);                              // [B, 1, n, 1, 3 w]
  auto mask = near.logical_and(distance.abs().le(context.window));  // [B, 1, n, w, 3 w]
  if (part.dilation > 1) {
    const auto residues = ordered(residue, 0);
    const auto of_queries = at::constant_pad_nd(residues, {0, w - 1}, -1).unfold(0, w, w).unsqueeze(-1),
               of_keys = at::constant_pad_nd(residues, {w, 2 * w - 1}, -1).unfold(0, 3 * w, w).unsqueeze(-2);
    mask = mask.logical_and(of_queries.eq(of_keys));  // [n, w, 3 w]
  }
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  auto scores = at::matmul(queries, keys.transpose(-1, -2)) * scale;  // [B, h, n, w, 3 w]
  Tensor global_values;
  if (context.global_mask.defined()) {
    const auto marked = marked_positions(context.global_mask);                         // [B, G]
    const auto exists = at::gather(context.global_mask.logical_and(real), 1, marked);  // [B, G]
    const auto pick = [&](const Tensor& x) {
      return at::gather(x, 2, marked.unsqueeze(1).unsqueeze(-1).expand({-1, x.size(1), -1, x.size(3)}));
    };
    const auto global_scores =
        at::matmul(queries, pick(part.k).transpose(-1, -2).unsqueeze(2)) * scale;  // [B, h, n, w, G]
    global_values = pick(part.v).unsqueeze(2);
    mask = at::cat(
        {exists.unsqueeze(1).unsqueeze(1).unsqueeze(1).expand_as(global_scores.select(1, 0).unsqueeze(1)), mask}, -1);
    scores = at::cat({global_scores, scores}, -1);
  }
  auto probabilities = masked_softmax(scores, mask.logical_not());
  if (drop.on())
    probabilities =
        probabilities * window_dropout(probabilities, distance, context.window, order, part, drop).to(q.scalar_type());
  const int64_t near_columns = 3 * w;
  auto mixed = at::matmul(probabilities.slice(-1, -near_columns), values);
  if (global_values.defined()) mixed = mixed + at::matmul(probabilities.slice(-1, 0, -near_columns), global_values);
  return mixed.flatten(2, 3).index_select(2, part.dilation > 1 ? at::argsort(order) : position);  // [B, h, T, C]
}

Tensor window_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                        const Dropout& drop) {
  const auto [q, k, v] = split_heads(qkv, bias, heads);  // [B, H, T, C]
  if (context.probabilities && !context.global_mask.defined() && context.dilation == 1)
    context.probabilities->push_back(probabilities_of({q, k, v}, context).detach());
  const auto real =
      context.key_mask.defined() ? context.key_mask : at::ones_like(qkv.select(-1, 0), at::kBool);  // [B, T]
  const auto part = [&](int64_t first, int64_t count, int64_t dilation) {
    return window_heads(
        {q.narrow(1, first, count), k.narrow(1, first, count), v.narrow(1, first, count), first, heads, dilation}, real,
        context, drop);
  };
  int64_t dilated = 0;
  if (context.dilation != 1) dilated = context.dilated_heads == 0 ? heads : std::min(context.dilated_heads, heads);
  const auto mixed = dilated == 0 || dilated == heads
                         ? part(0, heads, context.dilation)
                         : at::cat({part(0, dilated, context.dilation), part(dilated, heads - dilated, 1)}, 1);
  return mixed.transpose(1, 2).flatten(2);  // [B, T, D]
}

/// Sum over j <= i of (a_i . b_j) v_j: a, b [B, H, T, R], v [B, H, T, C]. One sum is kept for each chunk of the
/// sequence, so that memory is linear.
Tensor causal_sums(const Tensor& a, const Tensor& b, const Tensor& v) {
  constexpr int64_t chunk = 64;
  const auto chunks = [&](const Tensor& x) {
    return at::constant_pad_nd(x, {0, 0, 0, chunk - 1}).unfold(2, chunk, chunk).transpose(-1, -2);
  };  // [B, H, n, 64, .]
  const auto ca = chunks(a), cb = chunks(b), cv = chunks(v);
  const auto sums = at::matmul(cb.transpose(-1, -2), cv);  // [B, H, n, R, C]
  const auto before = at::constant_pad_nd(sums.cumsum(2), {0, 0, 0, 0, 1, 0})
                          .slice(2, 0, -1);  // of the preceding chunks; no difference of large sums
  const auto mixed = at::matmul(ca, before) + at::matmul(at::matmul(ca, cb.transpose(-1, -2)).tril(), cv);
  const auto position = at::ones_like(a.select(-1, 0).select(0, 0).select(0, 0), at::kLong).cumsum(0) - 1;
  return mixed.flatten(2, 3).index_select(2, position);  // [B, H, T, C]
}

}  // namespace

Tensor relative_shift(const Tensor& by_distance, const Tensor& keys) {
  // Without the first T elements and with rows one shorter, row t starts t elements later.
  const auto rows = by_distance.reshape_as(by_distance.transpose(-1, -2))
                        .slice(-2, 1)
                        .reshape_as(by_distance.slice(-1, 1));  // [..., T, S + T - 1]
  return torch::jit::tracer::isTracing() ? rows.index_select(-1, keys) : rows.narrow(-1, 0, keys.size(0));
}

Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop) {
  const auto type = q.scalar_type(), wide = type == at::kDouble ? at::kDouble : at::kFloat;
  const auto own = heads_of(q, heads), k = heads_of(kv.chunk(2, -1)[0], heads),
             v = heads_of(kv.chunk(2, -1)[1], heads);  // [B, H, N | S, C]
  const auto with = [&](const Param& bias) {
    return (own + weight(bias, type).unsqueeze(1)) / std::sqrt(static_cast<double>(own.size(-1)));
  };
  const auto content = at::matmul(with(terms.r_w), k.transpose(-1, -2)).to(wide);  // [B, H, N, S]
  const auto by_distance =
      at::matmul(
          with(terms.r_r),
          heads_of(terms.distance_list.defined() ? r.index_select(0, terms.distance_list) : r.narrow(0, 0, 1), heads)
              .transpose(-1, -2))
          .to(wide);  // [B, H, N, R]
  const auto keys = positions_of(k);
  auto scores =
      content +
      (terms.distance_offset.defined()
           ? at::gather(by_distance, -1, (terms.distance_offset.unsqueeze(1).unsqueeze(-1) + keys).expand_as(content))
           : relative_shift(by_distance, keys));
  if (terms.segments_differ.defined()) {
    const auto by_segment =
        at::matmul(with(terms.r_s), weight(terms.segments, type).permute({1, 2, 0})).to(wide);  // [B, H, N, 2]
    scores = scores +
             at::where(terms.segments_differ.unsqueeze(1), by_segment.narrow(-1, 1, 1), by_segment.narrow(-1, 0, 1));
  }
  const auto p = masked_softmax(scores, terms.masked.defined() ? terms.masked.unsqueeze(1) : Tensor());
  if (terms.probabilities) terms.probabilities->push_back(p.detach());
  return at::matmul(plain::dropout(p, drop).to(type), v).transpose(1, 2).flatten(2);
}

Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                       const RandomFeatures& f) {
  const auto type = qkv.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto parts = split_heads(qkv, bias, heads);  // [B, H, T, C]
  const double scale = std::pow(static_cast<double>(parts.q.size(-1)), -0.25);
  const auto q = parts.q.to(type) * scale, k = parts.k.to(type) * scale, w = f.projection.to(type).t();
  auto v = parts.v.to(type);
  v = at::cat({v, at::ones_like(v.narrow(-1, 0, 1))}, -1);  // the last column becomes the denominator
  const auto sq = at::matmul(q, w), sk = at::matmul(k, w);  // [B, H, T, R]
  const auto hq = 0.5 * q.square().sum(-1, /*keepdim=*/true), hk = 0.5 * k.square().sum(-1, /*keepdim=*/true);
  Tensor absent;  // bool [B, 1, T, 1]
  if (context.key_mask.defined()) absent = context.key_mask.logical_not().unsqueeze(1).unsqueeze(-1);
  const auto only_real = [&](const Tensor& x, double value) {
    return absent.defined() ? x.masked_fill(absent, value) : x;
  };
  Tensor fq, fk, late;  // features; `late`: epsilon at each position, relative to the keys up to it (causal)
  switch (f.kernel) {
    case FeatureKernel::relu:
      fq = at::relu(sq) + f.epsilon;
      fk = only_real(at::relu(sk) + f.epsilon, 0);
      break;
    case FeatureKernel::softmax: {
      const auto peaks = only_real(sk.detach().amax(-1, /*keepdim=*/true), -1e30);  // [B, H, T, 1]
      const auto top = peaks.amax(2, /*keepdim=*/true);                             // [B, H, 1, 1]
      fq = at::exp(sq - hq - sq.detach().amax(-1, /*keepdim=*/true)) + f.epsilon;
      fk = at::exp(only_real(sk - hk - top, -1e30));
      if (context.causal)
        late = f.epsilon * at::exp(std::get<0>(at::cummax(peaks, 2)) - top);
      else
        fk = only_real(fk + f.epsilon, 0);
      break;
    }
    case FeatureKernel::trigonometric: {
      const auto height = only_real(hk, -1e30);
      const auto level = at::exp(height - height.amax(2, /*keepdim=*/true).detach());
      fq = at::cat({sq.sin(), sq.cos()}, -1);
      fk = at::cat({sk.sin() * level, sk.cos() * level}, -1);
      break;
    }
  }
  Tensor sums;  // [B, H, T, C + 1]
  if (context.causal) {
    sums = causal_sums(fq, fk, v);
    if (late.defined()) sums = sums + late * fq.sum(-1, /*keepdim=*/true) * only_real(v, 0).cumsum(2);
  } else {
    sums = at::matmul(fq, at::matmul(fk.transpose(-1, -2), v));
  }
  const auto numerator = sums.slice(-1, 0, -1);
  auto denominator = sums.slice(-1, -1);
  if (f.kernel == FeatureKernel::trigonometric)
    denominator = denominator + 2e-6 * denominator.detach().abs().le(1e-6).to(type);
  const auto all_masked = denominator.eq(0);
  const auto mixed = (numerator / denominator.masked_fill(all_masked, 1)).masked_fill(all_masked, 0);
  return mixed.transpose(1, 2).flatten(2).to(qkv.scalar_type());  // [B, T, D]
}

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

Tensor embed(const EmbeddingIds& in, const EmbeddingTables& t, const Dropout& drop) {
  const auto dtype = t.word.compute().scalar_type();
  auto sum = at::embedding(weight(t.word, dtype), in.ids, t.word.padding_row());
  if (t.scale != 1) sum = sum * t.scale;
  if (t.type.defined()) {
    const auto segment = weight(t.type, dtype);
    sum = sum + (in.types.defined() ? at::embedding(segment, in.types) : segment.select(0, 0));
  }
  if (t.position.defined()) {
    const auto positions = in.positions.defined() ? in.positions : at::ones_like(in.ids).cumsum(1) - 1;  // [B, T]
    const auto position = t.position.fixed() ? weight(t.position, dtype).detach() : weight(t.position, dtype);
    sum = sum + at::embedding(position, positions, t.position.padding_row());
  }
  return plain::dropout(t.norm.gamma.defined() ? plain::layer_norm(sum, t.norm) : sum, drop);
}

Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape, int64_t* correct, TokenDraw* draw) {
  if (draw) draw->drawn = plain::draw_tokens(hidden.detach(), table, bias, *draw);
  auto logits = plain::linear(hidden, table, bias);  // [N, V]
  if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
  if (correct) *correct = logits.argmax(-1).eq(labels).sum().item<int64_t>();
  auto loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, -100, shape.label_smoothing);
  return shape.z_loss > 0 ? loss + shape.z_loss * at::logsumexp(logits, {-1}).square().sum() : loss;
}

Tensor draw_tokens(const Tensor& hidden, const Param& table, const Param& bias, const TokenDraw& draw) {
  at::NoGradGuard no_grad;
  const auto logits = plain::linear(hidden, table, bias).to(at::kDouble) / draw.temperature;  // [N, V]
  const auto sums = at::softmax(logits, -1).cumsum(-1);
  const auto wanted = (draw.uniform.to(hidden.device()) * sums.select(-1, -1)).unsqueeze(-1);
  return at::searchsorted(sums, wanted, /*out_int32=*/false, /*right=*/true).squeeze(-1).clamp_max(sums.size(-1) - 1);
}

Tensor take_rows(const Tensor& x, const Tensor& index) { return x.index_select(0, index); }

}  // namespace cloze::plain

// Attention in a sliding window. Source: Beltagy et al. 2020, section 3 (arXiv 2004.05150).
#include "core/tensor/plain_heads.h"

#include <cmath>

namespace cloze::plain {

namespace {

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
  const auto drawn = [&](at::IntArrayRef sizes, const Dropout& from) {
    return cloze::dropout(at::ones(sizes, probabilities.options().dtype(at::kFloat)), from);
  };
  const auto near = in_chunks(drawn({batch, part.heads, length, 2 * window + 1}, drop));
  const auto column = (distance + window).clamp(0, 2 * window).expand({batch, heads, n, w, distance.size(1)});
  auto factors = at::gather(near, -1, column);
  if (num_globals > 0) {
    Dropout global_drop = drop;
    global_drop.site ^= 0x10000;
    factors = at::cat({in_chunks(drawn({batch, part.heads, length, num_globals}, global_drop)), factors}, -1);
  }
  return factors;
}

/// The order of tokens in which the keys of a dilated window are contiguous.
struct WindowOrder {
  WindowOrder(const Tensor& real, int64_t given)
      : dilation(given),
        position(at::ones_like(real.select(0, 0), at::kLong).cumsum(0) - 1),
        residue(position.remainder(dilation)),
        token(dilation > 1 ? at::argsort(residue, /*stable=*/true, 0, /*descending=*/false) : position) {}

  Tensor of(const Tensor& x, int64_t axis) const { return dilation > 1 ? x.index_select(axis, token) : x; }
  Tensor undone(const Tensor& x, int64_t axis) const {
    return x.index_select(axis, dilation > 1 ? at::argsort(token) : position);
  }

  int64_t dilation;
  Tensor position, residue;  // [T]: 0, 1, ...; modulo the dilation
  Tensor token;              // [T]: the token at each index
};

/// Which keys of its chunk a query may attend to, bool [B, 1, n, w, 3 w]; `local` bool [B, T], true = a key of its
/// neighbours alone; `distance` [w, 3 w].
Tensor near_mask(const Tensor& local, const Tensor& distance, int64_t window, const WindowOrder& order) {
  const int64_t w = distance.size(0);
  const auto near = at::constant_pad_nd(order.of(local, 1), {w, 2 * w - 1})
                        .unfold(1, 3 * w, w)
                        .unsqueeze(1)
                        .unsqueeze(3);                            // [B, 1, n, 1, 3 w]
  const auto mask = near.logical_and(distance.abs().le(window));  // [B, 1, n, w, 3 w]
  if (order.dilation == 1) return mask;
  const auto residues = order.of(order.residue, 0);
  const auto of_queries = at::constant_pad_nd(residues, {0, w - 1}, -1).unfold(0, w, w).unsqueeze(-1),
             of_keys = at::constant_pad_nd(residues, {w, 2 * w - 1}, -1).unfold(0, 3 * w, w).unsqueeze(-2);
  return mask.logical_and(of_queries.eq(of_keys));  // [n, w, 3 w]
}

/// The global keys of each row.
struct GlobalKeys {
  Tensor k, v;    // [B, h, 1, G, C]
  Tensor exists;  // bool [B, 1, 1, 1, G]
};
GlobalKeys global_keys(const WindowHeads& part, const Tensor& real, const AttentionContext& context) {
  const auto marked = marked_positions(context.global_mask, context.globals);        // [B, G]
  const auto exists = at::gather(context.global_mask.logical_and(real), 1, marked);  // [B, G]
  const auto pick = [&](const Tensor& x) {
    return at::gather(x, 2, marked.unsqueeze(1).unsqueeze(-1).expand({-1, x.size(1), -1, x.size(3)})).unsqueeze(2);
  };
  return {pick(part.k), pick(part.v), exists.unsqueeze(1).unsqueeze(1).unsqueeze(1)};
}

/// softmax(Q K' / sqrt(C)) V of chunks [B, h, n, w | 3 w, C] under a mask [B, 1, n, w, 3 w], by one operator of
/// LibTorch: [B, h, n, w, C].
Tensor mixed_at_once(const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& mask) {
  const int64_t heads = queries.size(1);
  const auto flat = [&](const Tensor& x) { return x.flatten(0, 1); };  // [B h, n, ...]
  const auto visible = flat(mask.expand({-1, heads, -1, -1, -1}));
  const auto mixed = at::scaled_dot_product_attention(flat(queries), flat(keys), flat(values), visible);
  return mixed.unflatten(0, {-1, heads}).masked_fill(mask.any(-1, /*keepdim=*/true).logical_not(), 0.0);
}

/// Attention in a window of w keys on either side; returns [B, h, T, C]. Queries are split into chunks of w, each with
/// the 3 w keys around it, so that no [T, T] tensor is made; the global keys [B, G] precede the keys of each chunk. For
/// a dilated window, tokens are reordered so that its keys are contiguous.
Tensor window_heads(const WindowHeads& part, const Tensor& real, const AttentionContext& context, const Dropout& drop) {
  const int64_t w = std::max<int64_t>(context.window, 1);
  const WindowOrder order(real, part.dilation);
  const auto q = order.of(part.q, 2), k = order.of(part.k, 2), v = order.of(part.v, 2);
  const auto chunks = [&](const Tensor& x, int64_t before, int64_t after, int64_t size) {
    return at::constant_pad_nd(x, {0, 0, before, after}).unfold(2, size, w).transpose(-1, -2);
  };
  const auto queries = chunks(q, 0, w - 1, w), keys = chunks(k, w, 2 * w - 1, 3 * w),
             values = chunks(v, w, 2 * w - 1, 3 * w);  // [B, h, n, w | 3 w, C]
  // Column j of a chunk is the key at distance j - w from its first query.
  const auto from = at::arange(w, q.options().dtype(at::kLong)).unsqueeze(1),
             to = at::arange(3 * w, q.options().dtype(at::kLong)).unsqueeze(0);
  const auto distance = to - w - from;  // [w, 3 w]
  const bool has_globals = context.global_mask.defined();
  const auto local = has_globals ? real.logical_and(context.global_mask.logical_not()) : real;
  auto mask = near_mask(local, distance, context.window, order);
  if (!has_globals && !goes_by_scores(q, drop))
    return order.undone(mixed_at_once(queries, keys, values, mask).flatten(2, 3), 2);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  auto scores = at::matmul(queries, keys.transpose(-1, -2)) * scale;  // [B, h, n, w, 3 w]
  GlobalKeys globals;
  if (has_globals) {
    globals = global_keys(part, real, context);
    const auto global_scores = at::matmul(queries, globals.k.transpose(-1, -2)) * scale;  // [B, h, n, w, G]
    mask = at::cat({globals.exists.expand_as(global_scores.select(1, 0).unsqueeze(1)), mask}, -1);
    scores = at::cat({global_scores, scores}, -1);
  }
  auto probabilities = visible_softmax(scores, mask);
  if (drop.on())
    probabilities =
        probabilities *
        window_dropout(probabilities, distance, context.window, order.token, part, drop).to(q.scalar_type());
  const int64_t near_columns = 3 * w;
  auto mixed = at::matmul(probabilities.slice(-1, -near_columns), values);
  if (has_globals) mixed = mixed + at::matmul(probabilities.slice(-1, 0, -near_columns), globals.v);
  return order.undone(mixed.flatten(2, 3), 2);  // [B, h, T, C]
}

}  // namespace

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

}  // namespace cloze::plain

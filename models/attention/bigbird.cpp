#include <cmath>

#include "core/random.h"
#include "core/tensor/plain.h"
#include "models/attention/attention.h"

namespace cloze {

namespace {

/// Attention over blocks of keys. Queries of the first and the last block see everything; the others see those two, the
/// blocks beside their own, and random ones. Source: Zaheer et al. 2020, section 2 and appendix D (arXiv 2007.14062).
struct BigBirdAttentionLayer final : Attention {
  BigBirdAttentionLayer(const BigBirdAttention& given, const AttentionSizes& c, int64_t layer)
      : Attention(c), kind(given) {
    // Each head has an order of all blocks for each block of queries; its random blocks are the first of them that are
    // neither global nor neighbours, at whatever length.
    const int64_t most = (c.max_position_embeddings + kind.block_size - 1) / kind.block_size;
    order = at::empty({heads, most, most}, at::kLong);
    auto* out = order.data_ptr<int64_t>();
    for (int64_t row = 0; row < heads * most; ++row) {
      const Permutation shuffled(
          static_cast<uint64_t>(most),
          cloze::mix(Rng(static_cast<uint64_t>(layer)).key("blocks"), static_cast<uint64_t>(row)));
      for (int64_t i = 0; i < most; ++i) out[row * most + i] = static_cast<int64_t>(shuffled(static_cast<uint64_t>(i)));
    }
  }

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    const int64_t b = kind.block_size;
    const auto type = x.scalar_type();
    const auto [q, k, v] = split_heads(qkv->forward(x), heads);  // [B, H, T, C]
    const auto real = context.key_mask.defined() ? context.key_mask : at::ones_like(x.select(-1, 0), at::kBool);
    const auto blocks = [&](const Tensor& t) {
      return at::constant_pad_nd(t, {0, 0, 0, b - 1}).unfold(2, b, b).transpose(-1, -2);
    };  // [B, H, n, b, C]
    const auto qb = blocks(q), kb = blocks(k), vb = blocks(v);
    const auto there = at::constant_pad_nd(real, {0, b - 1}).unfold(1, b, b);  // [B, n, b]
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));

    // Slots of block i: 0, n - 1, i - 1, i, i + 1, then random ones; a block that has a slot already is not used again.
    const auto i = places(there).unsqueeze(1);  // [n, 1]
    const auto last = i.max();
    const auto fixed = at::cat({i - i, i - i + last, i - 1, i, i + 1}, 1);  // [n, 5]
    const auto middle = fixed.gt(0).logical_and(fixed.lt(last));            // slots 2 to 4 are not global
    const auto usable = at::cat({i.ge(0), last.gt(0).expand_as(i), middle.slice(1, 2)}, 1);
    auto slots = fixed.clamp_min(0).minimum(last).unsqueeze(0).expand({heads, -1, -1});  // [H, n, 5]
    auto valid = usable.unsqueeze(0).expand({heads, -1, -1});
    if (kind.num_random_blocks > 0) {
      const auto ranked = order.to(x.device()).index_select(1, i.squeeze(1));  // [H, n, all]
      const auto legal = ranked.gt(0).logical_and(ranked.lt(last)).logical_and((ranked - i).abs().gt(1));
      const auto rank = at::ones_like(ranked).cumsum(-1).masked_fill(legal.logical_not(), 1 << 30);
      const auto first = std::get<0>(
          at::topk(rank, std::min(kind.num_random_blocks, order.size(2)), -1, /*largest=*/false));  // [H, n, r]
      const auto found = first.lt(1 << 30);
      slots =
          at::cat({slots, at::gather(ranked, -1, (first - 1).masked_fill(found.logical_not(), 0)).minimum(last)}, -1);
      valid = at::cat({valid, found}, -1);
    }
    const auto head = at::ones_like(slots).cumsum(0) - 1;  // [H, n, s]
    // A table of the blocks of all heads, read by row: the gradients of a block that is read twice are added up in one
    // order.
    const auto row = head * (last + 1) + slots;  // [H, n, s]
    const auto gather = [&](const Tensor& t) {
      const auto table = t.permute({1, 2, 0, 3, 4}).flatten(2).flatten(0, 1);            // [H n, B b C]
      const auto picked = at::embedding(table, row).unflatten(-1, {-1, b, q.size(-1)});  // [H, n, s, B, b, C]
      return picked.permute({3, 0, 1, 2, 4, 5}).flatten(3, 4);                           // [B, H, n, s b, C]
    };
    const auto open = there.transpose(0, 1)
                          .index({slots})
                          .permute({3, 0, 1, 2, 4})
                          .logical_and(valid.unsqueeze(0).unsqueeze(-1))
                          .flatten(3)
                          .unsqueeze(-2);  // [B, H, n, 1, s b]
    const auto attend = [&](const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& seen,
                            uint32_t site) {
      const auto probabilities = masked_softmax(
          (matrix_product(queries, keys.transpose(-1, -2)) * scale).to(wide_type(x)), seen.logical_not());
      Dropout own = drop;
      own.site ^= site;
      return matrix_product(dropout(probabilities.contiguous(), own).to(type), values);
    };
    const auto near = attend(qb, gather(kb), gather(vb), open, 0);  // [B, H, n, b, C]
    const auto everything = real.unsqueeze(1).unsqueeze(1);         // [B, 1, 1, T]
    const auto ends = attend(at::cat({qb.select(2, 0), qb.select(2, -1)}, 2), k, v, everything, 0x10000)
                          .chunk(2, 2);  // [B, H, b, C] each
    const auto at_end = [&](const Tensor& which) { return which.unsqueeze(-1); };
    const auto mixed =
        at::where(at_end(i.eq(0)), ends[0].unsqueeze(2), at::where(at_end(i.eq(last)), ends[1].unsqueeze(2), near));
    return join_heads(mixed.flatten(2, 3).index_select(2, places(x)));
  }

  BigBirdAttention kind;
  Tensor order;  // int64 [H, n, n]
};

}  // namespace

std::shared_ptr<Attention> make_bigbird_attention(const BigBirdAttention& kind, const AttentionSizes& config,
                                                  int64_t layer) {
  return std::make_shared<BigBirdAttentionLayer>(kind, config, layer);
}

}  // namespace cloze

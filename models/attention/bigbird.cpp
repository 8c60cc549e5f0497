#include "models/attention/bigbird.h"

#include <cmath>

#include "core/random.h"
#include "core/tensor/moved.h"
#include "core/tensor/plain.h"
#include "models/attention/attention.h"

namespace cloze {

namespace {

/// Block-sparse attention. Queries of the first and the last block attend to everything; the others attend to those two
/// global blocks, to a window of their own block and its neighbours, and to random blocks. Source: Zaheer et al. 2020,
/// section 2 and appendix D (arXiv 2007.14062).
struct BigBirdAttentionLayer final : Attention {
  BigBirdAttentionLayer(const BigBirdAttention& given, const AttentionSizes& c, int64_t layer)
      : Attention(c), kind(given) {
    // For each head and block of queries, a permutation of all blocks: its random blocks are the first ones that are
    // neither global nor in the window, whatever the length.
    const int64_t max_blocks = (c.max_position_embeddings + kind.block_size - 1) / kind.block_size;
    order = at::empty({heads, max_blocks, max_blocks}, at::kLong);
    auto* out = order.data_ptr<int64_t>();
    for (int64_t row = 0; row < heads * max_blocks; ++row) {
      const Permutation shuffled(
          static_cast<uint64_t>(max_blocks),
          cloze::mix(Rng(static_cast<uint64_t>(layer)).key("blocks"), static_cast<uint64_t>(row)));
      for (int64_t i = 0; i < max_blocks; ++i)
        out[row * max_blocks + i] = static_cast<int64_t>(shuffled(static_cast<uint64_t>(i)));
    }
  }

  /// The blocks of keys that each block of queries attends to.
  struct KeyBlocks {
    Tensor numbers;  ///< int64 [H, n, s]: 0, n - 1, i - 1, i, i + 1, then random ones
    Tensor valid;    ///< bool [H, n, s], false = outside the text, or there already
  };

  /// Those of the blocks i [n, 1] of queries, of which `last` is n - 1.
  KeyBlocks key_blocks_of(const Tensor& i, const Tensor& last) const {
    const auto fixed = at::cat({i - i, i - i + last, i - 1, i, i + 1}, 1);  // [n, 5]
    const auto middle = fixed.gt(0).logical_and(fixed.lt(last));            // columns 2 to 4 are not global
    const auto usable = at::cat({i.ge(0), last.gt(0).expand_as(i), middle.slice(1, 2)}, 1);
    auto key_blocks = fixed.clamp_min(0).minimum(last).unsqueeze(0).expand({heads, -1, -1});  // [H, n, 5]
    auto valid = usable.unsqueeze(0).expand({heads, -1, -1});
    if (kind.num_random_blocks > 0) {
      const auto ranked = moved_to(order, i.device()).index_select(1, i.squeeze(1));  // [H, n, all]
      const auto legal = ranked.gt(0).logical_and(ranked.lt(last)).logical_and((ranked - i).abs().gt(1));
      const auto rank = at::ones_like(ranked).cumsum(-1).masked_fill(legal.logical_not(), 1 << 30);
      const auto first = std::get<0>(
          at::topk(rank, std::min(kind.num_random_blocks, order.size(2)), -1, /*largest=*/false));  // [H, n, r]
      const auto exists = first.lt(1 << 30);
      key_blocks = at::cat(
          {key_blocks, at::gather(ranked, -1, (first - 1).masked_fill(exists.logical_not(), 0)).minimum(last)}, -1);
      valid = at::cat({valid, exists}, -1);
    }
    return {key_blocks, valid};
  }

  /// [B, ., T, ...] in blocks: [B, ., n, ..., b], the last one filled up with zeros.
  Tensor in_blocks(const Tensor& x, int64_t axis) const {
    std::vector<int64_t> fill(static_cast<size_t>(2 * (x.dim() - axis)), 0);
    fill.back() = kind.block_size - 1;
    return at::constant_pad_nd(x, fill).unfold(axis, kind.block_size, kind.block_size);
  }

  /// The chosen blocks [H, n, s] of keys or values in blocks [B, H, n, b, C], side by side: [B, H, n, s b, C]. An
  /// embedding lookup in a table of all heads' blocks, so that the gradients of a block that is gathered twice are
  /// accumulated in a fixed order.
  Tensor gathered(const Tensor& blocks, const Tensor& numbers, const Tensor& last) const {
    const auto row = (at::ones_like(numbers).cumsum(0) - 1) * (last + 1) + numbers;  // [H, n, s]
    const auto table = blocks.permute({1, 2, 0, 3, 4}).flatten(2).flatten(0, 1);     // [H n, B b C]
    const auto picked =
        at::embedding(table, row).unflatten(-1, {-1, kind.block_size, blocks.size(-1)});  // [H, n, s, B, b, C]
    return picked.permute({3, 0, 1, 2, 4, 5}).flatten(3, 4);
  }

  /// Attention of queries [..., t, C] to keys and values [..., s, C]; visible bool [..., 1, s].
  static Tensor attend(const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& visible,
                       Dropout drop, uint32_t site) {
    const double scale = 1 / std::sqrt(static_cast<double>(queries.size(-1)));
    const auto scores = (cloze::matmul(queries, keys.transpose(-1, -2)) * scale).to(accumulation_type(queries));
    const auto probabilities = visible_softmax(scores, visible);
    drop.site ^= site;
    return cloze::matmul(dropout(probabilities.contiguous(), drop).to(values.scalar_type()), values);
  }

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    const auto [q, k, v] = split_heads(qkv->forward(x), heads);  // [B, H, T, C]
    const auto real = context.key_mask.defined() ? context.key_mask : at::ones_like(x.select(-1, 0), at::kBool);
    const auto blocks = [&](const Tensor& t) { return in_blocks(t, 2).transpose(-1, -2); };  // [B, H, n, b, C]
    const auto queries = blocks(q);
    const auto real_blocks = in_blocks(real, 1);              // [B, n, b]
    const auto i = position_range(real_blocks).unsqueeze(1);  // [n, 1]
    const auto last = i.max();
    const auto [numbers, valid] = key_blocks_of(i, last);
    const auto open = real_blocks.transpose(0, 1)
                          .index({numbers})
                          .permute({3, 0, 1, 2, 4})
                          .logical_and(valid.unsqueeze(0).unsqueeze(-1))
                          .flatten(3)
                          .unsqueeze(-2);  // [B, H, n, 1, s b]
    const auto sparse = attend(queries, gathered(blocks(k), numbers, last), gathered(blocks(v), numbers, last), open,
                               drop, 0);                     // [B, H, n, b, C]
    const auto everything = real.unsqueeze(1).unsqueeze(1);  // [B, 1, 1, T]
    const auto ends = attend(at::cat({queries.select(2, 0), queries.select(2, -1)}, 2), k, v, everything, drop, 0x10000)
                          .chunk(2, 2);  // [B, H, b, C] each
    const auto at_end = [&](const Tensor& which) { return which.unsqueeze(-1); };
    const auto mixed =
        at::where(at_end(i.eq(0)), ends[0].unsqueeze(2), at::where(at_end(i.eq(last)), ends[1].unsqueeze(2), sparse));
    return join_heads(mixed.flatten(2, 3).index_select(2, position_range(x)));
  }

  double multiply_adds(const RowSizes& row, bool) const override {
    const auto size = static_cast<double>(kind.block_size), random = static_cast<double>(kind.num_random_blocks);
    const double between = std::ceil(row.length / size) - 2;  // blocks that are not global
    double pairs = row.length * row.length;
    if (between > 0) {
      const double ends = row.length - between * size;  // tokens of the first and the last block
      pairs = ends * row.length;
      for (double i = 1; i <= between; ++i) {
        const double near = std::min(i + 1, between) - std::max(i - 1, 1.0) + 1;
        pairs += size * (ends + size * (near + std::min(random, between - near)));
      }
    }
    return row.length * qkv->multiply_adds() + 2 * pairs * width();
  }

  BigBirdAttention kind;
  Tensor order;  // int64 [H, n, n], permutations of key blocks
};

}  // namespace

std::shared_ptr<Attention> BigBirdAttention::make(const AttentionSizes& sizes, int64_t layer, PositionScheme&) const {
  return std::make_shared<BigBirdAttentionLayer>(*this, sizes, layer);
}

}  // namespace cloze

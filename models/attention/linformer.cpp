#include "models/attention/linformer.h"

#include <cmath>

#include "core/tensor/plain.h"
#include "models/attention/attention.h"

namespace cloze {

namespace {

/// Attention to k projected positions, each a weighted sum of all positions: linear in the length.
/// Source: Wang et al. 2020, equation 7 (arXiv 2006.04768). As in fairseq, the sequence is projected before the biases
/// of keys and values are added.
struct LinformerAttentionLayer final : Attention {
  LinformerAttentionLayer(const LinformerAttention& kind, const AttentionSizes& c)
      : Attention(c),
        compress_key(own_param("compress_key", {c.max_position_embeddings / kind.compressed, c.max_position_embeddings},
                               Init::weight)),
        compress_value(kind.shared_kv_compressed
                           ? compress_key
                           : own_param("compress_value",
                                       {c.max_position_embeddings / kind.compressed, c.max_position_embeddings},
                                       Init::weight)) {
    for (auto projection : {compress_key, compress_value}) projection.set_projection(Projection::sequence);
  }

  Tensor mix(const Tensor& x, const AttentionContext& context, const Dropout& drop) override {
    const auto type = x.scalar_type();
    const auto real = context.key_mask.defined() ? x.masked_fill(context.key_mask.logical_not().unsqueeze(-1), 0.0) : x;
    const auto positions = position_range(x);
    const auto parts = linear(real, qkv->weight, Param()).chunk(3, -1);  // [B, T, D] each
    const auto biased = [&](const Tensor& rows, int64_t part) {
      return heads_of(
          qkv->bias.defined() ? rows + plain::weight(qkv->bias, type).chunk(3)[static_cast<size_t>(part)] : rows,
          heads);
    };  // [B, H, ., C]
    const auto project = [&](const Param& weights, const Tensor& rows) {
      return cloze::matmul(plain::weight(weights, type).index_select(1, positions), rows);
    };  // [B, k, D]
    const auto q = biased(parts[0], 0), k = biased(project(compress_key, parts[1]), 1),
               v = biased(project(compress_value, parts[2]), 2);
    const auto scores = cloze::matmul(q, k.transpose(-1, -2)).to(accumulation_type(x)) /
                        std::sqrt(static_cast<double>(q.size(-1)));  // [B, H, T, k]
    return join_heads(cloze::matmul(dropout(visible_softmax(scores, {}), drop).to(type), v));
  }

  double multiply_adds(const RowSizes& row, bool) const override {
    const auto keys = static_cast<double>(compress_key.value().size(0));
    // Keys and values are projected; then each query has a score and a value for each projected position.
    return row.length * (qkv->multiply_adds() + (2 + 2) * keys * width());
  }

  Param compress_key, compress_value;  // [k, max_position_embeddings]
};

}  // namespace

std::shared_ptr<Attention> LinformerAttention::make(const AttentionSizes& sizes, int64_t, PositionScheme&) const {
  return std::make_shared<LinformerAttentionLayer>(*this, sizes);
}

}  // namespace cloze

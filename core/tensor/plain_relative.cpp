// Attention with relative positions.
#include "core/tensor/plain_heads.h"

#include <torch/csrc/jit/frontend/tracer.h>

#include <cmath>

namespace cloze::plain {

Tensor relative_shift(const Tensor& by_distance, const Tensor& keys) {
  // Without the first T elements and with rows one shorter, row t starts t elements later.
  const auto rows = by_distance.reshape_as(by_distance.transpose(-1, -2))
                        .slice(-2, 1)
                        .reshape_as(by_distance.slice(-1, 1));  // [..., T, S + T - 1]
  return torch::jit::tracer::isTracing() ? rows.index_select(-1, keys) : rows.narrow(-1, 0, keys.size(0));
}

namespace {

/// The column of the distance of each pair of x [B, H, T, T], int64 of its shape.
Tensor columns_of_distances(const Tensor& x, int64_t reach) {
  const auto positions = positions_of(x);
  return ((positions.unsqueeze(0) - positions.unsqueeze(1)).clamp(-reach, reach) + reach).expand_as(x);
}

}  // namespace

Tensor add_by_distance(const Tensor& scores, const Tensor& by_distance) {
  return scores + at::gather(by_distance, -1, columns_of_distances(scores, by_distance.size(-1) / 2));
}

Tensor sum_by_distance(const Tensor& x, int64_t reach) {
  const auto zeros =
      at::zeros_like(x.narrow(-1, 0, 1).expand({-1, -1, -1, 2 * reach + 1}), {}, at::MemoryFormat::Contiguous);
  return zeros.scatter_add(-1, columns_of_distances(x, reach), x);
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
  const auto p = visible_softmax(scores, terms.visible.defined() ? terms.visible.unsqueeze(1) : Tensor());
  if (terms.probabilities) terms.probabilities->push_back(p.detach());
  return at::matmul(cloze::dropout(p, drop).to(type), v).transpose(1, 2).flatten(2);
}

}  // namespace cloze::plain

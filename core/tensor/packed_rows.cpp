#include "core/tensor/packed_rows.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace cloze {

Tensor PackedRows::pack(const Tensor& padded) const { return padded.flatten(0, 1).index_select(0, index).unsqueeze(0); }

Tensor PackedRows::unpack(const Tensor& packed) const {
  return at::zeros({rows * length, packed.size(2)}, packed.options())
      .index_copy(0, index, packed.squeeze(0))
      .view({rows, length, packed.size(2)});
}

Tensor PackedRows::mask() const {
  return at::zeros({rows * length}, at::kBool).index_fill(0, index, true).view({rows, length});
}

Tensor PackedRows::packed_indices(const Tensor& padded) const {
  const auto row = padded.div(length, "floor"), all = at::tensor(begins, at::kLong);
  const auto packed = all.index_select(0, row) + padded - row * length;
  require<ShapeError>(packed.lt(all.index_select(0, row + 1)).all().item<bool>(),
                      "the state of a position of padding is read, which nothing computes");
  return packed;
}

std::shared_ptr<const PackedRows> pack_rows(const Tensor& mask) {
  if (!mask.defined()) return nullptr;
  const auto dense = mask.contiguous();
  PackedRows packed{.rows = mask.size(0), .length = mask.size(1), .begins = {0}};
  for (int64_t b = 0; b < packed.rows; ++b) {
    const bool* row = dense.data_ptr<bool>() + b * packed.length;
    const auto real = std::count(row, row + packed.length, true);
    if (!std::all_of(row, row + real, std::identity())) return nullptr;
    packed.begins.push_back(packed.begins.back() + real);
  }
  const int64_t tokens = packed.begins.back();
  if (tokens == 0 || tokens == packed.rows * packed.length) return nullptr;
  packed.index = at::empty({tokens}, at::kLong);
  packed.positions = at::empty({tokens}, at::kLong);
  for (int64_t b = 0; b < packed.rows; ++b) {
    const auto begin = packed.begins[static_cast<size_t>(b)], end = packed.begins[static_cast<size_t>(b) + 1];
    auto* index = packed.index.data_ptr<int64_t>();
    auto* positions = packed.positions.data_ptr<int64_t>();
    std::iota(index + begin, index + end, b * packed.length);
    std::iota(positions + begin, positions + end, int64_t{0});
  }
  return std::make_shared<const PackedRows>(std::move(packed));
}

}  // namespace cloze

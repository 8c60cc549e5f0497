#include "core/tensor/unpadded_rows.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/tensor/device.h"
#include "core/tensor/moved.h"

namespace cloze {

namespace {

/// Whether kernels of ours move rows of x.
bool has_kernel(const Tensor& x) { return !x.is_cpu() && unpads_rows(x); }

}  // namespace

Tensor UnpaddedRows::unpad(const Tensor& padded) const {
  if (has_kernel(padded)) return device::moved_rows(padded.flatten(0, 1), index, inverse_index).unsqueeze(0);
  return padded.flatten(0, 1).index_select(0, index).unsqueeze(0);
}

Tensor UnpaddedRows::pad(const Tensor& unpadded) const {
  if (has_kernel(unpadded))
    return device::moved_rows(unpadded.squeeze(0), inverse_index, index).view({rows, length, unpadded.size(2)});
  return at::zeros({rows * length, unpadded.size(2)}, unpadded.options())
      .index_copy(0, index, unpadded.squeeze(0))
      .view({rows, length, unpadded.size(2)});
}

Tensor UnpaddedRows::unpadded_indices(const Tensor& padded) const {
  const auto row = padded.div(length, "floor"), all = ends.to(at::kLong);
  if (padded.is_cpu()) require_real(padded, mask);
  return all.index_select(0, row) + padded - row * length;
}

void require_real(const Tensor& indices, const Tensor& mask) {
  require<ShapeError>(mask.flatten().index_select(0, indices).all().item<bool>(),
                      "the state of a position of padding is read, which nothing computes");
}

UnpaddedRows UnpaddedRows::to(at::Device device) const {
  auto moved = *this;
  moved.inverse_index = at::full({rows * length}, int64_t{-1}).index_copy(0, index, at::arange(index.size(0)));
  for (auto* tensor : {&moved.index, &moved.positions, &moved.ends, &moved.inverse_index, &moved.mask})
    *tensor = moved_to(*tensor, device);
  return moved;
}

std::shared_ptr<const UnpaddedRows> unpad_rows(const Tensor& mask) {
  if (!mask.defined() || !mask.is_cpu()) return nullptr;
  const auto dense = mask.contiguous();
  UnpaddedRows unpadded{.rows = mask.size(0), .length = mask.size(1), .begins = {0}, .mask = dense};
  for (int64_t b = 0; b < unpadded.rows; ++b) {
    const bool* row = dense.data_ptr<bool>() + b * unpadded.length;
    const auto real = std::count(row, row + unpadded.length, true);
    if (!std::all_of(row, row + real, std::identity())) return nullptr;
    unpadded.begins.push_back(unpadded.begins.back() + real);
    unpadded.longest = std::max<int64_t>(unpadded.longest, real);
  }
  const int64_t tokens = unpadded.begins.back();
  if (tokens == 0 || tokens == unpadded.rows * unpadded.length) return nullptr;
  unpadded.ends = at::tensor(unpadded.begins, at::kInt);
  unpadded.index = at::empty({tokens}, at::kLong);
  unpadded.positions = at::empty({tokens}, at::kLong);
  for (int64_t b = 0; b < unpadded.rows; ++b) {
    const auto begin = unpadded.begins[static_cast<size_t>(b)], end = unpadded.begins[static_cast<size_t>(b) + 1];
    auto* index = unpadded.index.data_ptr<int64_t>();
    auto* positions = unpadded.positions.data_ptr<int64_t>();
    std::iota(index + begin, index + end, b * unpadded.length);
    std::iota(positions + begin, positions + end, int64_t{0});
  }
  return std::make_shared<const UnpaddedRows>(std::move(unpadded));
}

}  // namespace cloze

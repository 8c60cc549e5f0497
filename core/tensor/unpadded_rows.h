#pragma once
// Rows without their padding, so that nothing is computed for it.
#include "core/tensor/param.h"

namespace cloze {

/// The real tokens of rows [B, T, ...], one row after another: [1, N, ...].
struct UnpaddedRows {
  int64_t rows, length;         ///< B and T
  std::vector<int64_t> begins;  ///< [B + 1], where each row begins among the N tokens, and their end
  Tensor index{};               ///< int64 [N], of each token in the flattened [B T]
  Tensor positions{};           ///< int64 [N], of each token in its row
  Tensor mask{};                ///< bool [B, T], true = a real token
  Tensor ends{};                ///< `begins` as int32, for kernels of a GPU
  Tensor inverse_index{};       ///< int64 [B T], of each place its token among the N, or -1: padding; on a device alone
  int64_t longest = 0;          ///< tokens of the longest row

  /// The same on a device.
  UnpaddedRows to(at::Device device) const;

  /// [B, T, ...] to [1, N, ...].
  Tensor unpad(const Tensor& padded) const;
  /// [1, N, D] to [B, T, D], with zeros at padding.
  Tensor pad(const Tensor& unpadded) const;
  /// The indices into the N tokens of real tokens whose indices into the flattened [B T] are these, int64. Those on the
  /// CPU are checked.
  Tensor unpadded_indices(const Tensor& padded) const;
};

/// Throws ShapeError where one of the indices int64 into the flattened mask bool [B, T] is of padding; for tensors on
/// the CPU.
void require_real(const Tensor& indices, const Tensor& mask);

/// The rows of mask bool [B, T] on the CPU, true = a real token. null: there is no padding, a row has some before a
/// real token, or the mask is on a device.
std::shared_ptr<const UnpaddedRows> unpad_rows(const Tensor& mask);

}  // namespace cloze

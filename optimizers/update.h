#pragma once
// What the update of a rule (rule.h) is given: one matrix, or the flat buffers of a group in chunks.
#include <map>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"
#include "core/tensor/parallel.h"
#include "core/tensor/param.h"
#include "optimizers/rule.h"

namespace cloze {

/// What is kept of one parameter, by the names that its rule gives: in the parameter's shape, or of rows [stacked,
/// rows] and columns [stacked, columns].
using Moments = std::map<std::string, Tensor>;

namespace optimizers {

/// The facts of an update that all tensors share.
struct Step {
  int64_t update;  ///< its number, from 1
  double learning_rate;
  double grad_scale;
  double weight_decay;

  double decay_of(bool decays) const { return decays ? weight_decay : 0; }
};

/// A matrix for plain operators, or several in a row for those of an elementwise rule.
struct Target {
  bool decays;             ///< weight decay and LAMB's trust ratio apply
  const Tensor& values;    ///< [rows, columns]
  const Tensor& gradient;  ///< the same, scaled already
  const Moments& moments;  ///< of this matrix alone
};

/// One of the stacked parts of a parameter.
struct Matrix {
  size_t param;
  int64_t part, parts, offset, rows, columns;
  bool decays;  ///< weight decay and LAMB's trust ratio apply
  MatrixShape shape() const { return {rows, columns}; }
  int64_t numel() const { return rows * columns; }
};
/// Consecutive rows of a matrix.
struct Chunk {
  size_t matrix;
  int64_t offset, first_row, rows, numel;
};

/// Calls f(i) for each i below `count`, on all threads.
template <class F>
void parallel_each(size_t count, const F& f) {
  each_part(static_cast<int64_t>(count), [&](int64_t i) { f(static_cast<size_t>(i)); });
}

/// The flat buffers, divided into chunks that do not depend on the number of threads.
struct Buffers {
  std::vector<Matrix> matrices;
  std::vector<Chunk> chunks;
  const std::vector<Moments>& moments;  ///< of each parameter
  float *values, *grads;
  uint16_t* shadow;  ///< bf16 copies of the values, or null

  const Matrix& matrix_of(const Chunk& chunk) const { return matrices[chunk.matrix]; }
  /// What a moment has of a matrix: of its elements, its rows or its columns.
  float* moment(const Matrix& matrix, const char* name) const {
    const auto& kept = moments[matrix.param].at(name);
    return kept.data_ptr<float>() + matrix.part * (kept.numel() / matrix.parts);
  }
  /// What a moment of elements has of a chunk.
  float* moment(const Chunk& chunk, const char* name) const {
    const auto& matrix = matrix_of(chunk);
    return moment(matrix, name) + chunk.first_row * matrix.columns;
  }
  /// The parameters of a chunk; `m` and `v`: its moments, or null.
  kernels::Parameters of(const Chunk& chunk, float* m = nullptr, float* v = nullptr) const {
    return {.n = chunk.numel,
            .p = values + chunk.offset,
            .g = grads + chunk.offset,
            .m = m,
            .v = v,
            .shadow = shadow ? shadow + chunk.offset : nullptr};
  }
};

/// The flat buffers on a GPU, whose kernels take all matrices of a group at once.
struct DeviceBuffers {
  const std::vector<Matrix>& matrices;  ///< those in a row as one, for an elementwise rule
  const Tensor &values, &grads;
  const Tensor& shadow;                     ///< undefined in fp32
  const Moments& flat_moments;              ///< those of Extent::flat
  const std::vector<Moments>& moments;      ///< of each parameter
  Tensor table{};                           ///< the matrices as kernels.cu has them
  int64_t tiles = 0, rows = 0, blocks = 0;  ///< of all matrices

  int64_t count() const { return std::ssize(matrices); }
  /// fp32 on the device, not yet written.
  Tensor numbers(int64_t count) const { return at::empty({count}, values.options()); }
};

/// Weights go by the updates that stand where their gradients were, times the factor of each matrix and the rate; the
/// gradients are zero after that.
void descend(const DeviceBuffers& buffers, const Tensor& factors, double rate, double weight_decay);

}  // namespace optimizers

}  // namespace cloze

#pragma once
// What each kind of optimizer keeps, and its update over one tensor in plain operators; for kinds whose time counts,
// also over chunks of the flat buffers with the kernels. adamw.cpp, lamb.cpp, adafactor.cpp, muon.cpp.
#include <cmath>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"
#include "core/tensor/parallel.h"
#include "train/optimizers/optimizer.h"

namespace cloze::optimizers {

/// The facts of an update that all tensors share.
struct Step {
  int64_t update;  ///< its number, from 1
  double learning_rate;
  double grad_scale;
  double weight_decay;

  double decay_of(bool decays) const { return decays ? weight_decay : 0; }
};

/// A tensor as published code stores it: one of the stacked parts of a parameter.
struct Matrix {
  size_t param;
  int64_t part, offset, rows, columns;
  bool decays;    ///< weight decay and LAMB's trust ratio apply
  bool factored;  ///< Adafactor keeps means of its rows and columns
  int64_t numel() const { return rows * columns; }
};
/// Consecutive rows of a matrix.
struct Chunk {
  size_t matrix;
  int64_t offset, first_row, rows, numel;
};

/// The flat buffers, divided into chunks that do not depend on the number of threads.
struct Buffers {
  std::vector<Matrix> matrices;
  std::vector<Chunk> chunks;
  float *values, *grads;
  uint16_t* shadow;  ///< bf16 copies of the values, or null

  const Matrix& matrix_of(const Chunk& chunk) const { return matrices[chunk.matrix]; }
  /// The parameters of a chunk; `m` and `v`: the flat moments, or null.
  kernels::Parameters of(const Chunk& chunk, float* m = nullptr, float* v = nullptr) const {
    return {.n = chunk.numel,
            .p = values + chunk.offset,
            .g = grads + chunk.offset,
            .m = m ? m + chunk.offset : nullptr,
            .v = v ? v + chunk.offset : nullptr,
            .shadow = shadow ? shadow + chunk.offset : nullptr};
  }
};

/// Calls f(i) for each i below `count`, on all threads.
template <class F>
void parallel_each(size_t count, const F& f) {
  each_part(static_cast<int64_t>(count), [&](int64_t i) { f(static_cast<size_t>(i)); });
}

/// The moments: the flat ones of Adam, or null, and those of each parameter.
struct Memory {
  float *exp_avg, *exp_avg_sq;
  const std::vector<Moments>& of_params;
};

/// What a kind keeps of each parameter, in its shape. Those of Adam are flat.
inline std::vector<std::string> moments_of(const AdamMoments&) { return {"exp_avg", "exp_avg_sq"}; }
inline std::vector<std::string> moments_of(const Adafactor&) { return {"exp_avg_sq"}; }
inline std::vector<std::string> moments_of(const Muon&) { return {"momentum"}; }

/// In plain operators, for one tensor; `gradient` is scaled already.
void update(const AdamW& rule, const Step& step, bool decays, const Tensor& p, const Tensor& gradient,
            const Moments& m);
void update(const Lamb& rule, const Step& step, bool decays, const Tensor& p, const Tensor& gradient, const Moments& m);
void update(const Adafactor& rule, const Step& step, bool decays, const Tensor& p, const Tensor& gradient,
            const Moments& m);
void update(const Muon& rule, const Step& step, bool decays, const Tensor& p, const Tensor& gradient, const Moments& m);

/// With the kernels: updates the values, zeroes the gradients. A kind without this form takes the plain one.
void update(const AdamW& rule, const Step& step, const Buffers& buffers, const Memory& memory);
void update(const Lamb& rule, const Step& step, const Buffers& buffers, const Memory& memory);
void update(const Adafactor& rule, const Step& step, const Buffers& buffers, const Memory& memory);

/// Adam's hyperparameters at a step, and its direction in plain operators, which AdamW and LAMB share.
kernels::Adam adam_at(const AdamMoments& options, const Step& step);
Tensor plain_adam_direction(const AdamMoments& options, const Step& step, const Tensor& gradient, const Moments& m);

}  // namespace cloze::optimizers

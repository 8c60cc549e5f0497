#pragma once
// The fused loops of training, on raw pointers and ranges of rows: no LibTorch, no threads. Written once on the
// compiler's vectors (kernels.inc) and built for each instruction set; `table()` selects one at run time.
//
// `T` is float or uint16_t, the latter holding the bits of a bf16 number. Sums are taken in fp32.
//
// Dropout draws: element (row, column) of a tensor of `width` columns has index row * ceil128(width) + column.
// Index 128 g + 16 j + l uses half (j & 1) of word (j >> 1) of the Philox4x32-7 block with counter
// (16 g + l, 0, site, 0x64726f70) under `key`. The element is kept, and scaled, when that number is at least
// `threshold`.
#include <cmath>
#include <cstdint>
#include <string>

namespace cloze::kernels {

struct Dropout {
  uint64_t key = 0;
  uint32_t site = 0;
  uint32_t threshold = 0;         ///< p in 1/65536; 0 keeps everything
  float scale = 1;                ///< of kept elements
  const int64_t* rows = nullptr;  ///< the row of the mask that each row has; null: 0, 1, 2, ...
  int64_t width = 0;              ///< of a row of the mask; 0: that of the rows
};

inline Dropout make_dropout(double p, uint64_t key, uint32_t site) {
  const double threshold = std::nearbyint(p * 65536);
  return {key, site, static_cast<uint32_t>(threshold), static_cast<float>(1 / (1 - threshold / 65536))};
}

enum class Activation { gelu, gelu_tanh, relu, silu };

/// The end of a sublayer: bias, dropout, residual and norm. A norm that is not centred is an RMS norm, whose mean is
/// taken as 0. Every pointer to [rows, width] starts at the first row of the range, whose index is `first_row`.
template <class T>
struct NormForward {
  int64_t rows, first_row, width;
  const T* y;         ///< sublayer output, before its bias
  const float* bias;  ///< [width] or null
  const T* residual;  ///< or null
  Dropout drop;
  T* z;  ///< receives residual + dropout(y + bias); may be y; null without bias, residual and dropout
  const float *gamma, *beta;  ///< beta null: no bias
  float eps;
  bool centred;
  T* out;              ///< (z - mean) rstd gamma + beta
  float *mean, *rstd;  ///< [rows]
};

template <class T>
struct NormBackward {
  int64_t rows, first_row, width;
  const T *dout, *z;
  const float *mean, *rstd, *gamma;
  bool centred;
  Dropout drop;
  T* dresidual;                   ///< gradient of z
  T* dy;                          ///< gradient of y, or null without dropout (it equals dresidual)
  float *dgamma, *dbeta, *dbias;  ///< [width], added to; dbeta and dbias may be null
};

/// norm(word[id] + type[t] + position[p]), then dropout. Tables fp32; `positions` null: 0, 1, 2, ... in every sequence
/// of `length`. `type`, `position` null: there is no such table.
template <class T>
struct EmbedForward {
  int64_t rows, first_row, width, length;
  const int64_t *ids, *types, *positions;              ///< types may be null: all 0
  const float *word, *type, *position, *gamma, *beta;  ///< gamma null: no norm; beta null: no bias
  float scale, eps;                                    ///< of the rows of `word`
  bool centred;
  Dropout drop;
  T* out;
  float *mean, *rstd;
};

template <class T>
struct EmbedBackward {
  int64_t rows, first_row, width, length;
  const int64_t *ids, *types, *positions;
  const float *word, *type, *position, *gamma, *mean, *rstd;
  float scale;
  bool centred;
  Dropout drop;
  const T* dout;
  float* dsum;            ///< [rows, width]: gradient of the summed rows
  float *dgamma, *dbeta;  ///< [width], added to; dbeta may be null, both are without a norm
};

/// Rotary position embeddings: in the first `rotated` columns of y = x + bias, heads of width C, elements i and
/// i + C / 2 are a vector that is rotated by the angle of its position; the other columns are y as it is. The backward
/// pass is the same with `inverse`. Source: Su et al. 2021, equation 34 (arXiv 2104.09864), in the order of GPT-NeoX.
template <class T>
struct Rotation {
  int64_t rows, first_row, length;     ///< row r has position (first_row + r) mod length
  int64_t width, rotated, head_width;  ///< columns; rotated ones are a multiple of C, which is even
  const float* table;                  ///< [length, C]: C / 2 cosines, then their sines
  const T* x = nullptr;
  T* out = nullptr;             ///< may be x
  const float* bias = nullptr;  ///< [width] or null
  bool inverse = false;         ///< rotates by the negative angle
  float* sums = nullptr;        ///< [width], added to: the columns of out; or null
};

/// Cells of long short-term memory: next = sigmoid(f + 1) cell + sigmoid(i) tanh(g), output = sigmoid(o) tanh(next).
/// Source: Zaremba et al. 2014, section 3.1 (arXiv 1409.2329); the 1: Jozefowicz et al. 2015, section 2.2.
template <class T>
struct MemoryCell {
  using Element = T;
  int64_t rows, width;
  const T* gates;                ///< [rows, 4 width]: the sums of i, f, g and o
  const float* cell;             ///< [rows, width], like all that follow but dgates
  T* output = nullptr;           ///< forward
  float* next = nullptr;         ///< forward
  const T* doutput = nullptr;    ///< backward
  const float* dnext = nullptr;  ///< backward
  T* dgates = nullptr;           ///< backward, [rows, 4 width]
  float* dcell = nullptr;        ///< backward
};

/// Softmax cross entropy over a range of the columns of logits [rows, V], bias not yet added.
template <class T>
struct CrossEntropy {
  int64_t rows, width, first;  ///< of the column range, and its first column
  T* logits;                   ///< [rows, width]; the backward pass overwrites them with their gradient
  const float* bias;           ///< [width] or null
  const int64_t* labels;       ///< [rows], columns of V
  float *peak, *total, *score,
      *all;          ///< forward, [rows], carried from range to range: the maximum logit (initially -1e30), the sum of
                     ///< exp(logit - peak) (initially 0), the label's logit, the sum of logits (initially 0; or null)
  const float* lse;  ///< backward, [rows]
  float smoothing, share, z_weight;  ///< label smoothing, its share for each token, and the weight of lse^2
  float scale;                       ///< of the gradient
  const float* weights;              ///< backward, [rows], factors of the rows' gradients, or null: ones
  float* dbias;                      ///< [width], added to, or null
};

/// Samples one token for each row from softmax((logits + bias) / temperature), by the inverse of the cumulative sum.
template <class T>
struct Draw {
  int64_t rows, width,
      block;               ///< V, and the columns of each block but the last: a multiple of 256 if there are several
  const T* const* blocks;  ///< logits [rows, block] each
  const float* bias;       ///< [width] or null
  float inverse_temperature;
  const double* uniform;  ///< [rows], in [0, 1)
  float* scratch;         ///< width rounded up to 16
  int64_t* drawn;         ///< [rows]
};

template <class T>
struct Typed {
  void (*norm_forward)(const NormForward<T>&);
  void (*norm_backward)(const NormBackward<T>&);
  void (*embed_forward)(const EmbedForward<T>&);
  void (*embed_backward)(const EmbedBackward<T>&);
  void (*rotate)(const Rotation<T>&);
  /// u += bias in place, out = dropout(activation(u)). [rows, width]; bias may be null.
  void (*activation_forward)(Activation, int64_t rows, int64_t first_row, int64_t width, T* u, const float* bias,
                             const Dropout&, T* out);
  /// grad (of out) becomes the gradient of u; dbias [width] is added to.
  void (*activation_backward)(Activation, int64_t rows, int64_t first_row, int64_t width, const T* u, const T* grad,
                              const Dropout&, T* du, float* dbias);
  void (*memory_cell_forward)(const MemoryCell<T>&);
  void (*memory_cell_backward)(const MemoryCell<T>&);
  void (*cross_entropy_forward)(const CrossEntropy<T>&);
  void (*cross_entropy_backward)(const CrossEntropy<T>&);
  void (*draw)(const Draw<T>&);
  /// sums [width] += columns of x [rows, width].
  void (*column_sums)(int64_t rows, int64_t width, const T* x, float* sums);
  /// out [n] += x [n].
  void (*add_to)(int64_t n, const T* x, float* out);
  /// out [rows, width] = x times dropout.
  void (*dropout)(int64_t rows, int64_t first_row, int64_t width, const T* x, const Dropout&, T* out);
  /// y [rows, width] becomes residual + dropout(y + bias).
  void (*dropout_add)(int64_t rows, int64_t first_row, int64_t width, T* y, const float* bias, const Dropout&,
                      const T* residual);
};

/// Adam's hyperparameters at one step. Source: Kingma and Ba 2015, algorithm 1; epsilon is added to the bias-corrected
/// root.
struct Adam {
  float beta1, beta2, epsilon;
  float rest1, rest2;              ///< 1 - beta in double: of 0.999 in fp32 it would be 1.3e-5 of itself too small
  float correction1, correction2;  ///< 1 - beta^t, or 1
  float grad_scale;
};

/// A range of the flat buffers. What an update does not use may be null.
struct Parameters {
  int64_t n;
  float *p, *g;      ///< values and gradients
  float *m, *v;      ///< moments
  uint16_t* shadow;  ///< receives p in bf16; or null
};

/// Optimizer updates of parameters.
struct Updates {
  /// p (1 - decay) - rate times Adam's step; g is zeroed.
  void (*adamw)(const Adam&, float rate, float decay, const Parameters&);
  /// g becomes Adam's step + decay p.
  void (*direction)(const Adam&, float decay, const Parameters&);
  /// p (1 - decay) - rate g; g is zeroed.
  void (*descend)(float rate, float decay, const Parameters&);
  /// Sums of squares of g [rows, columns]: of each row, and += those of each column.
  void (*squares)(int64_t rows, int64_t columns, const float* g, float* row_sums, float* column_sums);
  /// g [rows, columns] times the factor of its row and that of its column.
  void (*scale)(int64_t rows, int64_t columns, const float* row_factors, const float* column_factors, float* g);
  double (*sum_of_squares)(int64_t n, const float* x);
  /// mean += share (x - mean): a mean that equals x stays as it is.
  void (*approach)(int64_t n, float share, const float* x, float* mean);
};

/// log(sum e^x) = max + log. `max` is the lowest float if no number is finite, `log` NaN if one is NaN or +inf.
struct LogSum {
  float max, log;
};

/// A sum of exponentials in fp64, carried over the blocks of a row: max + log(total) is their log-sum-exp.
struct ExpSum {
  float max = -3.402823466e38f;
  double total = 0;  ///< of exp(x - max); NaN if a number is NaN or +inf
};

/// Loops over a row of next-token scores [n], none of them NaN unless stated.
struct Scores {
  /// The maximum; the lowest float if no number is finite.
  float (*largest)(int64_t n, const float* x);
  LogSum (*log_sum)(int64_t n, const float* x);
  /// Adds the exponentials of x + bias, taken in fp64, to `sum`; bias [n] or null. Any numbers.
  void (*add_exponentials)(int64_t n, const float* x, const float* bias, ExpSum& sum);
  /// out = (x - a) - b.
  void (*minus)(int64_t n, const float* x, float a, float b, float* out);
  /// out = e^(x - max) where x >= min, else 0; returns the sum, NaN if a number is NaN or +inf.
  double (*weights)(int64_t n, const float* x, float min, float max, float* out);
  /// The first i >= begin with x[i] + base > bound, or n.
  int64_t (*next_above)(const float* x, int64_t begin, int64_t n, float base, float bound);
};

struct Table {
  const char* isa;
  Typed<float> f32;
  Typed<uint16_t> bf16;
  Updates updates;
  Scores scores;
};

/// The kernels of this processor.
const Table& table();
/// Selects the kernels of `isa` (amx, avx512_bf16, avx512, avx2, base_isa); false if the processor lacks it.
bool set_isa(const std::string& isa);

template <class T>
const Typed<T>& typed();
template <>
inline const Typed<float>& typed<float>() {
  return table().f32;
}
template <>
inline const Typed<uint16_t>& typed<uint16_t>() {
  return table().bf16;
}

}  // namespace cloze::kernels

#pragma once
// Shared by the fused operators: raw rows, partial sums by range, gradients of weights.
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"
#include "core/tensor/fused.h"
#include "core/tensor/low_rank.h"
#include "core/tensor/matmul.h"
#include "core/tensor/parallel.h"

namespace cloze::fused {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// A Param saved from the forward to the backward pass.
struct ParamHolder final : torch::CustomClassHolder {
  explicit ParamHolder(Param p) : param(std::move(p)) {}
  Param param;
};
inline void keep(AutogradContext* context, const char* name, const Param& param) {
  context->saved_data[name] = c10::IValue::make_capsule(c10::make_intrusive<ParamHolder>(param));
}
inline Param kept(AutogradContext* context, const char* name) {
  const auto capsule = context->saved_data[name].toCapsule();
  return static_cast<const ParamHolder&>(*capsule).param;
}

/// Under names that begin with `name`.
inline void keep(AutogradContext* context, const Dropout& drop, const std::string& name = "") {
  context->saved_data[name + "p"] = drop.on() ? drop.p : 0.0;
  context->saved_data[name + "key"] = static_cast<int64_t>(drop.key);
  context->saved_data[name + "site"] = static_cast<int64_t>(drop.site);
  if (drop.on() && drop.rows.defined()) context->saved_data[name + "rows"] = drop.rows;
}

/// The sequences of an attention.
struct Sequences {
  int64_t count, queries, keys;  ///< B, and T and S of the longest
  /// Where each begins among the tokens of all, and their end, where they are unpadded; empty: each has T tokens.
  /// Unpadded sequences attend to themselves.
  std::vector<int64_t> begins{};
  bool are_unpadded() const { return !begins.empty(); }
  /// The first query of sequence b, and the number of its queries.
  int64_t first(int64_t b) const { return are_unpadded() ? begins[static_cast<size_t>(b)] : b * queries; }
  int64_t length(int64_t b) const { return are_unpadded() ? first(b + 1) - first(b) : queries; }
};
inline void keep(AutogradContext* context, const UnpaddedRows* unpadded) {
  context->saved_data["begins"] = unpadded ? unpadded->begins : std::vector<int64_t>();
  context->saved_data["length"] = unpadded ? unpadded->length : 0;
}
/// Those of queries [B, T, ...] and of keys [B, S, ...], undefined: of the same tokens.
inline Sequences kept_sequences(AutogradContext* context, const Tensor& queries, const Tensor& keys = {}) {
  const int64_t length = context->saved_data["length"].toInt();
  if (length == 0) return {queries.size(0), queries.size(1), (keys.defined() ? keys : queries).size(1)};
  auto begins = context->saved_data["begins"].toIntVector();
  return {static_cast<int64_t>(begins.size()) - 1, length, length, std::move(begins)};
}

inline kernels::Dropout kernel_dropout(const Dropout& drop) {
  if (!drop.on()) return {};
  auto made = kernels::make_dropout(drop.p, drop.key, drop.site);
  if (drop.rows.defined()) made.rows = drop.rows.data_ptr<int64_t>();
  return made;
}
inline kernels::Dropout kept_dropout(AutogradContext* context, const std::string& name = "") {
  const double p = context->saved_data[name + "p"].toDouble();
  if (p == 0) return {};
  auto made = kernels::make_dropout(p, static_cast<uint64_t>(context->saved_data[name + "key"].toInt()),
                                    static_cast<uint32_t>(context->saved_data[name + "site"].toInt()));
  const auto rows = context->saved_data.find(name + "rows");
  if (rows != context->saved_data.end()) made.rows = rows->second.toTensor().data_ptr<int64_t>();
  return made;
}

/// Autograd takes no undefined tensors: an empty one replaces them.
inline Tensor or_empty(const Tensor& x) { return x.defined() ? x : at::empty({0}); }
inline Tensor or_empty(const Param& p) { return or_empty(p.defined() ? p.value() : Tensor()); }

/// The gradient of a parameter: a view of the flat gradient, or zeros of its own.
inline Tensor grad_of(const Param& param) {
  auto& grad = param.value().mutable_grad();
  if (!grad.defined()) grad = at::zeros_like(param.value());
  return grad;
}
/// null: it is undefined, or has no gradient.
inline float* grad_data(const Param& param) {
  return param.defined() && param.is_trained() ? grad_of(param).data_ptr<float>() : nullptr;
}
/// Adds to the gradient of a parameter that has one.
inline void add_gradient(const Param& param, const Tensor& more) {
  if (param.is_trained()) grad_of(param).add_(more);
}

/// What makes autograd record an operator of these parameters: the value of one that is trained, where one is.
inline Tensor leaf_of(std::initializer_list<Param> params) {
  for (const auto& param : params)
    if (param.defined() && param.leaf().requires_grad()) return param.leaf();
  return params.begin()->value();
}

/// The elements of a tensor in the type of the kernels.
template <class T>
T* data(const Tensor& t) {
  return t.defined() ? static_cast<T*>(t.data_ptr()) : nullptr;
}

/// Calls f with a value of the kernels' element type for `x`: float, or uint16_t for bf16.
template <class F>
void by_type(const Tensor& x, const F& f) {
  if (x.scalar_type() == at::kBFloat16)
    f(uint16_t{});
  else
    f(float{});
}

/// Runs f(begin, end, sums) over ranges of rows, each with zeroed `sums` of its own, and then adds these to the
/// targets. Ranges depend on the number of rows alone, so that sums do not depend on the number of threads.
inline void rows_with_sums(int64_t rows, const std::vector<std::pair<float*, int64_t>>& targets,
                           const std::function<void(int64_t, int64_t, const std::vector<float*>&)>& f) {
  constexpr int64_t max_ranges = 16, min_rows = 64;
  const int64_t ranges = std::max<int64_t>(1, std::min(max_ranges, rows / min_rows));
  int64_t width = 0;
  for (const auto& [target, n] : targets) width += (n + 15) / 16 * 16;
  std::vector<float> partial(static_cast<size_t>(ranges * width));
  each_part(ranges, [&](int64_t r) {
    std::vector<float*> sums;
    float* at = partial.data() + r * width;
    for (const auto& [target, n] : targets) {
      sums.push_back(target ? at : nullptr);
      at += (n + 15) / 16 * 16;
    }
    f(rows * r / ranges, rows * (r + 1) / ranges, sums);
  });
  int64_t offset = 0;
  for (const auto& [target, n] : targets) {
    for (int64_t r = 0; target && r < ranges; ++r)
      kernels::table().f32.add_to(n, partial.data() + r * width + offset, target);
    offset += (n + 15) / 16 * 16;
  }
}

/// Runs f(begin, end) over ranges of rows of `width` numbers.
inline void parallel_rows(int64_t rows, int64_t width, const std::function<void(int64_t, int64_t)>& f) {
  each_range(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(width, 1)), f);
}

/// Runs f(head) over `count` heads, each of queries x keys scores of vectors of `width` numbers; small ones several in
/// one part.
inline void each_head_of(int64_t count, int64_t queries, int64_t keys, int64_t width,
                         const std::function<void(int64_t)>& f) {
  constexpr int64_t min_work = 1 << 18;
  each_range(count, std::max<int64_t>(1, min_work / std::max<int64_t>(1, queries * keys * width)),
             [&](int64_t begin, int64_t end) {
               for (int64_t head = begin; head < end; ++head) f(head);
             });
}

/// x [..., K] as [R, K]; a copy only if it is not contiguous.
inline Tensor as_rows(const Tensor& x) { return x.contiguous().view({-1, x.size(-1)}); }

/// Rows [R, N] as [..., N] where x is [..., K]: the inverse of as_rows, with the width of the rows.
inline Tensor in_shape_of(const Tensor& x, const Tensor& rows) {
  auto sizes = x.sizes().vec();
  sizes.back() = rows.size(1);
  return rows.view(sizes);
}

/// rows [R, N] times dropout.
Tensor masked(const Tensor& rows, const kernels::Dropout& drop);
inline Tensor without_bias(const Tensor& x, const Tensor& w) { return matmul_nt(x, w); }
inline constexpr RowProducts products{without_bias, matmul_nn, add_matmul_tn, masked};

/// rows w' [R, N], plus `bias`; by the packed weight while there is one.
inline Tensor multiplied(const Tensor& rows, const Param& w, const Tensor& bias = {}) {
  const bool packed = w.packed().defined() && rows.scalar_type() == at::kFloat;
  const auto y = packed ? matmul_packed(rows, w.packed(), bias) : matmul_nt(rows, w.compute(), bias);
  if (w.low_rank()) add_low_rank(*w.low_rank(), rows, y, products);
  return y;
}
/// The backward pass of x w' [R, N]: grad(w) += dy' x where w has one; returns the gradient of x, dy w [R, K].
inline Tensor multiplied_backward(const Param& w, const Tensor& dy, const Tensor& x) {
  if (w.is_trained()) return matmul_backward(grad_of(w), dy, x, w.compute());
  const auto dx = matmul_nn(dy, w.compute());
  if (w.low_rank()) add_low_rank_backward(*w.low_rank(), dy, x, dx, products);
  return dx;
}
/// grad(b) += column sums of dy.
void add_bias_gradient(const Param& b, const Tensor& dy);

/// The kernel of an activation; nullopt: it has none, and the plain operator runs.
std::optional<kernels::Activation> kernel_of(Activation activation);

/// An activation of rows [R, N] that the kernels have.
struct RowActivation {
  Param bias;
  kernels::Activation activation;
  kernels::Dropout drop;

  /// dropout(activation(u + bias)); u += bias.
  Tensor forward(const Tensor& u) const;
  /// From such a u and the gradient of the result: the gradient of u, into `du`, which may be `grad`. Adds that of the
  /// bias.
  void backward(const Tensor& u, const Tensor& grad, const Tensor& du) const;
};

/// The input of the function of a linear layer: x W' of a first layer, or all of it if the kernels do not have its
/// activation: then `first` becomes null.
Tensor after_products(const Tensor& x, const FirstLayer*& first);

/// What a linear layer multiplies, in an autograd function: rows that are kept for the backward pass, or what their
/// first layer makes of them.
class LinearInput {
 public:
  LinearInput(const Tensor& x, const FirstLayer* first);
  /// [R, K].
  Tensor multiplied() const { return first_ ? first_->forward(rows_) : rows_; }
  /// To be saved.
  const Tensor& rows() const { return rows_; }
  void keep(AutogradContext* context, const FirstLayer* first) const;
  /// The gradient of the rows from that of the linear layer's result, dy [R, N]. Adds that of w.
  static Tensor backward(AutogradContext* context, const Param& w, const Tensor& dy, const Tensor& rows);

 private:
  Tensor rows_;
  std::optional<RowActivation> first_{};
};

}  // namespace cloze::fused

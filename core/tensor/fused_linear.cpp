#include <ATen/ExpandUtils.h>

#include "core/error.h"
#include "core/tensor/fused_support.h"
#include "core/tensor/plain.h"

namespace cloze::fused {

void add_bias_gradient(const Param& b, const Tensor& dy) {
  if (!b.is_trained()) return;
  by_type(dy, [&](auto element) {
    using T = decltype(element);
    const int64_t width = dy.size(-1);
    rows_with_sums(dy.size(0), {{grad_data(b), width}},
                   [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
                     kernels::typed<T>().column_sums(end - begin, width, data<T>(dy) + begin * width, sums[0]);
                   });
  });
}

std::optional<kernels::Activation> kernel_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
    case Activation::gelu_python:
      return kernels::Activation::gelu;
    case Activation::gelu_new:
    case Activation::gelu_pytorch_tanh:
    case Activation::gelu_python_tanh:
    case Activation::gelu_accurate:
    case Activation::gelu_fast:
      return kernels::Activation::gelu_tanh;
    case Activation::relu:
      return kernels::Activation::relu;
    case Activation::silu:
    case Activation::swish:
      return kernels::Activation::silu;
    case Activation::quick_gelu:
    case Activation::gelu_10:
    case Activation::relu2:
    case Activation::relu6:
    case Activation::leaky_relu:
    case Activation::mish:
    case Activation::tanh:
    case Activation::sigmoid:
    case Activation::laplace:
    case Activation::linear:
      return std::nullopt;
  }
  return std::nullopt;
}

namespace {

struct LinearFunction : Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor&, const Param& w, const Param& b) {
    const auto rows = as_rows(x);
    context->save_for_backward({rows});
    keep(context, "w", w);
    context->saved_data["has_bias"] = b.defined();
    if (b.defined()) keep(context, "b", b);
    return in_shape_of(x, multiplied(rows, w, b.defined() ? b.value() : Tensor()));
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto x = context->get_saved_variables()[0];
    const auto w = kept(context, "w");
    const auto dy = as_rows(grads[0]), dx = multiplied_backward(w, dy, x);
    if (context->saved_data["has_bias"].toBool()) add_bias_gradient(kept(context, "b"), dy);
    return {in_shape_of(grads[0], dx), Tensor(), Tensor(), Tensor()};
  }
};

struct LinearActivationFunction : Function<LinearActivationFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor&, const Param& w, const Param& b,
                        int64_t act, const Dropout& drop) {
    const auto rows = as_rows(x), u = multiplied(rows, w);  // [R, N]
    const auto out = RowActivation{b, static_cast<kernels::Activation>(act), kernel_dropout(drop)}.forward(u);
    context->save_for_backward({rows, u});
    keep(context, "w", w);
    keep(context, "b", b);
    keep(context, drop);
    context->saved_data["act"] = act;
    return in_shape_of(x, out);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &u = saved[1];
    const auto act = static_cast<kernels::Activation>(context->saved_data["act"].toInt());
    const auto du = at::empty_like(u);
    RowActivation{kept(context, "b"), act, kept_dropout(context)}.backward(u, as_rows(grads[0]), du);
    const auto dx = multiplied_backward(kept(context, "w"), du, x);
    return {in_shape_of(grads[0], dx), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

struct RotaryFunction : Function<RotaryFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor&, const Tensor& angles, const Param& w,
                        const Param& b) {
    const auto rows = as_rows(x), table = angles.contiguous();
    auto y = multiplied(rows, w);  // [R, 3 H C], rotated in place
    by_type(y, [&](auto element) {
      using T = decltype(element);
      parallel_rows(y.size(0), y.size(1), [&](int64_t begin, int64_t end) {
        auto rotation = rotation_of<T>(y, table, begin, end);
        rotation.x = rotation.out = data<T>(y) + begin * y.size(1);
        rotation.bias = b.defined() ? b.value().data_ptr<float>() : nullptr;
        kernels::typed<T>().rotate(rotation);
      });
    });
    context->save_for_backward({rows, table});
    keep(context, "w", w);
    keep(context, "b", b);
    return in_shape_of(x, y);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &table = saved[1];
    const auto w = kept(context, "w"), b = kept(context, "b");
    const auto grad = as_rows(grads[0]);
    auto dy = at::empty_like(grad);
    by_type(dy, [&](auto element) {
      using T = decltype(element);
      rows_with_sums(dy.size(0), {{grad_data(b), dy.size(1)}},
                     [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
                       auto rotation = rotation_of<T>(dy, table, begin, end);
                       rotation.x = data<T>(grad) + begin * dy.size(1);
                       rotation.out = data<T>(dy) + begin * dy.size(1);
                       rotation.inverse = true;
                       rotation.sums = sums[0];
                       kernels::typed<T>().rotate(rotation);
                     });
    });
    return {in_shape_of(grads[0], multiplied_backward(w, dy, x)), Tensor(), Tensor(), Tensor(), Tensor()};
  }

  /// Rows [begin, end) of queries, keys and values side by side.
  template <class T>
  static kernels::Rotation<T> rotation_of(const Tensor& qkv, const Tensor& table, int64_t begin, int64_t end) {
    return {.rows = end - begin,
            .first_row = begin,
            .length = table.size(0),
            .width = qkv.size(1),
            .rotated = qkv.size(1) / 3 * 2,
            .head_width = table.size(1),
            .table = table.data_ptr<float>()};
  }
};

struct MatmulFunction : Function<MatmulFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b) {
    context->save_for_backward({a, b});
    return batched_matmul(a, b);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto dy = grads[0].contiguous();
    const auto &a = saved[0], &b = saved[1];
    Tensor da, db;
    if (context->needs_input_grad(0)) da = at::sum_to(batched_matmul(dy, b.transpose(-1, -2)), a.sizes());
    if (context->needs_input_grad(1)) db = at::sum_to(batched_matmul(a.transpose(-1, -2), dy), b.sizes());
    return {da, db};
  }
};

struct TakeRows : Function<TakeRows> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& index) {
    context->save_for_backward({index});
    context->saved_data["rows"] = x.size(0);
    return x.index_select(0, index);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto index = context->get_saved_variables()[0];
    auto dx = at::zeros({context->saved_data["rows"].toInt(), grads[0].size(1)}, grads[0].options());
    return {dx.index_add_(0, index, grads[0]), Tensor()};
  }
};

}  // namespace

Tensor RowActivation::forward(const Tensor& u) const {
  auto out = at::empty_like(u);
  by_type(u, [&](auto element) {
    using T = decltype(element);
    const int64_t width = u.size(1);
    parallel_rows(u.size(0), width, [&](int64_t begin, int64_t end) {
      kernels::typed<T>().activation_forward(activation, end - begin, begin, width, data<T>(u) + begin * width,
                                             bias.defined() ? bias.value().data_ptr<float>() : nullptr, drop,
                                             data<T>(out) + begin * width);
    });
  });
  return out;
}

void RowActivation::backward(const Tensor& u, const Tensor& grad, const Tensor& du) const {
  by_type(u, [&](auto element) {
    using T = decltype(element);
    const int64_t width = u.size(1);
    rows_with_sums(u.size(0), {{grad_data(bias), width}},
                   [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
                     kernels::typed<T>().activation_backward(activation, end - begin, begin, width,
                                                             data<T>(u) + begin * width, data<T>(grad) + begin * width,
                                                             drop, data<T>(du) + begin * width, sums[0]);
                   });
  });
}

LinearInput::LinearInput(const Tensor& x, const FirstLayer* first) : rows_(as_rows(x)) {
  if (first) first_ = RowActivation{first->b, *kernel_of(first->activation), kernel_dropout(first->drop)};
}

void LinearInput::keep(AutogradContext* context, const FirstLayer* first) const {
  context->saved_data["has_first"] = first != nullptr;
  if (!first) return;
  context->saved_data["first_act"] = static_cast<int64_t>(first_->activation);
  fused::keep(context, "first_b", first->b);
  fused::keep(context, first->drop, "first_");
}

Tensor LinearInput::backward(AutogradContext* context, const Param& w, const Tensor& dy, const Tensor& rows) {
  if (!context->saved_data["has_first"].toBool()) return multiplied_backward(w, dy, rows);
  RowActivation first{Param(), static_cast<kernels::Activation>(context->saved_data["first_act"].toInt()),
                      kept_dropout(context, "first_")};
  const auto grad = multiplied_backward(w, dy, first.forward(rows));  // the rows have the bias already
  first.bias = kept(context, "first_b");
  first.backward(rows, grad, grad);
  return grad;
}

Tensor after_products(const Tensor& x, const FirstLayer*& first) {
  if (!first) return x;
  if (kernel_of(first->activation)) return fused::linear(x, first->w, {});
  const auto made = fused::linear_activation(x, first->w, first->b, first->activation, first->drop);
  first = nullptr;
  return made;
}

Tensor linear(const Tensor& x, const Param& w, const Param& b) {
  return LinearFunction::apply(x, leaf_of({w, b}), w, b);
}

Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, Activation act, const Dropout& drop) {
  const auto kernel = kernel_of(act);
  if (!kernel) return fused::dropout(plain::activation(fused::linear(x, w, b), act), drop);
  return LinearActivationFunction::apply(x, leaf_of({w, b}), w, b, static_cast<int64_t>(*kernel), drop);
}

Tensor linear_rotary(const Tensor& x, const Param& w, const Param& b, const Tensor& table) {
  require<ShapeError>(x.size(-2) == table.size(0), "a sequence has ", x.size(-2), " tokens, the angles are those of ",
                      table.size(0));
  return RotaryFunction::apply(x, leaf_of({w, b}), table, w, b);
}

Tensor matmul(const Tensor& a, const Tensor& b) { return MatmulFunction::apply(a, b); }

Tensor take_rows(const Tensor& x, const Tensor& index) { return TakeRows::apply(x, index); }

}  // namespace cloze::fused

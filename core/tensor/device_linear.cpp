#include <torch/csrc/jit/frontend/tracer.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/log.h"
#include "core/tensor/device_support.h"
#include "core/tensor/plain.h"

namespace cloze::device {

namespace {

bool have_kernels() {
  static const bool have = [] {
    const auto& why = without_kernels();
    if (!why.empty())
      log_warning("gpu",
                  "the kernels of Cloze do not run on this GPU, and LibTorch's operators run instead, slower; its "
                  "attention may add in another order in each run: " +
                      why);
    return why.empty();
  }();
  return have;
}

/// Whether LibTorch adds products of bf16 into fp32 on this device.
bool adds_wide_products(const Tensor& x) {
  static const auto product = c10::Dispatcher::singleton().findSchema({"aten::addmm", "dtype_out"});
  return product && product->hasKernelForDispatchKey(c10::computeDispatchKey(std::nullopt, std::nullopt, x.device()));
}

}  // namespace

bool is_used(const Tensor& x) {
  const auto type = x.scalar_type();
  return x.is_cuda() && (type == at::kFloat || type == at::kBFloat16) && !torch::jit::tracer::isTracing() &&
         have_kernels();
}

void* stream_of(at::Device device) {
  if (device.is_cpu()) return nullptr;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

namespace {

Tensor times_transposed(const Tensor& x, const Tensor& w) { return at::mm(x, w.t()); }
Tensor times(const Tensor& dy, const Tensor& w) { return at::mm(dy, w); }

/// grad += dy' x, summed in fp32.
void add_product(Tensor grad, const Tensor& dy, const Tensor& x) {
  if (dy.scalar_type() == at::kFloat)
    grad.addmm_(dy.t(), x);
  else if (adds_wide_products(dy))
    at::addmm_out(grad, grad, dy.t(), x, at::kFloat);
  else
    grad.addmm_(dy.t().to(at::kFloat), x.to(at::kFloat));
}

constexpr RowProducts row_products{times_transposed, times, add_product, masked};

}  // namespace

Tensor multiplied(const Tensor& rows, const Param& w, const Param& b) {
  const auto weight = w.compute().t();
  const auto y = b.defined() ? at::addmm(b.compute(), rows, weight) : at::mm(rows, weight);
  if (w.low_rank()) add_low_rank(*w.low_rank(), rows, y, row_products);
  return y;
}

Tensor multiplied_backward(const Param& w, const Tensor& dy, const Tensor& x) {
  if (w.is_trained()) add_product(grad_of(w), dy, x);
  const auto dx = at::mm(dy, w.compute());
  if (w.low_rank()) add_low_rank_backward(*w.low_rank(), dy, x, dx, row_products);
  return dx;
}

Tensor partial_sums(const Tensor& like, int64_t chunks, int64_t kinds, int64_t width) {
  return at::empty({chunks, kinds, width}, like.options().dtype(at::kFloat));
}

void add_sums(const Tensor& partial, const Param& first, const Param& second, const Param& third) {
  const int64_t chunks = partial.size(0), kinds = partial.size(1), width = partial.size(2);
  run(partial, "add_sums", (kinds * width + 31) / 32, width, chunks, kinds, data(partial), grad_data(first),
      grad_data(second), grad_data(third));
}

void add_bias_gradient(const Param& b, const Tensor& dy) {
  if (!b.defined() || !b.is_trained()) return;
  const int64_t rows = dy.size(0), width = dy.size(1), chunks = chunks_of(rows);
  const auto partial = partial_sums(dy, chunks, 1, width);
  run(dy, "column_sums", chunks * tiles_of(width), rows, width, chunks, data(dy), data(partial));
  add_sums(partial, b);
}

namespace {

struct DeviceLinear : Function<DeviceLinear> {
  /// `graded`: b, or undefined where another function adds its gradient.
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor&, const Param& w, const Param& b,
                        const Param& graded) {
    const auto rows = as_rows(x);
    context->save_for_backward({rows});
    keep(context, "w", w);
    keep(context, "b", graded);
    return in_shape_of(x, multiplied(rows, w, b));
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto x = context->get_saved_variables()[0];
    const auto dy = as_rows(grads[0]), dx = multiplied_backward(kept(context, "w"), dy, x);
    add_bias_gradient(kept(context, "b"), dy);
    return {in_shape_of(grads[0], dx), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

/// dropout(activation(u + b)) of the products u.
struct DeviceActivation : Function<DeviceActivation> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor&, const Param& w, const Param& b,
                        int64_t activation, const Dropout& drop) {
    const auto rows = as_rows(x), u = multiplied(rows, w, b), out = at::empty_like(u);
    run(u, "activation_forward", u.size(0) * tiles_of(u.size(1)), u.size(0), u.size(1), static_cast<int>(activation),
        data(u), kernel_dropout(drop), data(out));
    context->save_for_backward({rows, u});
    keep(context, "w", w);
    keep(context, "b", b);
    keep(context, drop);
    context->saved_data["activation"] = activation;
    return in_shape_of(x, out);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &u = saved[1];
    const auto dout = as_rows(grads[0]), du = at::empty_like(u);
    const int64_t rows = u.size(0), width = u.size(1), chunks = chunks_of(rows);
    const auto partial = partial_sums(u, chunks, 1, width);
    run(u, "activation_backward", chunks * tiles_of(width), rows, width, chunks,
        static_cast<int>(context->saved_data["activation"].toInt()), data(u), data(dout), kept_dropout(context),
        data(du), data(partial));
    if (const auto b = kept(context, "b"); b.defined()) add_sums(partial, b);
    const auto dx = multiplied_backward(kept(context, "w"), du, x);
    return {in_shape_of(grads[0], dx), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

struct DeviceRotary : Function<DeviceRotary> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor&, const Tensor& angles, const Param& w,
                        const Param& b) {
    const auto rows = as_rows(x), table = angles.to(at::kFloat).contiguous(), y = multiplied(rows, w, b);
    context->save_for_backward({rows, table});
    keep(context, "w", w);
    keep(context, "b", b);
    return in_shape_of(x, turned(y, table, /*inverse=*/0));
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto dy = turned(as_rows(grads[0]), saved[1], /*inverse=*/1);
    const auto dx = multiplied_backward(kept(context, "w"), dy, saved[0]);
    add_bias_gradient(kept(context, "b"), dy);
    return {in_shape_of(grads[0], dx), Tensor(), Tensor(), Tensor(), Tensor()};
  }
  /// Queries and keys, two thirds of the columns, rotated.
  static Tensor turned(const Tensor& y, const Tensor& table, int inverse) {
    const auto out = at::empty_like(y);
    const int64_t rows = y.size(0), width = y.size(1);
    run(y, "rotate", (rows * width / 2 + 31) / 32, rows, width, width / 3 * 2, table.size(1), table.size(0),
        data(table), data(y), inverse, data(out));
    return out;
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Param& w, const Param& b) {
  return DeviceLinear::apply(x, leaf_of({w, b}), w, b, b);
}
Tensor linear_without_bias_gradient(const Tensor& x, const Param& w, const Param& b) {
  return DeviceLinear::apply(x, leaf_of({w, b}), w, b, Param());
}

Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, Activation activation, const Dropout& drop) {
  if (const auto kernel = fused::kernel_of(activation))
    return DeviceActivation::apply(x, leaf_of({w, b}), w, b, static_cast<int64_t>(*kernel), drop);
  return device::dropout(plain::activation(device::linear(x, w, b), activation), drop);
}

Tensor linear_rotary(const Tensor& x, const Param& w, const Param& b, const Tensor& table) {
  return DeviceRotary::apply(x, leaf_of({w, b}), table, w, b);
}

}  // namespace cloze::device

#include "core/tensor/device_support.h"

namespace cloze::device {

Tensor masked(const Tensor& rows, const kernels::Dropout& drop) {
  const auto out = at::empty_like(rows);
  run(rows, "dropout", rows.size(0) * tiles_of(rows.size(1)), rows.size(0), rows.size(1), data(rows), drop, data(out));
  return out;
}

namespace {

struct DeviceDropout : Function<DeviceDropout> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Dropout& drop) {
    keep(context, drop);
    return masked(as_rows(x), kernel_dropout(drop)).view(x.sizes());
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    return {masked(as_rows(grads[0]), kept_dropout(context)).view(grads[0].sizes()), Tensor()};
  }
};

/// norm(residual + dropout(y + b)), or norm(y) where `residual` is undefined.
struct DeviceNorm : Function<DeviceNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& y, const std::optional<Tensor>& residual, const Tensor&,
                        const Param& b, const Dropout& drop, const NormParams& norm) {
    const auto rows = as_rows(y), skip = residual ? as_rows(*residual) : Tensor();
    const int64_t count = rows.size(0), width = rows.size(1);
    const auto z = residual ? at::empty_like(rows) : Tensor(), out = at::empty_like(rows);
    const auto mean = at::empty({count}, rows.options().dtype(at::kFloat)), rstd = at::empty_like(mean);
    run(rows, "norm_forward", count, count, width, data(rows), data(b), kernel_dropout(drop), data(skip), data(z),
        data(norm.gamma), data(norm.beta), static_cast<float>(norm.eps), static_cast<int>(norm.centred), data(out),
        data(mean), data(rstd));
    context->save_for_backward({residual ? z : rows, mean, rstd});
    context->saved_data["residual"] = residual.has_value();
    keep(context, "b", b);
    keep(context, "gamma", norm.gamma);
    keep(context, "beta", norm.beta);
    context->saved_data["centred"] = norm.centred;
    keep(context, drop);
    return in_shape_of(y, out);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &z = saved[0], &mean = saved[1], &rstd = saved[2];
    const auto gamma = kept(context, "gamma"), beta = kept(context, "beta"), b = kept(context, "b");
    const auto drop = kept_dropout(context);
    const auto dout = as_rows(grads[0]), dz = at::empty_like(z);
    const auto dy = drop.threshold > 0 ? at::empty_like(z) : dz;
    const int64_t rows = z.size(0), width = z.size(1), chunks = chunks_of(rows);
    run(z, "norm_backward", rows, rows, width, data(dout), data(z), data(mean), data(rstd), data(gamma),
        static_cast<int>(context->saved_data["centred"].toBool()), drop, data(dz),
        drop.threshold > 0 ? data(dy) : nullptr);
    const auto partial = partial_sums(z, chunks, 3, width);
    run(z, "norm_sums", chunks * tiles_of(width), rows, width, chunks, data(dout), data(z), data(mean), data(rstd),
        b.defined() ? data(dy) : nullptr, data(partial));
    add_sums(partial, gamma, beta, b);
    const bool has_residual = context->saved_data["residual"].toBool();
    return {in_shape_of(grads[0], dy),
            has_residual ? in_shape_of(grads[0], dz) : Tensor(),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

/// residual + dropout(y + b).
struct DeviceAdd : Function<DeviceAdd> {
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& residual, const Tensor&,
                        const Param& b, const Dropout& drop) {
    const auto rows = as_rows(y), skip = as_rows(residual), out = at::empty_like(rows);
    run(rows, "dropout_add", rows.size(0) * tiles_of(rows.size(1)), rows.size(0), rows.size(1), data(rows), data(b),
        kernel_dropout(drop), data(skip), data(out));
    keep(context, "b", b);
    keep(context, drop);
    return out.view(residual.sizes());
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto drop = kept_dropout(context);
    const auto dout = as_rows(grads[0]), dy = drop.threshold > 0 ? masked(dout, drop) : dout;
    add_bias_gradient(kept(context, "b"), dy);
    return {in_shape_of(grads[0], dy), grads[0], Tensor(), Tensor(), Tensor()};
  }
};

/// The products of a linear layer, of what its first layer makes of x.
Tensor products(const Tensor& x, const Param& w, const FirstLayer* first) {
  const auto in = first ? device::linear_activation(x, first->w, first->b, first->activation, first->drop) : x;
  return device::linear(in, w, Param());
}

}  // namespace

Tensor dropout(const Tensor& x, const Dropout& drop) { return drop.on() ? DeviceDropout::apply(x, drop) : x; }

Tensor layer_norm(const Tensor& x, const NormParams& norm) {
  return DeviceNorm::apply(x, std::optional<Tensor>(), leaf_of({norm.gamma, norm.beta}), Param(), Dropout{}, norm);
}

Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const NormParams& norm, const FirstLayer* first) {
  return DeviceNorm::apply(products(x, w, first), std::optional<Tensor>(residual), leaf_of({norm.gamma, norm.beta, b}),
                           b, drop, norm);
}

Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual,
                          const FirstLayer* first) {
  const auto y = products(x, w, first);
  return b.defined() || drop.on() ? DeviceAdd::apply(y, residual, leaf_of({w, b}), b, drop) : residual + y;
}

/// LibTorch sorts the ids of a look-up in a table, and adds the gradients of each row in their order.
Tensor taken_rows(const Tensor& x, const Tensor& index) {
  auto sizes = x.sizes().vec();
  sizes[0] = index.size(0);
  return at::embedding(x.flatten(1), index).view(sizes);
}
Tensor take_rows(const Tensor& x, const Tensor& index) { return taken_rows(x, index); }

namespace {

struct DeviceMove : Function<DeviceMove> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& index, const Tensor& inverse) {
    context->save_for_backward({index, inverse});
    return taken(x, index);
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    return {taken(grads[0], context->get_saved_variables()[1]), Tensor(), Tensor()};
  }
  static Tensor taken(const Tensor& x, const Tensor& index) {
    const auto rows = as_rows(x);
    const int64_t count = index.numel(), width = rows.size(1);
    const auto out = at::empty({count, width}, rows.options());
    run(rows, "move_rows", count * tiles_of(width), count, width, data(rows), data(index), data(out));
    return out;
  }
};

}  // namespace

Tensor moved_rows(const Tensor& x, const Tensor& index, const Tensor& inverse) {
  return DeviceMove::apply(x, index, inverse);
}

/// The rows are taken from the fp32 tables, whose gradients LibTorch adds; the order of additions is fixed.
Tensor embed(const EmbeddingIds& in, const EmbeddingTables& t, const Dropout& drop) {
  auto sum = at::embedding(t.word.value(), in.ids, t.word.padding_row());
  if (t.scale != 1) sum = sum * t.scale;
  if (t.type.defined())
    sum = sum + (in.types.defined() ? at::embedding(t.type.value(), in.types) : t.type.value().select(0, 0));
  if (t.position.defined()) {
    const auto& table = t.position.value();
    sum = sum + (in.positions.defined() ? at::embedding(table, in.positions, t.position.padding_row())
                                        : table.narrow(0, 0, in.ids.size(1)));
  }
  sum = sum.to(t.word.compute().scalar_type());
  return device::dropout(t.norm.gamma.defined() ? device::layer_norm(sum, t.norm) : sum, drop);
}

}  // namespace cloze::device

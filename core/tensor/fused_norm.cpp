#include "core/tensor/fused_support.h"

namespace cloze::fused {

Tensor masked(const Tensor& rows, const kernels::Dropout& drop) {
  auto out = at::empty_like(rows);
  by_type(rows, [&](auto element) {
    using T = decltype(element);
    const int64_t width = rows.size(1);
    parallel_rows(rows.size(0), width, [&](int64_t begin, int64_t end) {
      kernels::typed<T>().dropout(end - begin, begin, width, data<T>(rows) + begin * width, drop,
                                  data<T>(out) + begin * width);
    });
  });
  return out;
}

namespace {

/// Where the kernels add the gradient of a scale, as they always do: of one that is not trained, to `unread`.
float* scale_gradient(const Param& gamma, int64_t width, std::vector<float>& unread) {
  if (!gamma.defined() || gamma.is_trained()) return grad_data(gamma);
  unread.resize(static_cast<size_t>(width));
  return unread.data();
}

/// norm(residual + dropout(x W' + b)), or norm(x) without a linear layer.
struct NormFunction : Function<NormFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& residual, const Tensor&,
                        const Param& w, const Param& b, const Dropout& drop, const NormParams& norm,
                        const FirstLayer* first) {
    const LinearInput in(x, first);
    const bool has_linear = w.defined();
    const auto skip = has_linear ? as_rows(residual) : Tensor();
    auto z =
        has_linear ? multiplied(in.multiplied(), w) : in.rows();  // [R, D]; z overwrites the output of the linear layer
    auto out = at::empty_like(z);
    const int64_t width = z.size(1);
    auto mean = at::empty({z.size(0)}, at::kFloat), rstd = at::empty({z.size(0)}, at::kFloat);
    by_type(z, [&](auto element) {
      using T = decltype(element);
      parallel_rows(z.size(0), width, [&](int64_t begin, int64_t end) {
        const int64_t at = begin * width;
        kernels::typed<T>().norm_forward({.rows = end - begin,
                                          .first_row = begin,
                                          .width = width,
                                          .y = data<T>(z) + at,
                                          .bias = b.defined() ? b.value().data_ptr<float>() : nullptr,
                                          .residual = has_linear ? data<T>(skip) + at : nullptr,
                                          .drop = kernel_dropout(drop),
                                          .z = has_linear ? data<T>(z) + at : nullptr,
                                          .gamma = norm.gamma.value().data_ptr<float>(),
                                          .beta = norm.beta.defined() ? norm.beta.value().data_ptr<float>() : nullptr,
                                          .eps = static_cast<float>(norm.eps),
                                          .centred = norm.centred,
                                          .out = data<T>(out) + at,
                                          .mean = mean.data_ptr<float>() + begin,
                                          .rstd = rstd.data_ptr<float>() + begin});
      });
    });
    context->save_for_backward({has_linear ? in.rows() : Tensor(), z, mean, rstd});
    in.keep(context, first);
    context->saved_data["linear"] = has_linear;
    if (has_linear) {
      keep(context, "w", w);
      keep(context, "b", b);
    }
    keep(context, "gamma", norm.gamma);
    keep(context, "beta", norm.beta);
    context->saved_data["centred"] = norm.centred;
    keep(context, drop);
    return in_shape_of(x, out);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &z = saved[1], &mean = saved[2], &rstd = saved[3];
    const bool has_linear = context->saved_data["linear"].toBool(), centred = context->saved_data["centred"].toBool();
    const auto gamma = kept(context, "gamma"), beta = kept(context, "beta");
    const auto drop = kept_dropout(context);
    const auto dout = as_rows(grads[0]);
    auto dz = at::empty_like(z);
    auto dy = has_linear && drop.threshold > 0 ? at::empty_like(z) : Tensor();
    const int64_t width = z.size(1);
    const auto b = has_linear ? kept(context, "b") : Param();
    std::vector<float> unread;
    float* dgamma = scale_gradient(gamma, width, unread);
    by_type(z, [&](auto element) {
      using T = decltype(element);
      rows_with_sums(z.size(0), {{dgamma, width}, {grad_data(beta), width}, {grad_data(b), width}},
                     [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
                       const int64_t at = begin * width;
                       kernels::typed<T>().norm_backward({.rows = end - begin,
                                                          .first_row = begin,
                                                          .width = width,
                                                          .dout = data<T>(dout) + at,
                                                          .z = data<T>(z) + at,
                                                          .mean = mean.data_ptr<float>() + begin,
                                                          .rstd = rstd.data_ptr<float>() + begin,
                                                          .gamma = gamma.value().data_ptr<float>(),
                                                          .centred = centred,
                                                          .drop = drop,
                                                          .dresidual = data<T>(dz) + at,
                                                          .dy = dy.defined() ? data<T>(dy) + at : nullptr,
                                                          .dgamma = sums[0],
                                                          .dbeta = sums[1],
                                                          .dbias = sums[2]});
                     });
    });
    variable_list out(8);
    if (!has_linear) {
      out[0] = in_shape_of(grads[0], dz);
      return out;
    }
    const auto w = kept(context, "w");
    const auto& branch = dy.defined() ? dy : dz;
    out[0] = in_shape_of(grads[0], LinearInput::backward(context, w, branch, x));
    out[1] = in_shape_of(grads[0], dz);
    return out;
  }
};

/// residual + dropout(x W' + b).
struct AddFunction : Function<AddFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& residual, const Tensor&,
                        const Param& w, const Param& b, const Dropout& drop, const FirstLayer* first) {
    const LinearInput in(x, first);
    const auto skip = as_rows(residual);
    auto y = multiplied(in.multiplied(), w);  // [R, D]
    by_type(y, [&](auto element) {
      using T = decltype(element);
      const int64_t width = y.size(1);
      parallel_rows(y.size(0), width, [&](int64_t begin, int64_t end) {
        kernels::typed<T>().dropout_add(end - begin, begin, width, data<T>(y) + begin * width,
                                        b.defined() ? b.value().data_ptr<float>() : nullptr, kernel_dropout(drop),
                                        data<T>(skip) + begin * width);
      });
    });
    context->save_for_backward({in.rows()});
    in.keep(context, first);
    keep(context, "w", w);
    keep(context, "b", b);
    keep(context, drop);
    return y.view(residual.sizes());
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto x = context->get_saved_variables()[0];
    const auto w = kept(context, "w"), b = kept(context, "b");
    const auto drop = kept_dropout(context);
    const auto dout = as_rows(grads[0]), dy = drop.threshold > 0 ? masked(dout, drop) : dout;
    const auto dx = LinearInput::backward(context, w, dy, x);
    if (b.defined()) add_bias_gradient(b, dy);
    return {in_shape_of(grads[0], dx), grads[0], Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

struct DropoutFunction : Function<DropoutFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Dropout& drop) {
    keep(context, drop);
    return masked(as_rows(x), kernel_dropout(drop)).view(x.sizes());
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    return {masked(as_rows(grads[0]), kept_dropout(context)).view(grads[0].sizes()), Tensor()};
  }
};

struct TablesHolder final : torch::CustomClassHolder {
  explicit TablesHolder(EmbeddingTables t) : tables(std::move(t)) {}
  EmbeddingTables tables;
};

struct EmbedFunction : Function<EmbedFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& ids, const Tensor& types, const Tensor& positions,
                        const Tensor&, const EmbeddingTables& t, const Dropout& drop) {
    const auto defined = [](const Tensor& x) { return x.numel() > 0 ? x.contiguous() : Tensor(); };
    const auto flat = ids.contiguous(), segment = defined(types), position = defined(positions);
    const int64_t rows = flat.numel(), width = t.word.value().size(1);
    auto out = at::empty({rows, width}, at::TensorOptions(t.word.compute().scalar_type()));
    auto mean = at::empty({rows}, at::kFloat), rstd = at::empty({rows}, at::kFloat);
    by_type(out, [&](auto element) {
      using T = decltype(element);
      parallel_rows(rows, width, [&](int64_t begin, int64_t end) {
        kernels::typed<T>().embed_forward({.rows = end - begin,
                                           .first_row = begin,
                                           .width = width,
                                           .length = flat.size(1),
                                           .ids = at(flat, begin),
                                           .types = at(segment, begin),
                                           .positions = at(position, begin),
                                           .word = table(t.word),
                                           .type = table(t.type),
                                           .position = table(t.position),
                                           .gamma = table(t.norm.gamma),
                                           .beta = table(t.norm.beta),
                                           .scale = static_cast<float>(t.scale),
                                           .eps = static_cast<float>(t.norm.eps),
                                           .centred = t.norm.centred,
                                           .drop = kernel_dropout(drop),
                                           .out = data<T>(out) + begin * width,
                                           .mean = mean.data_ptr<float>() + begin,
                                           .rstd = rstd.data_ptr<float>() + begin});
      });
    });
    context->save_for_backward({flat, segment, position, mean, rstd});
    context->saved_data["tables"] = c10::IValue::make_capsule(c10::make_intrusive<TablesHolder>(t));
    keep(context, drop);
    return out.view({flat.size(0), flat.size(1), width});
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &ids = saved[0], &types = saved[1], &positions = saved[2], &mean = saved[3], &rstd = saved[4];
    const auto capsule = context->saved_data["tables"].toCapsule();
    const auto& t = static_cast<const TablesHolder&>(*capsule).tables;
    const auto dout = as_rows(grads[0]);
    const int64_t rows = dout.size(0), width = dout.size(1), length = ids.size(1);
    auto dsum = at::empty({rows, width}, at::kFloat);
    const auto drop = kept_dropout(context);
    std::vector<float> unread;
    float* dgamma = scale_gradient(t.norm.gamma, width, unread);
    by_type(dout, [&](auto element) {
      using T = decltype(element);
      rows_with_sums(rows, {{dgamma, width}, {grad_data(t.norm.beta), width}},
                     [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
                       kernels::typed<T>().embed_backward({.rows = end - begin,
                                                           .first_row = begin,
                                                           .width = width,
                                                           .length = length,
                                                           .ids = at(ids, begin),
                                                           .types = at(types, begin),
                                                           .positions = at(positions, begin),
                                                           .word = table(t.word),
                                                           .type = table(t.type),
                                                           .position = table(t.position),
                                                           .gamma = table(t.norm.gamma),
                                                           .mean = mean.data_ptr<float>() + begin,
                                                           .rstd = rstd.data_ptr<float>() + begin,
                                                           .scale = static_cast<float>(t.scale),
                                                           .centred = t.norm.centred,
                                                           .drop = drop,
                                                           .dout = data<T>(dout) + begin * width,
                                                           .dsum = dsum.data_ptr<float>() + begin * width,
                                                           .dgamma = sums[0],
                                                           .dbeta = sums[1]});
                     });
    });
    scatter(dsum, ids, types, positions, t);
    return variable_list(6);
  }

  static const int64_t* at(const Tensor& index, int64_t row) {
    return index.defined() ? index.data_ptr<int64_t>() + row : nullptr;
  }
  static const float* table(const Param& param) { return param.defined() ? param.value().data_ptr<float>() : nullptr; }

  /// Adds each row to its tables. Parts are disjoint ranges of columns, so there is no race and the order of
  /// additions is fixed.
  static void scatter(const Tensor& dsum, const Tensor& ids, const Tensor& types, const Tensor& positions,
                      const EmbeddingTables& t) {
    const int64_t rows = dsum.size(0), width = dsum.size(1), length = ids.size(1), padding_row = t.word.padding_row(),
                  padding_position = t.position.defined() ? t.position.padding_row() : -1;
    const float* from = dsum.data_ptr<float>();
    const int64_t *id = at(ids, 0), *segment = at(types, 0), *position = at(positions, 0);
    float *words = grad_data(t.word), *position_rows = grad_data(t.position), *segments = grad_data(t.type);
    if (!words && !position_rows && !segments) return;
    each_range(width, 64, [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      std::vector<float> scaled(t.scale == 1 ? 0 : static_cast<size_t>(n));
      for (int64_t row = 0; row < rows; ++row) {
        const float* d = from + row * width + begin;
        const int64_t p = position ? position[row] : row % length;
        for (size_t i = 0; i < scaled.size(); ++i) scaled[i] = static_cast<float>(t.scale) * d[i];
        if (words && id[row] != padding_row)
          kernels::table().f32.add_to(n, scaled.empty() ? d : scaled.data(), words + id[row] * width + begin);
        if (position_rows && p != padding_position)
          kernels::table().f32.add_to(n, d, position_rows + p * width + begin);
        if (segments) kernels::table().f32.add_to(n, d, segments + (segment ? segment[row] : 0) * width + begin);
      }
    });
  }
};

}  // namespace

Tensor layer_norm(const Tensor& x, const NormParams& norm) {
  return NormFunction::apply(x, x.detach(), leaf_of({norm.gamma, norm.beta}), Param(), Param(), Dropout{}, norm,
                             nullptr);
}

Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const NormParams& norm, const FirstLayer* first) {
  const auto in = after_products(x, first);
  const auto leaf = leaf_of({w, b, norm.gamma, norm.beta, first ? first->b : Param()});
  return NormFunction::apply(in, residual, leaf, w, b, drop, norm, first);
}

Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual,
                          const FirstLayer* first) {
  const auto in = after_products(x, first);
  return AddFunction::apply(in, residual, leaf_of({w, b, first ? first->b : Param()}), w, b, drop, first);
}

Tensor dropout(const Tensor& x, const Dropout& drop) { return drop.on() ? DropoutFunction::apply(x, drop) : x; }

Tensor embed(const EmbeddingIds& in, const EmbeddingTables& tables, const Dropout& drop) {
  const auto present = [](const Tensor& index) { return index.defined() ? index : at::empty({0}, at::kLong); };
  const auto& t = tables;
  return EmbedFunction::apply(in.ids, present(in.types), present(in.positions),
                              leaf_of({t.word, t.position, t.type, t.norm.gamma, t.norm.beta}), t, drop);
}

}  // namespace cloze::fused

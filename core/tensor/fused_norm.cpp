#include "core/tensor/fused_support.h"

namespace cloze::fused {

namespace {

/// norm(residual + dropout(x W' + b)), or norm(x) alone where there is no product.
struct NormFunction : Function<NormFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& residual, const Tensor&, const Param& w, const Param& b, const Dropout& drop,
                        const Param& gamma, const Param& beta, double eps) {
    const auto rows = as_rows(x);
    const bool product = w.defined();
    const auto around = product ? as_rows(residual) : Tensor();
    auto z = product ? at::mm(rows, w.compute().t()) : rows;   // [R, D]; a product's output receives z in place
    auto out = at::empty_like(z);
    const int64_t width = z.size(1);
    auto mean = at::empty({z.size(0)}, at::kFloat), rstd = at::empty({z.size(0)}, at::kFloat);
    by_type(z, [&](auto element) {
      using T = decltype(element);
      parallel_rows(z.size(0), width, [&](int64_t begin, int64_t end) {
        const int64_t at = begin * width;
        kernels::typed<T>().norm_forward({.rows = end - begin, .first_row = begin, .width = width, .y = data<T>(z) + at,
                                          .bias = b.defined() ? b.value().data_ptr<float>() : nullptr, .residual = product ? data<T>(around) + at : nullptr,
                                          .drop = kernel_dropout(drop), .z = product ? data<T>(z) + at : nullptr, .gamma = gamma.value().data_ptr<float>(),
                                          .beta = beta.value().data_ptr<float>(), .eps = static_cast<float>(eps), .out = data<T>(out) + at,
                                          .mean = mean.data_ptr<float>() + begin, .rstd = rstd.data_ptr<float>() + begin});
      });
    });
    context->save_for_backward({product ? rows : Tensor(), z, mean, rstd});
    context->saved_data["product"] = product;
    if (product) {
      keep(context, "w", w);
      keep(context, "b", b);
    }
    keep(context, "gamma", gamma);
    keep(context, "beta", beta);
    keep(context, drop);
    auto sizes = x.sizes().vec();
    sizes.back() = width;
    return out.view(sizes);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &z = saved[1], &mean = saved[2], &rstd = saved[3];
    const bool product = context->saved_data["product"].toBool();
    const auto gamma = kept(context, "gamma"), beta = kept(context, "beta");
    const auto drop = kept_dropout(context);
    const auto dout = as_rows(grads[0]);
    auto dz = at::empty_like(z);
    auto dy = product && drop.threshold > 0 ? at::empty_like(z) : Tensor();
    const int64_t width = z.size(1);
    float* dbias = product ? grad_data(kept(context, "b")) : nullptr;
    by_type(z, [&](auto element) {
      using T = decltype(element);
      rows_with_sums(z.size(0), {{grad_data(gamma), width}, {grad_data(beta), width}, {dbias, width}}, [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
        const int64_t at = begin * width;
        kernels::typed<T>().norm_backward({.rows = end - begin, .first_row = begin, .width = width, .dout = data<T>(dout) + at, .z = data<T>(z) + at,
                                           .mean = mean.data_ptr<float>() + begin, .rstd = rstd.data_ptr<float>() + begin, .gamma = gamma.value().data_ptr<float>(),
                                           .drop = drop, .dresidual = data<T>(dz) + at, .dy = dy.defined() ? data<T>(dy) + at : nullptr, .dgamma = sums[0],
                                           .dbeta = sums[1], .dbias = sums[2]});
      });
    });
    const auto shaped = [&](const Tensor& rows) {
      auto sizes = grads[0].sizes().vec();
      sizes.back() = rows.size(1);
      return rows.view(sizes);
    };
    variable_list out(9);
    if (!product) {
      out[0] = shaped(dz);
      return out;
    }
    const auto w = kept(context, "w");
    const auto& branch = dy.defined() ? dy : dz;
    add_weight_gradient(w, branch, x);
    out[0] = shaped(at::mm(branch, w.compute()));
    out[1] = shaped(dz);
    return out;
  }
};

struct DropoutFunction : Function<DropoutFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Dropout& drop) {
    keep(context, drop);
    return apply_mask(x, kernel_dropout(drop));
  }
  static variable_list backward(AutogradContext* context, variable_list grads) { return {apply_mask(grads[0], kept_dropout(context)), Tensor()}; }
  static Tensor apply_mask(const Tensor& x, const kernels::Dropout& drop) {
    const auto rows = as_rows(x);
    auto out = at::empty_like(rows);
    by_type(rows, [&](auto element) {
      using T = decltype(element);
      const int64_t width = rows.size(1);
      parallel_rows(rows.size(0), width, [&](int64_t begin, int64_t end) {
        kernels::typed<T>().dropout(end - begin, begin, width, data<T>(rows) + begin * width, drop, data<T>(out) + begin * width);
      });
    });
    return out.view(x.sizes());
  }
};

struct EmbedFunction : Function<EmbedFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& ids, const Tensor& types, const Tensor&, const Param& word, const Param& position, const Param& type,
                        const Param& gamma, const Param& beta, double eps, const Dropout& drop) {
    const auto flat = ids.contiguous();
    const auto segment = types.numel() > 0 ? types.contiguous() : Tensor();
    const int64_t rows = flat.numel(), width = word.value().size(1);
    auto out = at::empty({rows, width}, at::TensorOptions(word.compute().scalar_type()));
    auto mean = at::empty({rows}, at::kFloat), rstd = at::empty({rows}, at::kFloat);
    by_type(out, [&](auto element) {
      using T = decltype(element);
      parallel_rows(rows, width, [&](int64_t begin, int64_t end) {
        kernels::typed<T>().embed_forward({.rows = end - begin, .first_row = begin, .width = width, .length = flat.size(1), .ids = flat.data_ptr<int64_t>() + begin,
                                           .types = segment.defined() ? segment.data_ptr<int64_t>() + begin : nullptr, .word = word.value().data_ptr<float>(),
                                           .type = type.value().data_ptr<float>(), .position = position.value().data_ptr<float>(), .gamma = gamma.value().data_ptr<float>(),
                                           .beta = beta.value().data_ptr<float>(), .eps = static_cast<float>(eps), .drop = kernel_dropout(drop),
                                           .out = data<T>(out) + begin * width, .mean = mean.data_ptr<float>() + begin, .rstd = rstd.data_ptr<float>() + begin});
      });
    });
    context->save_for_backward({flat, segment, mean, rstd});
    keep(context, "word", word);
    keep(context, "position", position);
    keep(context, "type", type);
    keep(context, "gamma", gamma);
    keep(context, "beta", beta);
    keep(context, drop);
    return out.view({flat.size(0), flat.size(1), width});
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &ids = saved[0], &types = saved[1], &mean = saved[2], &rstd = saved[3];
    const auto word = kept(context, "word"), position = kept(context, "position"), type = kept(context, "type"), gamma = kept(context, "gamma"), beta = kept(context, "beta");
    const auto dout = as_rows(grads[0]);
    const int64_t rows = dout.size(0), width = dout.size(1), length = ids.size(1);
    auto dsum = at::empty({rows, width}, at::kFloat);
    const auto drop = kept_dropout(context);
    by_type(dout, [&](auto element) {
      using T = decltype(element);
      rows_with_sums(rows, {{grad_data(gamma), width}, {grad_data(beta), width}}, [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
        kernels::typed<T>().embed_backward({.rows = end - begin, .first_row = begin, .width = width, .length = length, .ids = ids.data_ptr<int64_t>() + begin,
                                            .types = types.defined() ? types.data_ptr<int64_t>() + begin : nullptr, .word = word.value().data_ptr<float>(),
                                            .type = type.value().data_ptr<float>(), .position = position.value().data_ptr<float>(), .gamma = gamma.value().data_ptr<float>(),
                                            .mean = mean.data_ptr<float>() + begin, .rstd = rstd.data_ptr<float>() + begin, .drop = drop,
                                            .dout = data<T>(dout) + begin * width, .dsum = dsum.data_ptr<float>() + begin * width, .dgamma = sums[0], .dbeta = sums[1]});
      });
    });
    scatter(dsum, ids, types, word, position, type);
    return variable_list(10);
  }

  /// Adds each row to its three tables. Ranges of columns never meet, so there is no race and one order of addition.
  static void scatter(const Tensor& dsum, const Tensor& ids, const Tensor& types, const Param& word, const Param& position, const Param& type) {
    const int64_t rows = dsum.size(0), width = dsum.size(1), length = ids.size(1), frozen = word.frozen_row();
    const float* from = dsum.data_ptr<float>();
    const auto* id = ids.data_ptr<int64_t>();
    const auto* segment = types.defined() ? types.data_ptr<int64_t>() : nullptr;
    float *words = grad_data(word), *positions = grad_data(position), *segments = grad_data(type);
    at::parallel_for(0, (width + 15) / 16, 4, [&](int64_t first, int64_t last) {
      const int64_t begin = 16 * first, n = std::min(width, 16 * last) - begin;
      for (int64_t row = 0; row < rows; ++row) {
        const float* d = from + row * width + begin;
        if (id[row] != frozen) kernels::table().f32.add_to(n, d, words + id[row] * width + begin);
        kernels::table().f32.add_to(n, d, positions + row % length * width + begin);
        kernels::table().f32.add_to(n, d, segments + (segment ? segment[row] : 0) * width + begin);
      }
    });
  }
};

struct CrossEntropyFunction : Function<CrossEntropyFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& hidden, const Tensor&, const Param& table, const Param& bias, const Tensor& labels, int64_t* correct) {
    const auto rows = as_rows(hidden);
    auto logits = at::mm(rows, table.compute().t());   // [N, V]
    const int64_t n = logits.size(0), width = logits.size(1);
    auto lse = at::empty({n}, at::kFloat), loss = at::empty({n}, at::kFloat), right = at::empty({n}, at::kByte);
    const auto wanted = labels.contiguous();
    by_type(logits, [&](auto element) {
      using T = decltype(element);
      at::parallel_for(0, n, 1, [&](int64_t begin, int64_t end) { kernels::typed<T>().cross_entropy_forward(call<T>(begin, end, width, logits, bias, wanted, lse, loss, right)); });
    });
    if (correct) *correct = right.sum().item<int64_t>();
    context->save_for_backward({rows, logits, wanted, lse});
    keep(context, "table", table);
    keep(context, "bias", bias);
    return loss.sum(at::kDouble).to(at::kFloat);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &hidden = saved[0], &labels = saved[2], &lse = saved[3];
    auto logits = saved[1];   // used up: their gradient is written over them
    const auto table = kept(context, "table"), bias = kept(context, "bias");
    const float scale = grads[0].item<float>();
    const int64_t n = logits.size(0), width = logits.size(1);
    by_type(logits, [&](auto element) {
      using T = decltype(element);
      rows_with_sums(n, {{grad_data(bias), width}}, [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
        auto pass = call<T>(begin, end, width, logits, bias, labels, lse, {}, {});
        pass.scale = scale;
        pass.dbias = sums[0];
        kernels::typed<T>().cross_entropy_backward(pass);
      });
    });
    add_weight_gradient(table, logits, hidden);
    return {at::mm(logits, table.compute()), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }

  template <class T>
  static kernels::CrossEntropy<T> call(int64_t begin, int64_t end, int64_t width, const Tensor& logits, const Param& bias, const Tensor& labels, const Tensor& lse,
                                       const Tensor& loss, const Tensor& right) {
    return {.rows = end - begin, .width = width, .logits = data<T>(logits) + begin * width, .bias = bias.value().data_ptr<float>(), .labels = labels.data_ptr<int64_t>() + begin,
            .lse = lse.data_ptr<float>() + begin, .loss = loss.defined() ? loss.data_ptr<float>() + begin : nullptr,
            .correct = right.defined() ? right.data_ptr<uint8_t>() + begin : nullptr, .scale = 1, .dbias = nullptr};
  }
};

}  // namespace

Tensor layer_norm(const Tensor& x, const Param& gamma, const Param& beta, double eps) {
  return NormFunction::apply(x, x.detach(), gamma.value(), Param(), Param(), Dropout{}, gamma, beta, eps);
}

Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual, const Param& gamma, const Param& beta, double eps) {
  return NormFunction::apply(x, residual, w.value(), w, b, drop, gamma, beta, eps);
}

Tensor dropout(const Tensor& x, const Dropout& drop) { return drop.on() ? DropoutFunction::apply(x, drop) : x; }

Tensor embed(const Tensor& ids, const Tensor& types, const Param& word, const Param& position, const Param& type, const Param& gamma, const Param& beta, double eps,
             const Dropout& drop) {
  return EmbedFunction::apply(ids, types.defined() ? types : at::empty({0}, at::kLong), word.value(), word, position, type, gamma, beta, eps, drop);
}

Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels, int64_t* correct) {
  return CrossEntropyFunction::apply(hidden, table.value(), table, bias, labels, correct);
}

}  // namespace cloze::fused

#include "core/tensor/fused_support.h"

namespace cloze::fused {

namespace {

/// Columns of V whose logits are computed and read together: for 4,096 rows they are 16 MB in bf16, most of which stays
/// in the cache.
constexpr int64_t block = 2048;

/// f(first column, number of columns) for each block.
template <class F>
void each_block(int64_t width, const F& f) {
  for (int64_t first = 0; first < width; first += block) f(first, std::min(block, width - first));
}

const float* bias_at(const Param& bias, int64_t first) {
  return bias.defined() ? bias.value().data_ptr<float>() + first : nullptr;
}

/// Rows [begin, end) of a block of logits [N, columns], for both passes.
template <class T>
kernels::CrossEntropy<T> rows_of(const Tensor& logits, const Param& bias, const Tensor& labels, int64_t first,
                                 int64_t begin, int64_t end) {
  kernels::CrossEntropy<T> pass{};
  pass.rows = end - begin;
  pass.width = logits.size(1);
  pass.first = first;
  pass.logits = data<T>(logits) + begin * logits.size(1);
  pass.bias = bias_at(bias, first);
  pass.labels = labels.data_ptr<int64_t>() + begin;
  return pass;
}

/// Samples tokens from blocks of logits [N, V], bias not yet added.
Tensor drawn_from(const std::vector<Tensor>& logits, const Param& bias, const TokenDraw& draw) {
  const int64_t n = logits[0].size(0), columns = logits[0].size(1),
                width = columns * static_cast<int64_t>(logits.size() - 1) + logits.back().size(1);
  auto drawn = at::empty({n}, at::kLong);
  by_type(logits[0], [&](auto element) {
    using T = decltype(element);
    each_range(n, 16, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch(static_cast<size_t>(width + 16));
      std::vector<const T*> blocks;
      for (const auto& part : logits) blocks.push_back(data<T>(part) + begin * part.size(1));
      kernels::typed<T>().draw({.rows = end - begin,
                                .width = width,
                                .block = columns,
                                .blocks = blocks.data(),
                                .bias = bias_at(bias, 0),
                                .inverse_temperature = static_cast<float>(1 / draw.temperature),
                                .uniform = draw.uniform.data_ptr<double>() + begin,
                                .scratch = scratch.data(),
                                .drawn = drawn.data_ptr<int64_t>() + begin});
    });
  });
  return drawn;
}

/// Block by block of V, so that logits are read while they are in the cache; they are saved for the backward pass,
/// which overwrites them with their gradient.
struct CrossEntropyFunction : Function<CrossEntropyFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& hidden, const Tensor&, const Param& table,
                        const Param& bias, const Tensor& labels, const LossOptions& shape, Tensor* correct,
                        TokenDraw* draw) {
    const auto rows = as_rows(hidden), wanted = labels.contiguous(), weight = table.compute();
    const int64_t n = rows.size(0), width = weight.size(0);
    auto peak = at::full({n}, -1e30f), total = at::zeros({n}), score = at::empty({n}),
         all = shape.label_smoothing > 0 ? at::zeros({n}) : Tensor();
    std::vector<Tensor> saved{rows, wanted, Tensor(), Tensor()}, logits;
    each_block(width, [&](int64_t first, int64_t columns) {
      logits.push_back(matmul_nt(rows, weight.narrow(0, first, columns)));
      by_type(logits.back(), [&](auto element) {
        using T = decltype(element);
        parallel_rows(n, columns, [&](int64_t begin, int64_t end) {
          auto pass = rows_of<T>(logits.back(), bias, wanted, first, begin, end);
          pass.peak = peak.data_ptr<float>() + begin;
          pass.total = total.data_ptr<float>() + begin;
          pass.score = score.data_ptr<float>() + begin;
          pass.all = all.defined() ? all.data_ptr<float>() + begin : nullptr;
          kernels::typed<T>().cross_entropy_forward(pass);
        });
      });
    });
    if (draw) draw->drawn = drawn_from(logits, bias, *draw);
    if (correct) *correct = score.ge(peak).sum();
    const auto lse = peak + total.log_();
    auto loss = lse - score;
    if (all.defined()) loss = loss.mul_(1 - shape.label_smoothing).add_(lse - all.div_(width), shape.label_smoothing);
    if (shape.z_loss > 0) loss.addcmul_(lse, lse, shape.z_loss);
    const auto weights = shape.weights.defined() ? shape.weights.contiguous() : Tensor();
    if (weights.defined()) loss.mul_(weights);
    saved[2] = lse;
    saved[3] = weights;
    saved.insert(saved.end(), logits.begin(), logits.end());
    context->save_for_backward(saved);
    keep(context, "table", table);
    keep(context, "bias", bias);
    context->saved_data["smoothing"] = shape.label_smoothing;
    context->saved_data["z"] = shape.z_loss;
    return loss.sum(at::kDouble).to(at::kFloat);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    auto saved = context->get_saved_variables();
    const auto &hidden = saved[0], &labels = saved[1], &lse = saved[2], &weights = saved[3];
    const auto table = kept(context, "table"), bias = kept(context, "bias");
    const auto weight = table.compute();
    const float scale = grads[0].item<float>();
    const auto smoothing = static_cast<float>(context->saved_data["smoothing"].toDouble()),
               z = static_cast<float>(context->saved_data["z"].toDouble());
    const int64_t n = hidden.size(0), width = weight.size(0);
    float* bias_gradient = grad_data(bias);
    auto dhidden = at::zeros(hidden.sizes(), at::kFloat);
    each_block(width, [&](int64_t first, int64_t columns) {
      auto logits = saved[static_cast<size_t>(4 + first / block)];  // consumed: overwritten by their gradient
      by_type(logits, [&](auto element) {
        using T = decltype(element);
        rows_with_sums(n, {{bias_gradient ? bias_gradient + first : nullptr, columns}},
                       [&](int64_t begin, int64_t end, const std::vector<float*>& sums) {
                         auto pass = rows_of<T>(logits, bias, labels, first, begin, end);
                         pass.lse = lse.template data_ptr<float>() + begin;
                         pass.smoothing = smoothing;
                         pass.share = smoothing / static_cast<float>(width);
                         pass.z_weight = z;
                         pass.scale = scale;
                         pass.weights = weights.defined() ? weights.template data_ptr<float>() + begin : nullptr;
                         pass.dbias = sums[0];
                         kernels::typed<T>().cross_entropy_backward(pass);
                       });
        if (table.is_trained()) add_matmul_tn(grad_of(table).narrow(0, first, columns), logits, hidden);
        add_matmul_nn(dhidden, logits, weight.narrow(0, first, columns));
      });
    });
    return {dhidden.to(hidden.scalar_type()), Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor draw_tokens(const Tensor& hidden, const Param& table, const Param& bias, const TokenDraw& draw) {
  return drawn_from({matmul_nt(as_rows(hidden), table.compute())}, bias, draw);
}

Tensor token_log_probabilities(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& rows,
                               const Tensor& labels) {
  const auto states = as_rows(hidden.to(at::kFloat));
  const auto row = rows.contiguous(), label = labels.contiguous();
  const int64_t n = states.size(0), count = label.numel(), width = table.value().size(0);
  std::vector<kernels::ExpSum> sums(static_cast<size_t>(n));
  auto scores = at::empty({count}, at::kDouble);
  const auto add = [&](int64_t first, const Tensor& logits) {  // [N, columns]
    const int64_t columns = logits.size(1);
    const auto* at = logits.data_ptr<float>();
    const auto* shift = bias_at(bias, first);
    parallel_rows(n, columns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        kernels::table().scores.add_exponentials(columns, at + r * columns, shift, sums[static_cast<size_t>(r)]);
    });
    for (int64_t m = 0; m < count; ++m) {
      const int64_t column = label.data_ptr<int64_t>()[m] - first;
      if (column < 0 || column >= columns) continue;
      const float logit = at[row.data_ptr<int64_t>()[m] * columns + column];
      scores.data_ptr<double>()[m] = shift ? logit + shift[column] : logit;
    }
  };
  if (table.packed().defined())
    add(0, matmul_packed(states, table.packed()));
  else
    each_block(width, [&](int64_t first, int64_t columns) {
      add(first, matmul_nt(states, table.value().narrow(0, first, columns)));
    });
  for (int64_t m = 0; m < count; ++m) {
    const auto& sum = sums[static_cast<size_t>(row.data_ptr<int64_t>()[m])];
    scores.data_ptr<double>()[m] -= double{sum.max} + std::log(sum.total);
  }
  return scores;
}

Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape, Tensor* correct, TokenDraw* draw) {
  return CrossEntropyFunction::apply(hidden, leaf_of({table, bias}), table, bias, labels, shape, correct, draw);
}

}  // namespace cloze::fused

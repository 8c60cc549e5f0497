#include "objectives/distil/soft_targets.h"

#include <torch/csrc/autograd/custom_function.h>

#include "core/tensor/parallel.h"

namespace cloze {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// sum_k p_k (log p_k - log q_k) of each row, fp32 [N], of p and both logarithms [N, K]. On a processor row by row, so
/// that it does not depend on the number of threads.
Tensor divergence_of_rows(const Tensor& p, const Tensor& log_p, const Tensor& log_q) {
  if (!p.is_cpu()) return (p * (log_p - log_q)).masked_fill(p.eq(0), 0.0).sum(-1);
  const int64_t rows = p.size(0), width = p.size(1);
  const auto sums = at::empty({rows}, at::kFloat);
  const auto *share = p.const_data_ptr<float>(), *wanted = log_p.const_data_ptr<float>(),
             *given = log_q.const_data_ptr<float>();
  auto* out = sums.mutable_data_ptr<float>();
  each_range(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double sum = 0;
      for (int64_t k = row * width; k < (row + 1) * width; ++k)
        if (share[k] > 0) sum += static_cast<double>(share[k]) * (wanted[k] - given[k]);
      out[row] = static_cast<float>(sum);
    }
  });
  return sums;
}

/// Keeps the gradient alone, T (q - p), in the type of the logits.
struct Divergence : Function<Divergence> {
  static Tensor forward(AutogradContext* context, const Tensor& student, const Tensor& teacher, double temperature) {
    const auto logarithms = [&](const Tensor& logits) {
      return at::log_softmax(logits.to(at::kFloat) / temperature, -1).contiguous();
    };
    const auto log_q = logarithms(student), log_p = logarithms(teacher), p = log_p.exp();
    const auto rows = divergence_of_rows(p, log_p, log_q) * (temperature * temperature);
    context->save_for_backward({((log_q.exp() - p) * temperature).to(student.scalar_type())});
    return rows;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto slope = context->get_saved_variables()[0];
    return {(slope * grads[0].unsqueeze(-1)).to(slope.scalar_type()), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor divergence(const Tensor& student, const Tensor& teacher, double temperature) {
  return Divergence::apply(student, teacher, temperature);
}

Tensor cosine_distance(const Tensor& student, const Tensor& teacher) {
  constexpr double least = 1e-12;  // of torch
  const auto s = student.to(at::kFloat), t = teacher.to(at::kFloat);
  const auto square = [&](const Tensor& x) { return x.square().sum(-1) + least; };
  return 1 - (s * t).sum(-1) / (square(s) * square(t)).sqrt();
}

}  // namespace cloze

// Muon: the step of a matrix is the orthogonal matrix that is closest to its momentum.
// Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks", and KellerJordan/Muon,
// muon.py: Nesterov momentum, five Newton-Schulz steps. Differs: these are in fp32 (there bf16).
#include "optimizers/muon.h"

#include <cmath>
#include <tuple>

#include "core/tensor/matmul.h"
#include "optimizers/optimizer.h"
#include "optimizers/update.h"

namespace cloze {

using namespace optimizers;

namespace {

constexpr int newton_schulz_steps = 5;
constexpr struct {
  double a = 3.4445, b = -4.7750, c = 2.0315;
} coefficients;

/// An approximation of U V' of a matrix U S V', with singular values between 0.7 and 1.2.
Tensor orthogonal(const Tensor& matrix) {
  const auto [a, b, c] = coefficients;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  auto x = (is_tall ? matrix.t() : matrix).contiguous();
  x = x / (global_norm(x.flatten()) + 1e-7);
  for (int i = 0; i < newton_schulz_steps; ++i) {
    const auto square = matmul_nt(x, x);
    x = a * x + matmul_nn(b * square + c * matmul_nn(square, square), x);
  }
  return is_tall ? x.t() : x;
}

/// The factor on an orthogonal step of a matrix. Source: MuonScale.
double scale_of(MuonScale scale, const Tensor& p) {
  const auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
  switch (scale) {
    case MuonScale::rows:
      return std::sqrt(std::max(1.0, rows / columns));
    case MuonScale::adamw:
      return 0.2 * std::sqrt(std::max(rows, columns));
  }
  return 1;
}

/// The same of matrices of one shape, [N, rows, columns].
Tensor all_orthogonal(const Tensor& matrices) {
  const bool are_tall = matrices.size(1) > matrices.size(2);
  auto x = are_tall ? matrices.transpose(1, 2) : matrices;
  x = x / (at::linalg_vector_norm(x, 2, {1, 2}, /*keepdim=*/true) + 1e-7);
  for (int i = 0; i < newton_schulz_steps; ++i) {
    const auto square = at::bmm(x, x.transpose(1, 2));
    x = at::baddbmm(x, at::baddbmm(square, square, square, coefficients.b, coefficients.c), x, coefficients.a);
  }
  return are_tall ? x.transpose(1, 2).contiguous() : x;
}

/// Matrices of one shape, which decay alike.
struct Alike {
  std::vector<Tensor> values, grads, momenta, shadows;
};

}  // namespace

/// Those of one shape together: the operators of LibTorch for lists, and products of stacks.
void Muon::update(const Step& step, const DeviceBuffers& buffers) const {
  std::map<std::tuple<int64_t, int64_t, bool>, Alike> by_shape;
  for (const auto& matrix : buffers.matrices) {
    auto& alike = by_shape[{matrix.rows, matrix.columns, matrix.decays}];
    const auto part_of = [&](const Tensor& flat) {
      return flat.narrow(0, matrix.offset, matrix.numel()).view({matrix.rows, matrix.columns});
    };
    alike.values.push_back(part_of(buffers.values));
    alike.grads.push_back(part_of(buffers.grads));
    const auto& kept = buffers.moments[matrix.param].at("momentum");
    alike.momenta.push_back(kept.view({matrix.parts, matrix.rows, matrix.columns}).select(0, matrix.part));
    if (buffers.shadow.defined()) alike.shadows.push_back(part_of(buffers.shadow));
  }
  for (const auto& [shape, alike] : by_shape) {
    const double decay = step.decay_of(std::get<bool>(shape));
    at::_foreach_mul_(alike.grads, step.grad_scale);
    at::_foreach_lerp_(alike.momenta, alike.grads, 1 - momentum);
    const auto directions = all_orthogonal(at::stack(at::_foreach_lerp(alike.grads, alike.momenta, momentum)));
    at::_foreach_mul_(alike.values, 1 - step.learning_rate * decay);
    at::_foreach_add_(alike.values, directions.unbind(), -step.learning_rate * scale_of(scale, alike.values[0]));
    at::_foreach_zero_(alike.grads);
    if (!alike.shadows.empty()) at::_foreach_copy_(alike.shadows, alike.values);
  }
}

void Muon::update(const Step& step, const Target& target) const {
  const auto &p = target.values, &gradient = target.gradient, &kept = target.moments.at("momentum");
  kept.lerp_(gradient, 1 - momentum);
  const auto direction = orthogonal(gradient.lerp(kept, momentum));
  p.mul_(1 - step.learning_rate * step.decay_of(target.decays))
      .sub_(direction, step.learning_rate * scale_of(scale, p));
}

}  // namespace cloze

// Muon: the step of a matrix is the orthogonal matrix that is closest to its momentum.
// Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks", and KellerJordan/Muon,
// muon.py: Nesterov momentum, five Newton-Schulz steps. Differs: these are in fp32 (there bf16).
#include "optimizers/muon.h"

#include <cmath>

#include "core/tensor/matmul.h"
#include "optimizers/optimizer.h"
#include "optimizers/update.h"

namespace cloze {

using namespace optimizers;

namespace {

constexpr int newton_schulz_steps = 5;

/// An approximation of U V' of a matrix U S V', with singular values between 0.7 and 1.2.
Tensor orthogonal(const Tensor& matrix) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
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

}  // namespace

void Muon::update(const Step& step, const Target& target) const {
  const auto &p = target.values, &gradient = target.gradient, &kept = target.moments.at("momentum");
  kept.lerp_(gradient, 1 - momentum);
  const auto direction = orthogonal(gradient.lerp(kept, momentum));
  p.mul_(1 - step.learning_rate * step.decay_of(target.decays))
      .sub_(direction, step.learning_rate * scale_of(scale, p));
}

}  // namespace cloze

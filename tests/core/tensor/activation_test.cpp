#include <cmath>

#include "core/tensor/fused.h"
#include "core/tensor/plain.h"
#include "tests/support/compare.h"
#include "tests/support/isa.h"
#include "tests/support/naive.h"

using namespace cloze;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Each activation as its paper has it.
double formula(Activation activation, double x) {
  switch (activation) {
    case Activation::gelu:
    case Activation::gelu_python:
      return naive::gelu(x);
    case Activation::gelu_new:
    case Activation::gelu_pytorch_tanh:
    case Activation::gelu_python_tanh:
    case Activation::gelu_accurate:
    case Activation::gelu_fast:
      return naive::gelu_tanh(x);
    case Activation::quick_gelu:
      return x * sigmoid(1.702 * x);
    case Activation::gelu_10:
      return std::min(10.0, std::max(-10.0, naive::gelu(x)));
    case Activation::relu:
      return std::max(0.0, x);
    case Activation::relu2:
      return x > 0 ? x * x : 0;
    case Activation::relu6:
      return std::min(6.0, std::max(0.0, x));
    case Activation::leaky_relu:
      return x > 0 ? x : 0.01 * x;
    case Activation::silu:
    case Activation::swish:
      return x * sigmoid(x);
    case Activation::mish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::laplace:
      return 0.5 * (1 + std::erf((x - 0.707107) / (0.282095 * std::sqrt(2.0))));
    case Activation::linear:
      return x;
  }
  return std::nan("");
}

}  // namespace

TEST_CASE("every activation is its formula, by whatever name", "[kernels][activation]") {
  const auto x = at::tensor({-12.0, -2.5, -0.6, 0.0, 0.3, 1.0, 4.0, 11.0}, at::kDouble);
  for (const auto& choice : choices(Activation{})) {
    const auto y = plain::activation(x, choice.value);
    for (int64_t i = 0; i < x.size(0); ++i) {
      const double in = x[i].item<double>();
      INFO(choice.name << " of " << in);
      CHECK(y[i].item<double>() == Approx(formula(choice.value, in)).epsilon(1e-12).margin(1e-12));
    }
  }
}

TEST_CASE("an activation with a kernel and one without equal their plain forms, for every instruction set",
          "[kernels][activation]") {
  const UseIsa use(GENERATE_REF(from_range(tested_isas())));
  const auto x = numbers({2, 5, 11}, 0.1);
  const auto w = param({7, 11}, 0.4, 0.3), b = param({7}, 0.5);
  for (const auto& choice : choices(Activation{})) {
    INFO(choice.name);
    compare([&](auto& in) { return fused::linear_activation(in[0], w, b, choice.value); },
            [&](auto& in) { return plain::linear_activation(in[0], w, b, choice.value); }, {x}, {w, b}, at::kFloat);
  }
}

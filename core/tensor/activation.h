#pragma once
// The activations of feed-forward layers and heads; without LibTorch, for configs.
#include <array>

#include "core/config/config_rule.h"

namespace cloze {

/// An activation by its name in transformers' ACT2FN; several names are one function.
enum class Activation {
  gelu,
  gelu_python,
  gelu_new,
  gelu_pytorch_tanh,
  gelu_python_tanh,
  gelu_accurate,
  gelu_fast,
  quick_gelu,
  gelu_10,
  relu,
  relu2,
  relu6,
  leaky_relu,
  silu,
  swish,
  mish,
  tanh,
  sigmoid,
  laplace,
  linear
};
constexpr auto choices(Activation) {
  using enum Activation;
  return std::array{
      Choice{gelu, "gelu", "x times the standard normal distribution function (Hendrycks and Gimpel 2016)"},
      Choice{gelu_python, "gelu_python", "gelu"},
      Choice{gelu_new, "gelu_new", "gelu approximated by a tanh, as in GPT-2"},
      Choice{gelu_pytorch_tanh, "gelu_pytorch_tanh", "gelu_new"},
      Choice{gelu_python_tanh, "gelu_python_tanh", "gelu_new"},
      Choice{gelu_accurate, "gelu_accurate", "gelu_new"},
      Choice{gelu_fast, "gelu_fast", "gelu_new"},
      Choice{quick_gelu, "quick_gelu", "x sigmoid(1.702 x)"},
      Choice{gelu_10, "gelu_10", "gelu clipped to [-10, 10]"},
      Choice{relu, "relu", "max(0, x)"},
      Choice{relu2, "relu2", "the square of relu (So et al. 2021)"},
      Choice{relu6, "relu6", "relu clipped to 6"},
      Choice{leaky_relu, "leaky_relu", "max(0.01 x, x)"},
      Choice{silu, "silu", "x sigmoid(x)"},
      Choice{swish, "swish", "silu"},
      Choice{mish, "mish", "x tanh(log(1 + exp(x)))"},
      Choice{tanh, "tanh"},
      Choice{sigmoid, "sigmoid"},
      Choice{laplace, "laplace",
             "the normal distribution function of mean 0.7071 and deviation 0.2821 (Ma et al. 2022)"},
      Choice{linear, "linear", "x"}};
}

}  // namespace cloze

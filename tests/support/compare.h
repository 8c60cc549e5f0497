#pragma once
// Compares values and gradients of two forms of one operator.
#include "core/tensor/ops.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/numbers.h"

using cloze::Init;
using cloze::Param;
using cloze::Tensor;

inline Param param(at::IntArrayRef sizes, double phase, double size = 1, double shift = 0) {
  return Param((numbers(sizes, phase, size) + shift).set_requires_grad(true), Init::weight);
}

/// Value and gradients of f with respect to `inputs` and `params`.
struct Outcome {
  Tensor value;
  std::vector<Tensor> gradients;
};
template <class F>
Outcome outcome(const F& f, std::vector<Tensor> inputs, const std::vector<Param>& params, at::ScalarType type) {
  for (auto& input : inputs) input = input.to(type).detach().set_requires_grad(true);
  for (const auto& p : params) {
    p.value().mutable_grad() = Tensor();
    Param handle = p;
    handle.set_shadow(type == at::kBFloat16 ? p.value().detach().to(type) : Tensor());
  }
  Outcome found;
  found.value = f(inputs);
  const auto probe = found.value.dim() == 0 ? at::ones({}) : numbers(found.value.sizes(), 0.3);
  (found.value.to(at::kFloat) * probe).sum().backward();
  found.value = found.value.detach().to(at::kFloat);
  for (const auto& input : inputs) found.gradients.push_back(input.grad().to(at::kFloat));
  for (const auto& p : params) found.gradients.push_back(p.value().grad().to(at::kFloat).clone());
  return found;
}

/// Compares the fused form with the plain one in fp32, values and gradients; bf16 keeps three digits.
template <class F, class P>
void compare(const F& fused_form, const P& plain_form, const std::vector<Tensor>& inputs,
             const std::vector<Param>& params, at::ScalarType type) {
  const double tolerance = type == at::kFloat ? 3e-5 : 4e-2;
  const auto a = outcome(fused_form, inputs, params, type), b = outcome(plain_form, inputs, params, at::kFloat);
  CHECK(error_of(a.value, b.value) < tolerance);
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    INFO("gradient " << i);
    CHECK(error_of(a.gradients[i], b.gradients[i]) < tolerance);
  }
}

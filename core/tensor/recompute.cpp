#include "core/tensor/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace cloze {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct Holder final : torch::CustomClassHolder {
  explicit Holder(Run run_again) : f(std::move(run_again)) {}
  Run f;
};

struct Recompute : torch::autograd::Function<Recompute> {
  static variable_list forward(AutogradContext* context, at::TensorList inputs, const Run& f) {
    context->save_for_backward(inputs.vec());
    context->saved_data["f"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(f));
    at::NoGradGuard no_grad;
    return f(inputs.vec());
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto capsule = context->saved_data["f"].toCapsule();
    const auto& f = static_cast<const Holder&>(*capsule).f;
    auto inputs = context->get_saved_variables();
    for (auto& input : inputs) input = input.detach().set_requires_grad(input.is_floating_point());
    at::AutoGradMode with_grad(true);
    variable_list outputs, wanted;
    const auto all = f(inputs);
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].requires_grad()) {
        outputs.push_back(all[i]);
        wanted.push_back(grads[i]);
      }
    }
    torch::autograd::backward(outputs, wanted);
    variable_list back;
    for (const auto& input : inputs) back.push_back(input.grad());
    back.emplace_back();  // of f
    return back;
  }
};

bool trains(const Layer& layer) {
  return std::ranges::any_of(collect_params(layer),
                             [](const auto& named) { return named.param.leaf().requires_grad(); });
}

}  // namespace

std::vector<Tensor> recompute(Run f, const std::vector<Tensor>& inputs, const Layer& layer) {
  // Autograd takes no undefined tensors: the defined ones are passed alone and put back at their indices inside.
  std::vector<Tensor> defined;
  std::vector<size_t> indices;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) {
      defined.push_back(inputs[i]);
      indices.push_back(i);
    }
  }
  // Autograd records what has an input with a gradient, and knows nothing of the parameters inside.
  if (!std::ranges::any_of(defined, &Tensor::requires_grad) && trains(layer))
    defined.push_back(at::zeros({}).set_requires_grad(true));
  const Run spread = [f = std::move(f), indices, count = inputs.size()](const std::vector<Tensor>& compact) {
    std::vector<Tensor> all(count);
    for (size_t i = 0; i < indices.size(); ++i) all[indices[i]] = compact[i];
    return f(all);
  };
  return Recompute::apply(at::TensorList(defined), spread);
}

}  // namespace cloze

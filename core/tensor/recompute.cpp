#include "core/tensor/recompute.h"

#include <torch/csrc/autograd/autograd.h>

#include "core/tensor/ops.h"

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
    const FusedScope fused;
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
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].requires_grad()) outputs.push_back(all[i]), wanted.push_back(grads[i]);
    torch::autograd::backward(outputs, wanted);
    variable_list back;
    for (const auto& input : inputs) back.push_back(input.grad());
    back.emplace_back();  // of f
    return back;
  }
};

}  // namespace

std::vector<Tensor> recompute(Run f, const std::vector<Tensor>& inputs) {
  // Autograd takes no undefined tensors: what is there goes alone, and finds its place again inside.
  std::vector<Tensor> there;
  std::vector<size_t> places;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined()) there.push_back(inputs[i]), places.push_back(i);
  const Run spread = [f = std::move(f), places, count = inputs.size()](const std::vector<Tensor>& some) {
    std::vector<Tensor> all(count);
    for (size_t i = 0; i < places.size(); ++i) all[places[i]] = some[i];
    return f(all);
  };
  return Recompute::apply(at::TensorList(there), spread);
}

}  // namespace cloze

#include "core/tensor/recompute.h"

#include <torch/csrc/autograd/autograd.h>

#include "core/tensor/ops.h"

namespace cloze {

namespace {

struct Holder final : torch::CustomClassHolder {
  explicit Holder(std::function<Tensor(const Tensor&)> run_again) : f(std::move(run_again)) {}
  std::function<Tensor(const Tensor&)> f;
};

struct Recompute : torch::autograd::Function<Recompute> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
    context->save_for_backward({x});
    context->saved_data["f"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(f));
    at::NoGradGuard no_grad;
    const FusedScope fused;
    return f(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list grads) {
    const auto capsule = context->saved_data["f"].toCapsule();
    const auto& f = static_cast<const Holder&>(*capsule).f;
    auto x = context->get_saved_variables()[0].detach().set_requires_grad(true);
    at::AutoGradMode with_grad(true);
    torch::autograd::backward({f(x)}, {grads[0]});
    return {x.grad(), Tensor()};
  }
};

}  // namespace

Tensor recompute(std::function<Tensor(const Tensor&)> f, const Tensor& x) { return Recompute::apply(x, f); }

}  // namespace cloze

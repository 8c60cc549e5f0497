#include "core/kernels/attention.h"
#include "core/tensor/fused_support.h"

namespace cloze::fused {

namespace {

struct AttentionFunction : Function<AttentionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& qkv, const Tensor&, const Param& bias, int64_t heads, const AttentionContext& facts, const Dropout& drop) {
    const auto in = qkv.contiguous();
    const auto mask = facts.key_mask.defined() ? facts.key_mask.contiguous() : Tensor();
    const auto globals = facts.window >= 0 && facts.global_mask.defined() ? facts.global_mask.contiguous() : Tensor();
    const int64_t batch = in.size(0), length = in.size(1), width = in.size(2) / 3;
    auto out = at::empty({batch, length, width}, in.options());
    auto lse = at::empty({batch * heads, length}, at::kFloat);
    by_type(in, [&](auto element) {
      using T = decltype(element);
      each_head<T>(in, mask, globals, bias, heads, facts.causal, facts.window, kernel_dropout(drop), lse, [&](kernels::Attention<T> a, int64_t b) {
        a.out = data<T>(out) + b * length * width;
        (a.window < 0 ? kernels::attention<T>().forward : kernels::attention<T>().window_forward)(a);
      });
    });
    context->save_for_backward({in, mask, lse, globals});
    keep(context, "bias", bias);
    keep(context, drop);
    context->saved_data["heads"] = heads;
    context->saved_data["causal"] = facts.causal;
    context->saved_data["window"] = facts.window;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &in = saved[0], &mask = saved[1], &lse = saved[2];
    const auto bias = kept(context, "bias");
    const auto dout = grads[0].contiguous();
    const int64_t length = in.size(1), width = in.size(2) / 3;
    auto dqkv = at::empty_like(in);
    by_type(in, [&](auto element) {
      using T = decltype(element);
      each_head<T>(in, mask, saved[3], bias, context->saved_data["heads"].toInt(), context->saved_data["causal"].toBool(), context->saved_data["window"].toInt(), kept_dropout(context), lse,
                   [&](kernels::Attention<T> a, int64_t b) {
                     a.dout = data<T>(dout) + b * length * width;
                     a.dqkv = data<T>(dqkv) + 3 * b * length * width;
                     (a.window < 0 ? kernels::attention<T>().backward : kernels::attention<T>().window_backward)(a);
                   });
    });
    add_bias_gradient(bias, dqkv.view({-1, 3 * width}));
    return {dqkv, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }

  /// Runs f over every head of every sequence; each is the work of one thread.
  template <class T, class F>
  static void each_head(const Tensor& qkv, const Tensor& mask, const Tensor& global_mask, const Param& bias, int64_t heads, bool causal, int64_t window, const kernels::Dropout& drop,
                        const Tensor& lse, const F& f) {
    const int64_t length = qkv.size(1), width = qkv.size(2) / 3, head_width = width / heads;
    std::vector<std::vector<int64_t>> globals(static_cast<size_t>(qkv.size(0)));
    int64_t most_globals = 0;
    for (int64_t b = 0; global_mask.defined() && b < qkv.size(0); ++b) {
      auto& places = globals[static_cast<size_t>(b)];
      for (int64_t t = 0; t < length; ++t)
        if (global_mask.data_ptr<bool>()[b * length + t]) places.push_back(t);
      most_globals = std::max(most_globals, static_cast<int64_t>(places.size()));
    }
    at::parallel_for(0, qkv.size(0) * heads, 1, [&](int64_t begin, int64_t end) {
      auto scratch = at::empty({window < 0 ? kernels::attention_scratch(length, head_width) : kernels::window_scratch(length, head_width, window, most_globals)}, at::kFloat);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t b = item / heads;
        kernels::Attention<T> a{};
        a.length = length, a.width = width, a.head_width = head_width, a.head = item % heads, a.item = item;
        a.qkv = data<T>(qkv) + 3 * b * length * width;
        a.bias = bias.value().template data_ptr<float>();
        a.key_mask = mask.defined() ? mask.data_ptr<bool>() + b * length : nullptr;
        const auto& places = globals[static_cast<size_t>(b)];
        a.window = window, a.globals = places.data(), a.num_globals = static_cast<int64_t>(places.size()), a.most_globals = most_globals;
        a.causal = causal, a.drop = drop, a.scratch = scratch.template data_ptr<float>();
        a.lse = lse.data_ptr<float>() + item * length;
        f(a, b);
      }
    });
  }
};

}  // namespace

Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context, const Dropout& drop) {
  return AttentionFunction::apply(qkv, bias.value(), bias, heads, context, drop);
}

}  // namespace cloze::fused

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
      each_head<T>(in, mask, globals, bias, heads, facts, kernel_dropout(drop), lse, [&](kernels::Attention<T> a, int64_t b) {
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
    context->saved_data["dilation"] = facts.dilation;
    context->saved_data["dilated_heads"] = facts.dilated_heads;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &in = saved[0], &mask = saved[1], &lse = saved[2];
    const auto bias = kept(context, "bias");
    const auto dout = grads[0].contiguous();
    const int64_t length = in.size(1), width = in.size(2) / 3;
    auto dqkv = at::empty_like(in);
    const auto number = [&](const char* name) { return context->saved_data[name].toInt(); };
    const AttentionContext facts{.causal = context->saved_data["causal"].toBool(), .window = number("window"), .dilation = number("dilation"), .dilated_heads = number("dilated_heads")};
    by_type(in, [&](auto element) {
      using T = decltype(element);
      each_head<T>(in, mask, saved[3], bias, number("heads"), facts, kept_dropout(context), lse,
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
  static void each_head(const Tensor& qkv, const Tensor& mask, const Tensor& global_mask, const Param& bias, int64_t heads, const AttentionContext& facts, const kernels::Dropout& drop,
                        const Tensor& lse, const F& f) {
    const int64_t length = qkv.size(1), width = qkv.size(2) / 3, head_width = width / heads, window = facts.window;
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
        a.dilation = facts.dilated_heads == 0 || a.head < facts.dilated_heads ? facts.dilation : 1;
        a.causal = facts.causal, a.drop = drop, a.scratch = scratch.template data_ptr<float>();
        a.lse = lse.data_ptr<float>() + item * length;
        f(a, b);
      }
    });
  }
};

struct FavorFunction : Function<FavorFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& qkv, const Tensor&, const Param& bias, int64_t heads, const AttentionContext& facts, const RandomFeatures& features) {
    const auto in = qkv.contiguous();
    const auto mask = facts.key_mask.defined() ? facts.key_mask.contiguous() : Tensor();
    const int64_t width = in.size(2) / 3, head_width = width / heads, count = features.projection.size(0);
    const auto up = [](int64_t n) { return (n + 15) / 16 * 16 - n; };
    const auto w = features.projection.detach().to(at::kFloat) * std::pow(static_cast<double>(head_width), -0.25);
    const auto rows = at::constant_pad_nd(w, {0, up(head_width)}), columns = at::constant_pad_nd(w.t(), {0, up(count)}).contiguous();
    auto out = at::empty({in.size(0), in.size(1), width}, in.options());
    auto denominator = at::empty({in.size(0) * heads, in.size(1)}, at::kFloat);
    by_type(in, [&](auto element) {
      using T = decltype(element);
      each_head<T>(in, mask, bias, heads, facts.causal, features.kernel == "softmax", features.epsilon, count, rows, columns, out, denominator, [](const kernels::Favor<T>& a) { kernels::attention<T>().favor_forward(a); }, {}, {});
    });
    context->save_for_backward({in, mask, rows, columns, out, denominator});
    keep(context, "bias", bias);
    context->saved_data["heads"] = heads;
    context->saved_data["causal"] = facts.causal;
    context->saved_data["softmax"] = features.kernel == "softmax";
    context->saved_data["epsilon"] = features.epsilon;
    context->saved_data["features"] = count;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto& in = saved[0];
    const auto bias = kept(context, "bias");
    const auto dout = grads[0].contiguous();
    auto dqkv = at::empty_like(in);
    by_type(in, [&](auto element) {
      using T = decltype(element);
      each_head<T>(in, saved[1], bias, context->saved_data["heads"].toInt(), context->saved_data["causal"].toBool(), context->saved_data["softmax"].toBool(), context->saved_data["epsilon"].toDouble(),
                   context->saved_data["features"].toInt(), saved[2], saved[3], saved[4], saved[5], [](const kernels::Favor<T>& a) { kernels::attention<T>().favor_backward(a); }, dout, dqkv);
    });
    add_bias_gradient(bias, dqkv.view({-1, in.size(2)}));
    return {dqkv, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }

  template <class T, class F>
  static void each_head(const Tensor& qkv, const Tensor& mask, const Param& bias, int64_t heads, bool causal, bool softmax, double epsilon, int64_t features, const Tensor& w, const Tensor& w_t,
                        const Tensor& out, const Tensor& denominator, const F& f, const Tensor& dout, const Tensor& dqkv) {
    const int64_t length = qkv.size(1), width = qkv.size(2) / 3, head_width = width / heads;
    at::parallel_for(0, qkv.size(0) * heads, 1, [&](int64_t begin, int64_t end) {
      auto scratch = at::empty({kernels::favor_scratch(length, head_width, features)}, at::kFloat);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t b = item / heads, row = b * length * width;
        f(kernels::Favor<T>{.length = length, .width = width, .head_width = head_width, .head = item % heads, .qkv = data<T>(qkv) + 3 * row, .bias = bias.value().template data_ptr<float>(),
                            .key_mask = mask.defined() ? mask.data_ptr<bool>() + b * length : nullptr, .causal = causal, .softmax = softmax, .epsilon = static_cast<float>(epsilon), .features = features,
                            .w = w.data_ptr<float>(), .w_t = w_t.data_ptr<float>(), .out = data<T>(out) + row, .denominator = denominator.data_ptr<float>() + item * length,
                            .dout = dout.defined() ? data<T>(dout) + row : nullptr, .dqkv = dqkv.defined() ? data<T>(dqkv) + 3 * row : nullptr, .scratch = scratch.template data_ptr<float>()});
      }
    });
  }
};

}  // namespace

Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context, const RandomFeatures& features) {
  return FavorFunction::apply(qkv, bias.value(), bias, heads, context, features);
}

Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context, const Dropout& drop) {
  return AttentionFunction::apply(qkv, bias.value(), bias, heads, context, drop);
}

}  // namespace cloze::fused

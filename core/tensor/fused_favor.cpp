// Attention by random features, FAVOR+.
#include "core/kernels/attention.h"
#include "core/tensor/fused_support.h"

namespace cloze::fused {

namespace {

using kernels::HeadOut;
using kernels::HeadRows;

/// One pass over all heads; the last two tensors are of the backward pass.
struct FavorPass {
  Tensor qkv, mask;  ///< [B, T, 3 D], bool [B, T]
  Sequences rows;
  Param bias;
  int64_t heads;
  bool causal, softmax;
  double epsilon;
  int64_t features;
  Tensor w, w_t;  ///< the projection, as kernels::Favor has it
  Tensor out, denominator;
  Tensor dout{}, dqkv{};
};

struct FavorFunction : Function<FavorFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& qkv, const Tensor&, const Param& bias, int64_t heads,
                        const AttentionContext& facts, const RandomFeatures& features) {
    const auto in = qkv.contiguous();
    const auto mask = facts.key_mask.defined() ? facts.key_mask.contiguous() : Tensor();
    const int64_t width = in.size(2) / 3, head_width = width / heads, count = features.projection.size(0);
    const auto up = [](int64_t n) { return (n + 15) / 16 * 16 - n; };
    const auto w = features.projection.detach().to(at::kFloat) * std::pow(static_cast<double>(head_width), -0.25);
    const auto rows = at::constant_pad_nd(w, {0, up(head_width)}),
               columns = at::constant_pad_nd(w.t(), {0, up(count)}).contiguous();
    auto out = at::empty({in.size(0), in.size(1), width}, in.options());
    auto denominator = at::empty({in.size(0) * heads * in.size(1)}, at::kFloat);
    keep(context, facts.unpadded.get());
    by_type(in, [&](auto element) {
      using T = decltype(element);
      each_head<T>({.qkv = in,
                    .mask = mask,
                    .rows = kept_sequences(context, in),
                    .bias = bias,
                    .heads = heads,
                    .causal = facts.causal,
                    .softmax = features.kernel == FeatureKernel::softmax,
                    .epsilon = features.epsilon,
                    .features = count,
                    .w = rows,
                    .w_t = columns,
                    .out = out,
                    .denominator = denominator},
                   [](const kernels::Favor<T>& a) { kernels::attention<T>().favor_forward(a); });
    });
    context->save_for_backward({in, mask, rows, columns, out, denominator});
    keep(context, "bias", bias);
    context->saved_data["heads"] = heads;
    context->saved_data["causal"] = facts.causal;
    context->saved_data["softmax"] = features.kernel == FeatureKernel::softmax;
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
    auto& facts = context->saved_data;
    by_type(in, [&](auto element) {
      using T = decltype(element);
      each_head<T>({.qkv = in,
                    .mask = saved[1],
                    .rows = kept_sequences(context, in),
                    .bias = bias,
                    .heads = facts["heads"].toInt(),
                    .causal = facts["causal"].toBool(),
                    .softmax = facts["softmax"].toBool(),
                    .epsilon = facts["epsilon"].toDouble(),
                    .features = facts["features"].toInt(),
                    .w = saved[2],
                    .w_t = saved[3],
                    .out = saved[4],
                    .denominator = saved[5],
                    .dout = dout,
                    .dqkv = dqkv},
                   [](const kernels::Favor<T>& a) { kernels::attention<T>().favor_backward(a); });
    });
    if (bias.defined()) add_bias_gradient(bias, dqkv.view({-1, in.size(2)}));
    return {dqkv, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }

  /// Runs f(head) over every head of every sequence, each on one thread.
  template <class T, class F>
  static void each_head(const FavorPass& pass, const F& f) {
    const auto& [qkv, mask, rows, bias, heads, causal, softmax, epsilon, features, w, w_t, out, denominator, dout,
                 dqkv] = pass;
    const int64_t width = qkv.size(2) / 3, head_width = width / heads;
    each_head_of(rows.count * heads, rows.queries, features, head_width, [&](int64_t item) {
      const int64_t b = item / heads, head = item % heads, column = head * head_width;
      const int64_t first = rows.first(b), length = rows.length(b);
      auto scratch = at::empty({kernels::favor_scratch(length, head_width, features)}, at::kFloat);
      const auto rows_at = [&](int64_t part) {
        return HeadRows<T>{data<T>(qkv) + 3 * first * width + part * width + column, 3 * width,
                           bias.defined() ? bias.value().template data_ptr<float>() + part * width + column : nullptr};
      };
      const auto out_at = [&](int64_t part) {
        return HeadOut<T>{dqkv.defined() ? data<T>(dqkv) + 3 * first * width + part * width + column : nullptr,
                          3 * width};
      };
      f(kernels::Favor<T>{.length = length,
                          .head_width = head_width,
                          .q = rows_at(0),
                          .k = rows_at(1),
                          .v = rows_at(2),
                          .key_mask = mask.defined() ? mask.data_ptr<bool>() + first : nullptr,
                          .causal = causal,
                          .softmax = softmax,
                          .epsilon = static_cast<float>(epsilon),
                          .features = features,
                          .w = w.data_ptr<float>(),
                          .w_t = w_t.data_ptr<float>(),
                          .out = {data<T>(out) + first * width + column, width},
                          .denominator = denominator.data_ptr<float>() + first * heads + head * length,
                          .dout = {dout.defined() ? data<T>(dout) + first * width + column : nullptr, width, nullptr},
                          .dq = out_at(0),
                          .dk = out_at(1),
                          .dv = out_at(2),
                          .scratch = scratch.template data_ptr<float>()});
    });
  }
};

}  // namespace

Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                       const RandomFeatures& features) {
  return FavorFunction::apply(qkv, or_empty(bias), bias, heads, context, features);
}

}  // namespace cloze::fused

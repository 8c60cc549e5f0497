#include <algorithm>

#include "core/kernels/attention.h"
#include "core/tensor/fused_support.h"

namespace cloze::fused {

namespace {

using kernels::HeadOut;
using kernels::HeadRows;

/// The inverse of or_empty.
Tensor or_undefined(const Tensor& x) { return x.dim() > 1 ? x : Tensor(); }

/// The tensors that forward and backward pass read, dense.
struct Saved {
  Tensor q, kv;  ///< queries, keys and values in one (q [B, T, 3D], kv undefined), or q [B, T, D], kv [B, S, 2D]
  Tensor mask, globals;  ///< bool [B, S], true = a real token; true = a global one; undefined: all; none
  Tensor bias{};         ///< fp32 [H, T + S - 1 + padding], of distances; undefined: none
  Tensor lse{};          ///< fp32, of the heads of each sequence in turn
  Tensor prefix;         ///< int64 [B]; undefined: none

  variable_list list() const { return {q, kv, mask, globals, bias, lse, prefix}; }
  static Saved of(AutogradContext* context) {
    const auto all = context->get_saved_variables();
    return {all[0], all[1], all[2], all[3], all[4], all[5], all[6]};
  }
};

/// The global tokens of each sequence, ascending.
std::vector<std::vector<int64_t>> global_positions(const Tensor& globals, int64_t rows, int64_t keys) {
  std::vector<std::vector<int64_t>> positions(static_cast<size_t>(rows));
  for (int64_t b = 0; globals.defined() && b < rows; ++b)
    for (int64_t t = 0; t < keys; ++t)
      if (globals.data_ptr<bool>()[b * keys + t]) positions[static_cast<size_t>(b)].push_back(t);
  return positions;
}

struct AttentionFunction : Function<AttentionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& queries, const Tensor& sources, const Tensor& distance,
                        const Tensor&, const Param& q_bias, const Param& kv_bias, int64_t heads,
                        const AttentionContext& facts, const Dropout& drop) {
    const auto dense = [](const Tensor& x) { return x.defined() ? x.contiguous() : Tensor(); };
    Saved saved{.q = queries.contiguous(),
                .kv = dense(or_undefined(sources)),
                .mask = dense(facts.key_mask),
                .globals = facts.window >= 0 ? dense(facts.global_mask) : Tensor(),
                .prefix = facts.causal ? dense(facts.prefix) : Tensor()};
    const auto& q = saved.q;
    const int64_t width = saved.kv.defined() ? q.size(2) : q.size(2) / 3;
    if (or_undefined(distance).defined())
      saved.bias = at::constant_pad_nd(distance.detach().to(at::kFloat), {0, 129}).contiguous();
    auto out = at::empty({q.size(0), q.size(1), width}, q.options());
    saved.lse = at::empty({q.size(0) * heads * q.size(1)}, at::kFloat);
    context->save_for_backward(saved.list());
    keep(context, "q_bias", q_bias);
    keep(context, "kv_bias", kv_bias);
    keep(context, drop);
    auto& kept_data = context->saved_data;
    kept_data["heads"] = heads;
    kept_data["causal"] = facts.causal;
    kept_data["scale"] = facts.scale;
    kept_data["window"] = facts.window;
    kept_data["dilation"] = facts.dilation;
    kept_data["dilated_heads"] = facts.dilated_heads;
    keep(context, facts.unpadded.get());
    by_type(q, [&](auto element) {
      using T = decltype(element);
      each_head<T>(context, saved, q_bias, kv_bias, kernel_dropout(drop),
                   [&](kernels::Attention<T> a, const HeadOffsets& at) {
                     a.out = {data<T>(out) + at.query * width + at.column, width};
                     (a.window < 0 ? kernels::attention<T>().forward : kernels::attention<T>().window_forward)(a);
                   });
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = Saved::of(context);
    const auto &q = saved.q, &kv = saved.kv, &bias = saved.bias;
    const auto q_bias = kept(context, "q_bias"), kv_bias = kept(context, "kv_bias");
    const auto dout = grads[0].contiguous();
    const int64_t width = dout.size(2), heads = context->saved_data["heads"].toInt();
    const auto rows = kept_sequences(context, q, kv);
    auto dq = at::empty_like(q), dkv = kv.defined() ? at::empty_like(kv) : Tensor();
    auto dbias = bias.defined() ? at::zeros({rows.count, heads, bias.size(1)}, at::kFloat)
                                : Tensor();  // of each sequence, since heads of one sequence run in parallel
    by_type(q, [&](auto element) {
      using T = decltype(element);
      each_head<T>(context, saved, q_bias, kv_bias, kept_dropout(context),
                   [&](kernels::Attention<T> a, const HeadOffsets& at) {
                     const int64_t query = at.query * width + at.column;
                     a.dout = {data<T>(dout) + query, width, nullptr};
                     if (kv.defined()) {
                       T* key = data<T>(dkv) + 2 * at.key * width + at.column;
                       a.dq = {data<T>(dq) + query, width};
                       a.dk = {key, 2 * width};
                       a.dv = {key + width, 2 * width};
                     } else {
                       T* first = data<T>(dq) + 3 * at.query * width + at.column;
                       a.dq = {first, 3 * width};
                       a.dk = {first + width, 3 * width};
                       a.dv = {first + 2 * width, 3 * width};
                     }
                     if (bias.defined()) a.ddistance = dbias.data_ptr<float>() + at.head * bias.size(1) + at.shorter;
                     (a.window < 0 ? kernels::attention<T>().backward : kernels::attention<T>().window_backward)(a);
                   });
    });
    if (q_bias.defined()) add_bias_gradient(q_bias, dq.view({-1, dq.size(2)}));
    if (kv_bias.defined()) add_bias_gradient(kv_bias, dkv.view({-1, 2 * width}));
    const auto ddistance = bias.defined() ? dbias.sum(0).slice(1, 0, rows.queries + rows.keys - 1) : Tensor();
    return {dq, dkv, ddistance, Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }

  /// Where the numbers of a head of a sequence begin.
  struct HeadOffsets {
    int64_t head;        // b H + h
    int64_t query, key;  // its first token, of all queries and of all keys
    int64_t column;      // of its first number in a token
    int64_t shorter;     // tokens that the sequence has fewer than the longest
  };

  /// What all heads have in common.
  template <class T>
  static kernels::Attention<T> common_of(AutogradContext* context, int64_t head_width, const kernels::Dropout& drop) {
    auto& facts = context->saved_data;
    const double scale = facts["scale"].toDouble();
    kernels::Attention<T> a{};
    a.head_width = head_width;
    a.scale = static_cast<float>(scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(head_width)));
    a.window = facts["window"].toInt();
    a.causal = facts["causal"].toBool();
    a.drop = drop;
    return a;
  }

  /// The queries, keys and values of a head, with its part of their biases.
  template <class T>
  static void set_inputs(kernels::Attention<T>& a, const Saved& saved, const Param& q_bias, const Param& kv_bias,
                         int64_t width, const HeadOffsets& at) {
    const auto bias_at = [&](const Param& p, int64_t part) {
      return p.defined() ? p.value().template data_ptr<float>() + part * width + at.column : nullptr;
    };
    if (saved.kv.defined()) {
      const T* key = data<T>(saved.kv) + 2 * at.key * width + at.column;
      a.q = {data<T>(saved.q) + at.query * width + at.column, width, bias_at(q_bias, 0)};
      a.k = {key, 2 * width, bias_at(kv_bias, 0)};
      a.v = {key + width, 2 * width, bias_at(kv_bias, 1)};
    } else {
      const T* first = data<T>(saved.q) + 3 * at.query * width + at.column;
      a.q = {first, 3 * width, bias_at(q_bias, 0)};
      a.k = {first + width, 3 * width, bias_at(q_bias, 1)};
      a.v = {first + 2 * width, 3 * width, bias_at(q_bias, 2)};
    }
  }

  /// Runs f(head, offsets) over every head of every sequence, each on one thread.
  template <class T, class F>
  static void each_head(AutogradContext* context, const Saved& saved, const Param& q_bias, const Param& kv_bias,
                        const kernels::Dropout& drop, const F& f) {
    const auto& [q, kv, mask, global_mask, bias, lse, prefix] = saved;
    auto& facts = context->saved_data;
    const int64_t heads = facts["heads"].toInt(), dilation = facts["dilation"].toInt(),
                  dilated_heads = facts["dilated_heads"].toInt();
    const int64_t width = kv.defined() ? q.size(2) : q.size(2) / 3, head_width = width / heads;
    const auto rows = kept_sequences(context, q, kv);
    const auto common = common_of<T>(context, head_width, drop);
    const int64_t window = common.window;
    const auto globals = global_positions(global_mask, rows.count, rows.keys);
    int64_t max_globals = 0;
    for (const auto& positions : globals) max_globals = std::max(max_globals, static_cast<int64_t>(positions.size()));
    const int64_t visible = window < 0 ? rows.keys : std::min(rows.keys, 2 * window + 1);
    each_head_of(rows.count * heads, rows.queries, visible, head_width, [&](int64_t item) {
      const int64_t b = item / heads, head = item % heads;
      auto a = common;
      a.queries = rows.length(b);
      a.keys = rows.are_unpadded() ? a.queries : rows.keys;
      const HeadOffsets at{.head = item,
                           .query = rows.first(b),
                           .key = rows.are_unpadded() ? rows.first(b) : b * rows.keys,
                           .column = head * head_width,
                           .shorter = rows.queries - a.queries};
      // Unpadded rows have the masks that they have with padding, so that all forms drop the same.
      a.mask_row = item * rows.queries;
      if (window < 0) a.drop.width = rows.keys;
      auto scratch = at::empty({window < 0 ? kernels::attention_scratch(a.keys, head_width)
                                           : kernels::window_scratch(a.keys, head_width, window, max_globals)},
                               at::kFloat);
      set_inputs(a, saved, q_bias, kv_bias, width, at);
      a.key_mask = mask.defined() ? mask.data_ptr<bool>() + at.key : nullptr;
      a.distance = bias.defined() ? bias.data_ptr<float>() + head * bias.size(1) + at.shorter : nullptr;
      const auto& positions = globals[static_cast<size_t>(b)];
      const auto real = std::ranges::lower_bound(positions, a.keys) - positions.begin();  // others are of padding
      a.globals = positions.data();
      a.num_globals = real;
      a.max_globals = max_globals;
      a.dilation = dilated_heads == 0 || head < dilated_heads ? dilation : 1;
      a.prefix = prefix.defined() ? prefix.data_ptr<int64_t>()[b] : 0;
      a.scratch = scratch.template data_ptr<float>();
      a.lse = lse.data_ptr<float>() + at.query * heads + head * a.queries;
      f(a, at);
    });
  }
};

}  // namespace

Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop) {
  return AttentionFunction::apply(qkv, or_empty(Tensor()), or_empty(context.distance_bias), or_empty(bias), bias,
                                  Param(), heads, context, drop);
}

Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop) {
  return AttentionFunction::apply(q, kv, or_empty(context.distance_bias), or_empty(q_bias), q_bias, kv_bias, heads,
                                  context, drop);
}

}  // namespace cloze::fused

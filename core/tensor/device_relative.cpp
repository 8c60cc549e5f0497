// Attention with relative positions on a GPU. XLNet's is LibTorch's memory-efficient kernel, to whose scores of content
// numbers are added: of these the products with distances are LibTorch's, and all others our kernels'.
#include "core/error.h"
#include "core/tensor/device_support.h"
#include "core/tensor/plain.h"

namespace cloze::device {

namespace {

/// As Relative of kernels.cu.
struct Relative {
  int64_t rows, queries, keys, heads, head_width, products, distances;
  float scale, hidden;
  const void *q, *r_s, *segments, *offset, *list, *differ, *visible;
};

/// What relative attention reads in both passes.
struct Terms {
  Tensor q, kv, r;                                  // [B, N, D], [B, S, 2 D], [L, R, D]
  Tensor distance_offset, list, differ, visible{};  // as of RelativeTerms; `visible` is read in the first alone
  Param r_w, r_r, r_s, segments;
  int64_t heads;

  /// As of the forward pass.
  static Terms kept_by(AutogradContext* context) {
    const auto saved = context->get_saved_variables();
    return {.q = saved[0],
            .kv = saved[1],
            .r = saved[2],
            .distance_offset = saved[3],
            .list = saved[4],
            .differ = saved[5],
            .r_w = kept(context, "r_w"),
            .r_r = kept(context, "r_r"),
            .r_s = kept(context, "r_s"),
            .segments = kept(context, "segments"),
            .heads = context->saved_data["heads"].toInt()};
  }

  int64_t head_width() const { return q.size(2) / heads; }
  Relative of_kernels() const {
    return {q.size(0) * q.size(1),
            q.size(1),
            kv.size(1),
            heads,
            head_width(),
            r.size(0) * r.size(1),
            r.size(1),
            static_cast<float>(scale()),
            static_cast<float>(hidden_score),
            data(q),
            data(r_s),
            data(segments),
            data(distance_offset),
            data(list),
            data(differ),
            data(visible)};
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(head_width())); }
  Tensor by_heads(const Tensor& x) const { return x.unflatten(-1, {heads, head_width()}); }
  /// Rows [R, D] of all sequences, or of all lists, by heads: [H, R, C].
  Tensor rows_by_heads(const Tensor& x) const { return by_heads(x.flatten(0, 1)).transpose(0, 1); }
  std::vector<Tensor> keys_and_values() const {
    return kv.unflatten(-1, {2, heads, head_width()}).unbind(2);  // [B, S, H, C]
  }
};

/// What is given to LibTorch's kernel.
struct Scored {
  Tensor of_content, of_distances;  // queries for them, [B, N, D]
  Tensor added{};                   // to the scores of content, [B, H, N, S]
  Tensor without_keys{};            // bool [B, N, 1, 1], true = a query that sees no key; undefined: all see some
};
Scored scored(const Terms& terms) {
  const auto& q = terms.q;
  const auto shape = terms.of_kernels();
  const int64_t width = q.size(2), stride = aligned_keys(shape.keys);
  Scored made{.of_content = at::empty_like(q), .of_distances = at::empty_like(q)};
  run(q, "relative_queries", shape.rows * tiles_of(width), shape.rows, width, data(q), data(terms.r_w), data(terms.r_r),
      data(made.of_content), data(made.of_distances));
  const auto products = at::bmm(terms.rows_by_heads(made.of_distances), terms.rows_by_heads(terms.r).transpose(1, 2));
  const auto padded = at::empty({q.size(0), shape.heads, shape.queries, stride}, q.options());
  if (terms.visible.defined())
    made.without_keys = at::empty({q.size(0), shape.queries, 1, 1}, q.options().dtype(at::kBool));
  run(q, "relative_scores", shape.rows * shape.heads, shape, data(products), stride, data(padded),
      data(made.without_keys));
  made.added = padded.narrow(-1, 0, shape.keys);
  return made;
}

struct DeviceRelative : Function<DeviceRelative> {
  static Tensor forward(AutogradContext* context, const Tensor& queries, const Tensor& sources, const Tensor& distances,
                        const Tensor&, int64_t heads, const RelativeTerms& bias_terms, const Dropout& drop) {
    const auto dense = [](const Tensor& x) { return x.defined() ? x.contiguous() : Tensor(); };
    const Terms terms{queries.contiguous(),
                      sources.contiguous(),
                      distances.contiguous(),
                      dense(bias_terms.distance_offset),
                      dense(bias_terms.distance_list),
                      dense(bias_terms.segments_differ),
                      dense(bias_terms.visible),
                      bias_terms.r_w,
                      bias_terms.r_r,
                      bias_terms.r_s,
                      bias_terms.segments,
                      heads};
    const auto made = scored(terms);
    const auto kv = terms.keys_and_values();
    const double p = drop.on() ? drop.p : 0;
    if (drop.on()) draw_from(drop, queries.device());
    const auto mixed = at::_efficient_attention_forward(
        terms.by_heads(made.of_content), kv[0], kv[1], made.added, {}, {}, queries.size(1), sources.size(1), p,
        /*custom_mask_type=*/0, /*compute_log_sumexp=*/true, terms.scale());
    const auto& out = std::get<0>(mixed);
    if (made.without_keys.defined()) out.masked_fill_(made.without_keys, 0.0);
    context->save_for_backward({terms.q, terms.kv, terms.r, terms.distance_offset, terms.list, terms.differ,
                                made.of_content, made.of_distances, made.added, made.without_keys, out,
                                std::get<1>(mixed), std::get<2>(mixed), std::get<3>(mixed)});
    keep(context, "r_w", terms.r_w);
    keep(context, "r_r", terms.r_r);
    keep(context, "r_s", terms.r_s);
    keep(context, "segments", terms.segments);
    context->saved_data["heads"] = heads;
    context->saved_data["p"] = p;
    return out.flatten(2);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto terms = Terms::kept_by(context);
    const auto saved = context->get_saved_variables();
    const Scored made{saved[6], saved[7], saved[8], saved[9]};
    const auto &out = saved[10], &sums = saved[11], &seed = saved[12], &offset = saved[13];
    auto grad = terms.by_heads(grads[0].contiguous());
    if (made.without_keys.defined()) grad = grad.masked_fill(made.without_keys, 0.0);
    const auto kv = terms.keys_and_values();
    const auto gradients = at::_efficient_attention_backward(
        grad, terms.by_heads(made.of_content), kv[0], kv[1], made.added, out, {}, {}, terms.q.size(1), terms.kv.size(1),
        sums, context->saved_data["p"].toDouble(), seed, offset, /*custom_mask_type=*/0,
        /*bias_requires_grad=*/true, terms.scale(), /*num_splits_key=*/1);
    const auto [dq, dr] = gradients_of(terms, made.of_distances, std::get<0>(gradients), std::get<3>(gradients));
    const auto dkv = joined({std::get<1>(gradients), std::get<2>(gradients)}, {}).view(terms.kv.sizes());
    return {dq, dkv, dr, Tensor(), Tensor(), Tensor(), Tensor()};
  }

  /// The gradients of q and r, and those of parameters, from those of the queries for content and of added scores.
  static std::pair<Tensor, Tensor> gradients_of(const Terms& terms, const Tensor& of_distances, Tensor of_content,
                                                const Tensor& of_added) {
    const auto shape = terms.of_kernels();
    const auto &q = terms.q, &r = terms.r;
    const int64_t width = q.size(2), chunks = chunks_of(shape.rows);
    const bool has_rows = of_added.stride(3) == 1 && of_added.stride(1) == shape.queries * of_added.stride(2) &&
                          of_added.stride(0) == shape.heads * of_added.stride(1);
    const auto scores = has_rows ? of_added : of_added.contiguous();
    const auto of_products = at::empty({shape.heads, shape.rows, shape.products}, q.options());
    const auto of_segments = at::empty({shape.rows, shape.heads, 2}, q.options().dtype(at::kFloat));
    run(q, "relative_scores_backward", shape.rows * shape.heads, shape, data(scores), scores.stride(2),
        data(of_products), data(of_segments));
    const auto of_queries = at::bmm(of_products, terms.rows_by_heads(r));
    const auto dr = at::empty_like(r), dq = at::empty_like(q);
    auto by_heads = terms.rows_by_heads(dr);
    at::bmm_out(by_heads, of_products.transpose(1, 2), terms.rows_by_heads(of_distances));
    const auto partial = partial_sums(q, chunks, 3, width), of_kinds = partial_sums(q, chunks, 1, 2 * width);
    run(q, "relative_queries_backward", chunks * tiles_of(width), shape, chunks, rows_of(of_content), data(of_queries),
        data(of_segments), data(dq), data(partial), data(of_kinds));
    add_sums(partial, terms.r_w, terms.r_r, terms.r_s);
    add_sums(of_kinds, terms.segments);
    return {dq, dr};
  }
};

/// x [B, H, T, 2 k + 1] at the distances of all pairs, added to `scores` if they are defined: [B, H, T, T].
Tensor gathered(const Tensor& scores, const Tensor& x, int64_t length) {
  const int64_t rows = x.numel() / x.size(-1), reach = x.size(-1) / 2;
  const auto out = at::empty({x.size(0), x.size(1), length, length}, x.options());
  run(x, "gather_distances", rows, rows, length, reach, data(scores), data(x), data(out));
  return out;
}
Tensor summed(const Tensor& x, int64_t reach) {
  const int64_t length = x.size(-1), rows = x.numel() / length;
  const auto out = at::empty({x.size(0), x.size(1), length, 2 * reach + 1}, x.options());
  run(x, "sum_distances", rows, rows, length, reach, data(x), data(out));
  return out;
}

struct DeviceAddByDistance : Function<DeviceAddByDistance> {
  static Tensor forward(AutogradContext* context, const Tensor& scores, const Tensor& by_distance) {
    context->saved_data["reach"] = by_distance.size(-1) / 2;
    return gathered(scores.contiguous(), by_distance.contiguous(), scores.size(-1));
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    return {grads[0], summed(grads[0].contiguous(), context->saved_data["reach"].toInt())};
  }
};
struct DeviceSumByDistance : Function<DeviceSumByDistance> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t reach) { return summed(x.contiguous(), reach); }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {gathered(Tensor(), grads[0].contiguous(), grads[0].size(2)), Tensor()};
  }
};

}  // namespace

Tensor add_by_distance(const Tensor& scores, const Tensor& by_distance) {
  return DeviceAddByDistance::apply(scores, by_distance);
}
Tensor sum_by_distance(const Tensor& x, int64_t reach) { return DeviceSumByDistance::apply(x, reach); }

Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop) {
  if (goes_by_scores(q.size(-1), heads, drop)) return plain::relative_attention(q, kv, r, heads, terms, drop);
  require<ShapeError>(terms.distance_offset.defined() || q.size(1) + kv.size(1) <= r.size(1),
                      "a query needs a distance outside the list of ", r.size(1));
  return DeviceRelative::apply(q, kv, r, leaf_of({terms.r_w, terms.r_r, terms.r_s, terms.segments}), heads, terms,
                               drop);
}

}  // namespace cloze::device

#include <algorithm>

#include "core/error.h"
#include "core/kernels/attention.h"
#include "core/tensor/fused_support.h"

namespace cloze::fused {

namespace {

struct RelativeFunction : Function<RelativeFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& queries, const Tensor& sources, const Tensor& distances,
                        const Tensor&, int64_t heads, const RelativeTerms& terms, const Dropout& drop) {
    const auto dense = [](const Tensor& x) { return x.defined() ? x.contiguous() : Tensor(); };
    const auto q = queries.contiguous(), kv = sources.contiguous(), r = distances.contiguous();
    const auto distance_offset = dense(terms.distance_offset), segments_differ = dense(terms.segments_differ),
               visible = dense(terms.visible), list = dense(terms.distance_list);
    // The kernels do not check bounds.
    const int64_t keys = kv.size(1), last = r.size(1) - keys;
    const std::vector<int64_t> pairs{q.size(0), q.size(1), keys};
    require<ShapeError>((!segments_differ.defined() || segments_differ.sizes() == pairs) &&
                            (!visible.defined() || visible.sizes() == pairs),
                        "masks of query-key pairs need a row for each query and a column for each key");
    require<ShapeError>(
        list.defined() ? list.numel() == q.size(0) && (list.numel() == 0 || (list.min().item<int64_t>() >= 0 &&
                                                                             list.max().item<int64_t>() < r.size(0)))
                       : r.size(0) == 1,
        "distance_list has an index outside the ", r.size(0), " lists of distances");
    require<ShapeError>(distance_offset.defined()
                            ? distance_offset.numel() == 0 || (distance_offset.min().item<int64_t>() >= 0 &&
                                                               distance_offset.max().item<int64_t>() <= last)
                            : q.size(1) <= last,
                        "a query needs a distance outside the list of ", r.size(1));
    auto out = at::empty_like(q), lse = at::empty({q.size(0) * heads, q.size(1)}, at::kFloat);
    context->save_for_backward({q, kv, r, distance_offset, segments_differ, visible, lse, list});
    keep(context, "r_w", terms.r_w);
    keep(context, "r_r", terms.r_r);
    keep(context, "r_s", terms.r_s);
    keep(context, "segments", terms.segments);
    keep(context, drop);
    context->saved_data["heads"] = heads;
    by_type(q, [&](auto element) {
      using T = decltype(element);
      each_head<T>(context, {q, kv, r, distance_offset, segments_differ, visible, lse, list}, kernel_dropout(drop),
                   [&](kernels::Attention<T>& a, kernels::Relative<T>&, int64_t b, int64_t column) {
                     a.out = {data<T>(out) + b * a.queries * a.q.stride + column, a.q.stride};
                     kernels::attention<T>().forward(a);
                   });
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &q = saved[0], &kv = saved[1], &r = saved[2];
    const auto dout = grads[0].contiguous();
    const int64_t heads = context->saved_data["heads"].toInt(), width = q.size(2), keys = kv.size(1), c = width / heads,
                  padded = kernels::relative_width(c), distance_rows = kernels::relative_rows(r.size(1));
    auto dq = at::empty_like(q), dkv = at::empty_like(kv);
    const auto& which = saved[7];
    const int64_t rows = q.size(0), group = group_size(which, rows, heads), groups = (rows + group - 1) / group;
    auto dr = at::zeros({groups, heads, distance_rows, padded}, at::kFloat),
         small =
             at::zeros({groups, heads, 5, padded}, at::kFloat);  // of each group, so that sums do not depend on threads
    by_type(q, [&](auto element) {
      using T = decltype(element);
      each_head<T>(context, saved, kept_dropout(context),
                   [&](kernels::Attention<T>& a, kernels::Relative<T>& x, int64_t b, int64_t column) {
                     T* at = data<T>(dkv) + 2 * b * keys * width + column;
                     a.dout = {data<T>(dout) + b * a.queries * width + column, width, nullptr};
                     a.dq = {data<T>(dq) + b * a.queries * width + column, width};
                     a.dk = {at, 2 * width};
                     a.dv = {at + width, 2 * width};
                     const int64_t sum = b / group * heads + column / c;
                     float* sums = small.data_ptr<float>() + sum * 5 * padded;
                     x.dr = dr.data_ptr<float>() + sum * distance_rows * padded;
                     x.dr_w = sums;
                     x.dr_r = sums + padded;
                     x.dr_s = sums + 2 * padded;
                     x.dsegments = sums + 3 * padded;
                     kernels::attention<T>().backward(a);
                   });
    });
    const auto sums = small.sum(0).narrow(-1, 0, c);  // [H, 5, C]
    int64_t part = 0;
    for (const char* name : {"r_w", "r_r", "r_s"}) add_gradient(kept(context, name), sums.select(1, part++));
    add_gradient(kept(context, "segments"), sums.narrow(1, 3, 2).transpose(0, 1));
    dr = which.defined() ? at::zeros({r.size(0), heads, distance_rows, padded}, at::kFloat).index_add_(0, which, dr)
                         : dr.sum(0, /*keepdim=*/true);
    const auto ddistances =
        dr.narrow(2, 0, r.size(1)).narrow(3, 0, c).permute({0, 2, 1, 3}).reshape(r.sizes()).to(r.scalar_type());
    return {dq, dkv, ddistances, Tensor(), Tensor(), Tensor(), Tensor()};
  }

  /// Number of batch rows that one thread processes in turn, so that the gradients of a shared list of distances are
  /// summed on the way. Leaves at least 32 such groups if the batch has that many heads in total.
  static int64_t group_size(const Tensor& list, int64_t rows, int64_t heads) {
    return list.defined() ? 1 : std::clamp<int64_t>(rows * heads / 32, 1, std::max<int64_t>(rows, 1));
  }

  /// The parameters of the position and segment terms.
  struct TermParams {
    Param r_w, r_r, r_s, segments;
    static TermParams of(AutogradContext* context) {
      return {kept(context, "r_w"), kept(context, "r_r"), kept(context, "r_s"), kept(context, "segments")};
    }
  };

  /// The first number of a head in a parameter.
  static float* at_column(const Param& p, int64_t column) { return p.value().data_ptr<float>() + column; }

  /// The position and segment terms of batch row b for the head whose first column is this.
  template <class T>
  static kernels::Relative<T> terms_of(const variable_list& saved, const TermParams& p, int64_t b, int64_t column) {
    const auto &q = saved[0], &r = saved[2], &distance_offset = saved[3], &list = saved[7];
    const int64_t queries = q.size(1), keys = saved[1].size(1), width = q.size(2), distances = r.size(1);
    const auto list_of = [&](int64_t row) { return list.defined() ? list.data_ptr<int64_t>()[row] : 0; };
    const auto pairs = [&](const Tensor& x) { return x.defined() ? x.data_ptr<bool>() + b * queries * keys : nullptr; };
    kernels::Relative<T> x{};
    x.r = {data<T>(r) + list_of(b) * distances * width + column, width, nullptr};
    x.distances = distances;
    x.prepared = b > 0 && list_of(b) == list_of(b - 1);
    x.distance_offset = distance_offset.defined() ? distance_offset.data_ptr<int64_t>() + b * queries : nullptr;
    x.segments_differ = pairs(saved[4]);
    x.visible = pairs(saved[5]);
    x.r_r = at_column(p.r_r, column);
    x.r_s = at_column(p.r_s, column);
    x.segments = at_column(p.segments, column);
    x.segment_stride = width;
    return x;
  }

  /// The queries, keys and values of batch row b for a head.
  template <class T>
  static kernels::Attention<T> attention_of(const variable_list& saved, const Param& r_w, int64_t heads, int64_t b,
                                            int64_t head) {
    const auto &q = saved[0], &kv = saved[1];
    const int64_t width = q.size(2), c = width / heads, column = head * c, item = b * heads + head;
    kernels::Attention<T> a{};
    a.queries = q.size(1);
    a.keys = kv.size(1);
    a.head_width = c;
    a.mask_row = item * a.queries;
    a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c)));
    a.window = -1;
    a.dilation = 1;
    const T* at = data<T>(kv) + 2 * b * a.keys * width + column;
    a.q = {data<T>(q) + b * a.queries * width + column, width, at_column(r_w, column)};
    a.k = {at, 2 * width, nullptr};
    a.v = {at + width, 2 * width, nullptr};
    a.lse = saved[6].data_ptr<float>() + item * a.queries;
    return a;
  }

  /// Runs f(head, its relative terms, batch row, first column) over every head of every sequence.
  /// The rows of one head are processed in turn, so that a shared list of distances is copied once.
  template <class T, class F>
  static void each_head(AutogradContext* context, const variable_list& saved, const kernels::Dropout& drop,
                        const F& f) {
    const auto &q = saved[0], &kv = saved[1], &r = saved[2];
    const int64_t heads = context->saved_data["heads"].toInt(), rows = q.size(0), c = q.size(2) / heads;
    const auto params = TermParams::of(context);
    const int64_t group = group_size(saved[7], rows, heads), groups = (rows + group - 1) / group;
    each_range(groups * heads, std::max<int64_t>(1, groups * heads / 32), [&](int64_t begin, int64_t end) {
      auto scratch = at::empty({kernels::attention_scratch(kv.size(1), c)}, at::kFloat),
           relative_scratch = at::empty({kernels::relative_scratch(r.size(1), c)}, at::kFloat);
      const int64_t first = begin / groups * rows + begin % groups * group,
                    last = end / groups * rows + end % groups * group;
      for (int64_t n = first; n < last; ++n) {
        const int64_t b = n % rows, head = n / rows, column = head * c;
        auto x = terms_of<T>(saved, params, b, column);
        x.prepared = n > first && x.prepared;
        x.scratch = relative_scratch.template data_ptr<float>();
        auto a = attention_of<T>(saved, params.r_w, heads, b, head);
        a.relative = &x;
        a.drop = drop;
        a.scratch = scratch.template data_ptr<float>();
        f(a, x, b, column);
      }
    });
  }
};

}  // namespace

Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop) {
  return RelativeFunction::apply(q, kv, r, leaf_of({terms.r_w, terms.r_r, terms.r_s, terms.segments}), heads, terms,
                                 drop);
}

}  // namespace cloze::fused

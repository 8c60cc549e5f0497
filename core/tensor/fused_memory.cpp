#include "core/tensor/fused_support.h"

namespace cloze::fused {

namespace {

struct MemoryCellFunction : Function<MemoryCellFunction> {
  static variable_list forward(AutogradContext* context, const Tensor& gates, const Tensor& cell) {
    const auto sums = gates.contiguous(), before = cell.contiguous();
    context->save_for_backward({sums, before});
    auto output = at::empty(before.sizes(), sums.options()), next = at::empty_like(before);
    each_row_range(sums, before, [&](auto work, int64_t at) {
      using T = typename decltype(work)::Element;
      work.output = data<T>(output) + at;
      work.next = data<float>(next) + at;
      kernels::typed<T>().memory_cell_forward(work);
    });
    return {output, next};
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &sums = saved[0], &before = saved[1];
    const auto doutput = grads[0].contiguous(), dnext = grads[1].contiguous();
    auto dgates = at::empty_like(sums), dcell = at::empty_like(before);
    each_row_range(sums, before, [&](auto work, int64_t at) {
      using T = typename decltype(work)::Element;
      work.doutput = data<T>(doutput) + at;
      work.dnext = data<float>(dnext) + at;
      work.dgates = data<T>(dgates) + 4 * at;
      work.dcell = data<float>(dcell) + at;
      kernels::typed<T>().memory_cell_backward(work);
    });
    return {dgates, dcell};
  }

 private:
  /// Calls f(work, at) for ranges of rows, with their inputs and the index of their first unit.
  template <class F>
  static void each_row_range(const Tensor& sums, const Tensor& before, const F& f) {
    by_type(sums, [&](auto element) {
      using T = decltype(element);
      const int64_t width = before.size(1);
      parallel_rows(before.size(0), width, [&](int64_t begin, int64_t end) {
        const int64_t at = begin * width;
        f(
            kernels::MemoryCell<T>{
                .rows = end - begin, .width = width, .gates = data<T>(sums) + 4 * at, .cell = data<float>(before) + at},
            at);
      });
    });
  }
};

}  // namespace

MemoryState memory_cell(const Tensor& gates, const Tensor& cell) {
  const auto states = MemoryCellFunction::apply(gates, cell);
  return {states[0], states[1]};
}

}  // namespace cloze::fused

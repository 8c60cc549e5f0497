#include "core/tensor/device_support.h"

namespace cloze::device {

namespace {

struct DeviceMemoryCell : Function<DeviceMemoryCell> {
  static variable_list forward(AutogradContext* context, const Tensor& gates, const Tensor& cell) {
    const auto sums = gates.contiguous(), before = cell.contiguous();
    const auto output = at::empty(before.sizes(), sums.options()), next = at::empty_like(before);
    context->save_for_backward({sums, before});
    run(sums, "memory_cell_forward", warps_of(before), before.size(0), before.size(1), data(sums), data(before),
        data(output), data(next));
    return {output, next};
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto &sums = saved[0], &before = saved[1];
    const auto output = grads[0].contiguous(), next = grads[1].contiguous();
    const auto of_sums = at::empty_like(sums), of_cell = at::empty_like(before);
    run(sums, "memory_cell_backward", warps_of(before), before.size(0), before.size(1), data(sums), data(before),
        data(output), data(next), data(of_sums), data(of_cell));
    return {of_sums, of_cell};
  }
  static int64_t warps_of(const Tensor& cell) { return (cell.numel() + 31) / 32; }
};

}  // namespace

MemoryState memory_cell(const Tensor& gates, const Tensor& cell) {
  const auto states = DeviceMemoryCell::apply(gates, cell);
  return {states[0], states[1]};
}

}  // namespace cloze::device

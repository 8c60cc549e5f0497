#pragma once
// The multiply-adds that LibTorch runs.
#include <ATen/record_function.h>

#include <functional>
#include <string>

#include "core/tensor/ops.h"

/// Multiply-adds of the matrix multiplications of LibTorch.
struct Counted {
  double weights = 0;    ///< of others than these:
  double attention = 0;  ///< of batches of matrices, fused attention, and matrices with an axis of the head width
  double all() const { return weights + attention; }
};

namespace counted_internal {

inline Counted sum;
inline int64_t head_width = 0;

inline std::unique_ptr<at::ObserverContext> observe(const at::RecordFunction& call) {
  const std::string name = call.name();
  const auto in = call.inputs();
  const auto add = [](const at::Tensor& a, const at::Tensor& b) {
    const bool of_heads = a.dim() > 2 || a.size(-1) == head_width || b.size(-1) == head_width;
    (of_heads ? sum.attention : sum.weights) += static_cast<double>(a.numel() * b.size(-1));
  };
  if (name == "aten::mm" || name == "aten::bmm") add(in[0].toTensor(), in[1].toTensor());
  if (name == "aten::addmm" || name == "aten::baddbmm") add(in[1].toTensor(), in[2].toTensor());
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu")
    sum.attention += 2 * static_cast<double>(in[0].toTensor().numel() * in[1].toTensor().size(-2));
  return nullptr;
}

}  // namespace counted_internal

/// Those of `work`, by plain operators.
inline Counted counted(int64_t head_width, const std::function<void()>& work) {
  counted_internal::sum = {};
  counted_internal::head_width = head_width;
  cloze::set_fused(false);
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(counted_internal::observe).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  cloze::set_fused(true);
  return counted_internal::sum;
}

// Operators of CUDA that LibTorch does not have for the processor, by their formulas: products of bf16 in fp32, dropout
// by a generator of the device, RMS norms. `_fused_adamw_` and `native_layer_norm` it has.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>

#include "tests/support/fake_cuda/generator.h"
#include "tests/support/fake_cuda/record.h"

namespace fake_cuda {
namespace {

// -- Products with a wider result --------------------------------------------------------------------------------

void check_types(const at::Tensor& a, const at::Tensor& b, at::ScalarType out) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected mat1 and mat2 to have the same dtype");
  TORCH_CHECK(out == a.scalar_type() || (out == at::kFloat && a.scalar_type() != at::kDouble),
              "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
}

at::Tensor wide_mm(const at::Tensor& a, const at::Tensor& b, at::ScalarType out) {
  check_types(a, b, out);
  return at::mm(a.to(out), b.to(out));
}

at::Tensor wide_bmm(const at::Tensor& a, const at::Tensor& b, at::ScalarType out) {
  check_types(a, b, out);
  return at::bmm(a.to(out), b.to(out));
}

at::Tensor wide_addmm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, at::ScalarType out,
                      const at::Scalar& beta, const at::Scalar& alpha) {
  check_types(a, b, out);
  return at::addmm(self.to(out), a.to(out), b.to(out), beta, alpha);
}

at::Tensor wide_baddbmm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, at::ScalarType out,
                        const at::Scalar& beta, const at::Scalar& alpha) {
  check_types(a, b, out);
  return at::baddbmm(self.to(out), a.to(out), b.to(out), beta, alpha);
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::ScalarType type, at::Tensor& out) {
  return out.copy_(wide_mm(a, b, type));
}

at::Tensor& bmm_out(const at::Tensor& a, const at::Tensor& b, at::ScalarType type, at::Tensor& out) {
  return out.copy_(wide_bmm(a, b, type));
}

at::Tensor& addmm_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, at::ScalarType type,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  return out.copy_(wide_addmm(self, a, b, type, beta, alpha));
}

at::Tensor& baddbmm_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, at::ScalarType type,
                        const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  return out.copy_(wide_baddbmm(self, a, b, type, beta, alpha));
}

// -- Dropout -----------------------------------------------------------------------------------------------------

/// `keep` is the probability that an element is kept: the p of this operator is not that of dropout.
std::tuple<at::Tensor, at::Tensor> fused_dropout(const at::Tensor& x, double keep,
                                                 std::optional<at::Generator> generator) {
  const OperatorScope scope("aten::_fused_dropout");
  const auto mask = kept_elements(x.sizes(), keep, take_state(generator)).to(x.device());
  return {x * mask * (1 / keep), mask.to(at::kByte)};
}

at::Tensor masked_scale(const at::Tensor& x, const at::Tensor& mask, double scale) {
  const OperatorScope scope("aten::_masked_scale");
  return x * mask.to(at::kBool) * scale;
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& x, double p, std::optional<bool> train) {
  const OperatorScope scope("aten::native_dropout");
  if (p == 0 || !train.value_or(true)) return {x.clone(), at::ones_like(x, at::kBool)};
  const auto [dropped, mask] = fused_dropout(x, 1 - p, {});
  return {dropped, mask.to(at::kBool)};
}

// -- RMS norm ----------------------------------------------------------------------------------------------------

std::vector<int64_t> last_axes(at::IntArrayRef shape) {
  std::vector<int64_t> axes;
  for (int64_t axis = -std::ssize(shape); axis < 0; ++axis) axes.push_back(axis);
  return axes;
}

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x, at::IntArrayRef shape,
                                            const std::optional<at::Tensor>& weight, std::optional<double> eps) {
  const OperatorScope scope("aten::_fused_rms_norm");
  const auto wide = x.to(at::kFloat);
  const double added = eps.value_or(std::numeric_limits<float>::epsilon());
  const auto rstd = wide.square().mean(last_axes(shape), /*keepdim=*/true).add(added).rsqrt();
  auto normed = wide * rstd;
  if (weight && weight->defined()) normed = normed * *weight;
  return {normed.to(x.scalar_type()), rstd};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, at::IntArrayRef shape,
                                                     const at::Tensor& rstd, const std::optional<at::Tensor>& weight,
                                                     std::array<bool, 2> wanted) {
  const OperatorScope scope("aten::_fused_rms_norm_backward");
  const auto axes = last_axes(shape);
  const auto normed = x.to(at::kFloat) * rstd;
  const auto wide = grad.to(at::kFloat);
  at::Tensor x_grad, weight_grad;
  if (wanted[0]) {
    const auto inner = weight && weight->defined() ? wide * *weight : wide;
    x_grad = ((inner - normed * (inner * normed).mean(axes, /*keepdim=*/true)) * rstd).to(x.scalar_type());
  }
  if (wanted[1]) weight_grad = (wide * normed).sum_to_size(shape).to(weight->scalar_type());
  return {x_grad, weight_grad};
}

}  // namespace
}  // namespace fake_cuda

// Kernels of the processor, which the device's operators fall back to.
TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("mm.dtype", fake_cuda::wide_mm);
  library.impl("mm.dtype_out", fake_cuda::mm_out);
  library.impl("bmm.dtype", fake_cuda::wide_bmm);
  library.impl("bmm.dtype_out", fake_cuda::bmm_out);
  library.impl("addmm.dtype", fake_cuda::wide_addmm);
  library.impl("addmm.dtype_out", fake_cuda::addmm_out);
  library.impl("baddbmm.dtype", fake_cuda::wide_baddbmm);
  library.impl("baddbmm.dtype_out", fake_cuda::baddbmm_out);
}

// Of the device alone: the processor has other forms of them, or the generator is the device's.
TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_fused_dropout", fake_cuda::fused_dropout);
  library.impl("_masked_scale", fake_cuda::masked_scale);
  library.impl("native_dropout", fake_cuda::native_dropout);
  library.impl("_fused_rms_norm", fake_cuda::rms_norm);
  library.impl("_fused_rms_norm_backward", fake_cuda::rms_norm_backward);
}

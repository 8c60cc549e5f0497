#include "core/kernels/gemm.h"

#include <string_view>

#include "core/kernels/kernels.h"

namespace cloze::kernels {

#if defined(__x86_64__)
namespace avx512_bf16 {
extern const GemmKernel gemm_kernel_pointer;
}
#endif

GemmKernel gemm_kernel() {
#if defined(__x86_64__)
  if (std::string_view(table().isa) == "avx512_bf16") return avx512_bf16::gemm_kernel_pointer;
#endif
  return nullptr;
}

}  // namespace cloze::kernels

#include "core/kernels/gemm.h"

#include <string_view>

#include "core/kernels/kernels.h"

namespace cloze::kernels {

#if defined(__x86_64__)
namespace avx512_bf16 {
extern const GemmKernel gemm_of_isa;
}
namespace amx {
extern const GemmKernel gemm_of_isa;
}
#endif

const GemmKernel* gemm_kernel() {
#if defined(__x86_64__)
  const std::string_view isa = table().isa;
  if (isa == "amx") return &amx::gemm_of_isa;
  if (isa == "avx512_bf16") return &avx512_bf16::gemm_of_isa;
#endif
  return nullptr;
}

}  // namespace cloze::kernels

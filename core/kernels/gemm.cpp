#include "core/kernels/gemm.h"

#include <string_view>

#include "core/kernels/cpu.h"
#include "core/kernels/kernels.h"

namespace cloze::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const GemmKernel<float> gemm_of_isa;
}
namespace avx512 {
extern const GemmKernel<float> gemm_of_isa;
}
namespace avx512_bf16 {
extern const GemmKernel<uint16_t> gemm_of_isa;
}
namespace amx {
extern const GemmKernel<uint16_t> gemm_of_isa;
}
#endif

const GemmKernel<uint16_t>* bf16_gemm() {
#if defined(__x86_64__)
  const std::string_view isa = table().isa;
  if (isa == "amx") return &amx::gemm_of_isa;
  if (isa == "avx512_bf16") return &avx512_bf16::gemm_of_isa;
#endif
  return nullptr;
}

const GemmKernel<float>* fp32_gemm() {
#if defined(__x86_64__)
  const std::string_view isa = table().isa;
  if (isa == "avx2") return &avx2::gemm_of_isa;
  if (isa != base_isa) return &avx512::gemm_of_isa;
#endif
  return nullptr;
}

}  // namespace cloze::kernels

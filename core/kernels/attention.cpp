#include "core/kernels/attention.h"

#include <string_view>

namespace cloze::kernels {

namespace portable {
extern const AttentionTable attention_kernel_table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const AttentionTable attention_kernel_table;
}
namespace avx512 {
extern const AttentionTable attention_kernel_table;
}
namespace avx512_bf16 {
extern const AttentionTable attention_kernel_table;
}
namespace amx {
extern const AttentionTable attention_kernel_table;
}
#endif

const AttentionTable& attention_table() {
#if defined(__x86_64__)
  const std::string_view isa = table().isa;
  if (isa == "amx") return amx::attention_kernel_table;
  if (isa == "avx512_bf16") return avx512_bf16::attention_kernel_table;
  if (isa == "avx512") return avx512::attention_kernel_table;
  if (isa == "avx2") return avx2::attention_kernel_table;
#endif
  return portable::attention_kernel_table;
}

}  // namespace cloze::kernels

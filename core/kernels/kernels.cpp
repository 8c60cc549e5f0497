#include "core/kernels/kernels.h"

#include "core/kernels/cpu.h"

namespace cloze::kernels {

namespace portable {
extern const Table kernel_table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Table kernel_table;
}
namespace avx512 {
extern const Table kernel_table;
}
namespace avx512_bf16 {
extern const Table kernel_table;
}
#endif

namespace {

#if defined(__x86_64__)
/// Only matrix multiplications and attention use the tiles of AMX; what is in the table is that of AVX512-BF16.
const Table& amx_table() {
  static const Table table = [] {
    auto same = avx512_bf16::kernel_table;
    same.isa = "amx";
    return same;
  }();
  return table;
}
#endif

/// The portable kernels, which have the vectors that every processor of the build has.
const Table& base_table() {
  static const Table table = [] {
    auto same = portable::kernel_table;
    same.isa = base_isa;
    return same;
  }();
  return table;
}

const Table* find(const std::string& isa) {
#if defined(__x86_64__)
  const std::string best = best_isa();
  const bool amx = best == "amx", avx512_bf16 = amx || best == "avx512_bf16", avx512 = avx512_bf16 || best == "avx512";
  if (isa == "amx" && amx) return &amx_table();
  if (isa == "avx512_bf16" && avx512_bf16) return &avx512_bf16::kernel_table;
  if (isa == "avx512" && avx512) return &avx512::kernel_table;
  if (isa == "avx2" && best != base_isa) return &avx2::kernel_table;
#endif
  return isa == base_isa ? &base_table() : nullptr;
}

const Table*& chosen() {
  static const Table* table = find(best_isa());
  return table;
}

}  // namespace

const Table& table() { return *chosen(); }

bool set_isa(const std::string& isa) {
  const Table* table = find(isa);
  if (table) chosen() = table;
  return table != nullptr;
}

}  // namespace cloze::kernels

#include "core/kernels/cpu.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cloze {

namespace {

#if defined(__x86_64__)
bool has_avx512_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

/// The processor has AMX-BF16, and the system lets this process use its tiles, which it asks for. Source: Linux,
/// Documentation/arch/x86/xstate.rst.
bool may_use_amx() {
#if defined(__linux__)
  static const bool may = [] {
    constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
    constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & amx_bf16) && (d & amx_tile) &&
           syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return may;
#else
  return false;
#endif
}
#endif

std::string isa_of_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return !has_avx512_bf16() ? "avx512" : may_use_amx() ? "amx" : "avx512_bf16";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return base_isa;
}

}  // namespace

std::string best_isa() {
  static const std::string isa = [] {
    const std::string order[] = {base_isa, "avx2", "avx512", "avx512_bf16", "amx"}, best = isa_of_processor();
    const char* wanted = std::getenv("CLOZE_ISA");
    const auto rank = [&](const std::string& name) { return std::find(std::begin(order), std::end(order), name); };
    return wanted && rank(wanted) <= rank(best) ? std::string(wanted) : best;
  }();
  return isa;
}

bool cpu_has_bf16() {
  const auto isa = best_isa();
  return isa == "amx" || isa == "avx512_bf16";
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string maker, model;
  for (std::string line; std::getline(in, line);) {
    const auto value = line.substr(std::min(line.size(), line.find(':') + 2));
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) maker = value;
    if (line.starts_with("CPU part")) model = value;
  }
  return model.empty() ? "unknown" : "Arm, maker " + maker + ", part " + model;
}

}  // namespace cloze

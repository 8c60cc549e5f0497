// The matrix multiplications of a linear layer in fp32, and in bf16 where the processor has units for it, alternating
// LibTorch and core/tensor/matmul.h: forward, gradient of the input, gradient of the weight (added in fp32).
//
//     build/bench_matmul [ROWS OUTPUTS INPUTS]     a line for each shape: GFLOP/s of LibTorch and of Cloze, and their
//     ratio, medians of 15
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "core/kernels/cpu.h"
#include "core/tensor/matmul.h"

using namespace cloze;

namespace {

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void alternate(const char* name, double gflop, const std::function<void()>& libtorch,
               const std::function<void()>& cloze) {
  std::vector<double> a, b;
  for (int i = 0; i < 17; ++i) {
    const double one = seconds(libtorch), two = seconds(cloze);
    if (i >= 2) a.push_back(one), b.push_back(two);
  }
  std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
  std::printf("   %s %4.0f, %4.0f, %.2f", name, gflop / a[7], gflop / b[7], a[7] / b[7]);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::array<int64_t, 3>> shapes{{1024, 768, 768},  {1024, 2304, 768}, {1024, 3072, 768}, {1024, 768, 3072},
                                             {4096, 1024, 256}, {4096, 256, 1024}, {4096, 256, 256},  {600, 2048, 256}};
  if (argc == 4) shapes = {{std::atol(argv[1]), std::atol(argv[2]), std::atol(argv[3])}};
  std::vector<at::ScalarType> types{at::kFloat};
  if (cpu_has_bf16()) types.push_back(at::kBFloat16);
  for (const auto type : types)
    for (const auto& [rows, outputs, inputs] : shapes) {
      const auto x = at::randn({rows, inputs}).to(type), w = at::randn({outputs, inputs}).to(type),
                 dy = at::randn({rows, outputs}).to(type);
      auto gradient = at::zeros({outputs, inputs});
      const double gflop = 2e-9 * static_cast<double>(rows * outputs * inputs);
      std::printf("%s %5ld x %4ld x %4ld", type == at::kFloat ? "fp32" : "bf16", static_cast<long>(rows),
                  static_cast<long>(outputs), static_cast<long>(inputs));
      alternate("forward", gflop, [&] { at::mm(x, w.t()); }, [&] { matmul_nt(x, w); });
      alternate("input", gflop, [&] { at::mm(dy, w); }, [&] { matmul_nn(dy, w); });
      alternate("weight", gflop, [&] { gradient.add_(at::mm(dy.t(), x)); }, [&] { add_matmul_tn(gradient, dy, x); });
      std::printf("\n");
    }
}

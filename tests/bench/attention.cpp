// Forward and backward pass of one attention layer, without projections and dropout, on one thread: width 256, 4 heads,
// batch 1.
//
//     build/bench_attention [LENGTH ...]       one JSON line for each case: CPU time [ms] of the fastest, the median
//     and the slowest run
#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/tensor/ops.h"
#include "core/tensor/param.h"

using namespace cloze;

namespace {

double processor_ms() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

template <class F>
void measure(const char* name, at::ScalarType type, int64_t length, const F& attend) {
  const auto qkv = at::randn({1, length, 768}).to(type).set_requires_grad(true);
  const auto step = [&] { attend(qkv).to(at::kFloat).square().mean().backward(); };
  step();
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const double start = processor_ms();
    step();
    times.push_back(processor_ms() - start);
  }
  std::sort(times.begin(), times.end());
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"case\": \"%s\", \"dtype\": \"%s\", \"S\": %ld, \"cpu_ms\": [%.1f, %.1f, %.1f], \"peak_rss_mb\": %ld}\n", name,
      type == at::kFloat ? "fp32" : "bf16", static_cast<long>(length), times[0], times[2], times[4],
      usage.ru_maxrss / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  std::vector<int64_t> lengths;
  for (int i = 1; i < argc; ++i) lengths.push_back(std::atol(argv[i]));
  if (lengths.empty()) lengths = {1024, 2048, 4096, 8192};
  const Param bias(at::zeros({768}).set_requires_grad(true), Init::zero);
  const auto projection = at::empty({256, 64});
  draw_features(projection, Rng(1).stream("features"));
  for (const int64_t length : lengths)
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      measure("exact", type, length, [&](const Tensor& qkv) { return self_attention(qkv, bias, 4, {}, {}); });
      measure("exact causal", type, length,
              [&](const Tensor& qkv) { return self_attention(qkv, bias, 4, {.causal = true}, {}); });
      measure("band", type, length,
              [&](const Tensor& qkv) { return self_attention(qkv, bias, 4, {.window = 128}, {}); });
      measure("favor", type, length,
              [&](const Tensor& qkv) { return favor_attention(qkv, bias, 4, {}, {.projection = projection}); });
      measure("favor causal", type, length, [&](const Tensor& qkv) {
        return favor_attention(qkv, bias, 4, {.causal = true}, {.projection = projection});
      });
    }
}

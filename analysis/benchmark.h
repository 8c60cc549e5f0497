#pragma once
// Real training steps against the machine's own limit.
#include <nlohmann/json.hpp>

#include "run/config.h"

namespace cloze {

struct BenchmarkResult {
  std::string data, precision;
  int64_t steps = 0;
  double ms_per_step = 0, ms_low = 0, ms_high = 0;  ///< median, and the middle half
  double tokens_per_second = 0;
  double gflop_per_step = 0;
  double gemm_fp32 = 0, gemm_bf16 = 0;  ///< GFLOP/s of a 2048 x 2304 x 768 product, the mean of before and after
  double mfu = 0;                       ///< useful FLOPs over those the faster of these products makes in the same time
  double peak_rss_mb = 0;
  double data_wait = 0, forward = 0, backward = 0, optimizer = 0, other = 0;  ///< ms a step
  double collation = 0;  ///< sequences a second that one thread makes; 0 without prepared tokens
  double first_loss = 0, last_loss = 0;
};

/// Times up to `steps` steps, or `seconds`, after three to warm up. Tokens are those of data.tokens, or made up by
/// Zipf's law: 15 % masked, halves of a row as its two segments. `plain` switches the fused operators off.
BenchmarkResult benchmark(const RunConfig& config, int64_t steps, double seconds, bool plain);

std::string to_text(const BenchmarkResult& r);
nlohmann::json to_json(const BenchmarkResult& r);

}  // namespace cloze

#pragma once
// Timing of real training steps, relative to the GEMM throughput of the machine.
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "run/config/config.h"
#include "train/callbacks/suites.h"

namespace cloze {

struct BenchmarkResult {
  std::string data, precision;
  int64_t steps = 0;
  double ms_per_step = 0, ms_low = 0, ms_high = 0;  ///< median and quartiles
  double ms_undisturbed = 0;  ///< of a step where no other process wants the cores; that of all, if these are too few
  double share_of_cores = 1;  ///< of the time in which threads of the whole process could have run
  double tokens_per_second = 0;
  double tokens_per_step = 0, predicted_tokens_per_step = 0;
  double gflop_per_step = 0;
  double gemm_fp32 = 0, gemm_bf16 = 0;  ///< GFLOP/s of a 2048 x 2304 x 768 GEMM, mean of before and after; 0: untimed.
                                        ///< On a GPU of the fastest square one up to 8192
  double mfu = 0;                       ///< model FLOPs utilization: share of gemm_fp32, with bf16 of the faster
  double peak_rss_mb = 0, peak_gpu_mb = 0;
  double data_wait = 0, forward = 0, backward = 0, optimizer = 0, other = 0;  ///< ms per step
  double collation = 0;                   ///< sequences per second in one thread; 0: untimed, or no prepared tokens
  uint64_t sequences_per_epoch = 0;       ///< 0 without prepared tokens
  uint64_t words_per_epoch = 0;           ///< of the raw text; 0 without prepared tokens
  uint64_t held_out_tokens = 0;           ///< 0 without prepared tokens
  std::set<uint64_t> scored_documents{};  ///< of the held-out text, whose rows the first held-out loss is over
  int64_t parameters = 0, checkpoint_bytes = 0;
  double first_loss = 0, last_loss = 0;
  std::map<std::string, std::vector<std::string>> suite_metrics{};  ///< that evaluation.suites give, by suite
  std::map<std::string, SuiteCost> suite_costs{};  ///< of one evaluation of each; empty without prepared tokens
};

struct BenchmarkOptions {
  int64_t steps = 20;       ///< that are timed, after three to warm up
  double seconds = 60;      ///< after which no step begins
  bool plain = false;       ///< plain LibTorch operators instead of the fused ones
  bool steps_only = false;  ///< without the rates of GEMM and collation
};

/// Times steps. Tokens are those of data.tokens, or synthetic by Zipf's law, with 15 % masked and two segments of equal
/// length per row.
BenchmarkResult benchmark(const RunConfig& config, const BenchmarkOptions& options);

std::string to_text(const BenchmarkResult& r);
nlohmann::json to_json(const BenchmarkResult& r);

}  // namespace cloze

#pragma once
// Size and cost of a config: layers, parameters, FLOPs, memory.
#include <nlohmann/json.hpp>

#include "run/config.h"

namespace cloze {

/// Multiply-adds of a forward pass, per token unless said otherwise. Source: Korthikanti et al. 2022, appendix A
/// (arXiv 2205.05198), with the prediction head at predicted positions only.
struct Cost {
  double linear = 0, attention = 0;  ///< of the stack, per token
  double head = 0;                   ///< per predicted token
  double pooled = 0;                 ///< per sequence: pooler and sentence head
};

struct Description {
  struct Row {
    std::string name, shape;
    int64_t parameters = 0;
  };
  std::vector<Row> layers;  ///< one row per group of parameters
  int64_t parameters = 0;
  bool vocab_known = true;
  Cost cost;
  double predicted_share = 0;
  double flops_per_token = 0;  ///< training: forward and backward, 6 x multiply-adds
  double flops_per_step = 0;
  double weight_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0, shadow_bytes = 0, activation_bytes = 0;
  double carried_bytes = 0;  ///< recurrence memory (mems) of the rows of a step
};

Description describe_run(const RunConfig& config);

/// Useful training FLOPs of a batch with `tokens` tokens without padding (of an encoder-decoder model: in the encoder)
/// and `predicted` predicted ones.
double training_flops(const Cost& cost, double tokens, double predicted, double sequences);
Cost cost_of(const RunConfig& config, double length);

std::string to_text(const Description& d);
nlohmann::json to_json(const Description& d);

}  // namespace cloze

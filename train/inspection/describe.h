#pragma once
// Size and cost of a config: layers, parameters, FLOPs, memory.
#include <nlohmann/json_fwd.hpp>

#include "models/layers/cost.h"
#include "run/config/config.h"

namespace cloze {

struct Description {
  struct Row {
    std::string name, shape;
    int64_t parameters = 0;
  };
  std::vector<Row> layers;  ///< one row per group of parameters
  int64_t parameters = 0;
  bool vocab_known = true;
  double predicted_fraction = 0;
  /// Of training, forward and backward, the mean over the steps of the run; `token`: without padding, of an
  /// encoder-decoder in the encoder.
  double flops_per_token = 0, flops_per_step = 0;
  double weight_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0, shadow_bytes = 0, activation_bytes = 0;
  double carried_bytes = 0;  ///< recurrence memory (mems) of the rows of a step
  double teacher_bytes = 0;  ///< weights of a teacher, with their bf16 copies
  std::string processor;     ///< this one, with the kernels that it has; empty: the config trains on a GPU
};

/// The description of a config, with the vocabulary of its prepared text (data.tokens). Throws DataError for tokens
/// that are named for it and cannot be opened, ConfigError for a vocabulary that does not hold them.
Description describe_run(const RunConfig& config);

/// The rows of a micro-batch that this config leads to expect, all of data.max_seq_length tokens.
std::vector<RowSizes> expected_rows(const RunConfig& config);

std::string to_text(const Description& d);
nlohmann::json to_json(const Description& d);

}  // namespace cloze

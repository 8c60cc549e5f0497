#pragma once
// The facts of a run that the limits of its objectives depend on.
#include <string>
#include <vector>

#include "data/config.h"
#include "models/families/model_config.h"

namespace cloze {

/// What surrounds an objective in a run.
struct ObjectiveSetting {
  const ModelConfig& model;
  const DataConfig& data;
  int64_t rows_per_step = 0;              ///< sequences in an optimizer step
  std::vector<std::string> companions{};  ///< kinds of the other objectives
};

}  // namespace cloze

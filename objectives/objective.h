#pragma once
// Makers of objectives; each lives in a file that nobody includes.
#include "objectives/network.h"

namespace cloze {

std::shared_ptr<Objective> make_mlm(const MlmConfig& config, const ModelConfig& model);
std::shared_ptr<Objective> make_nsp(const NspConfig& config, const ModelConfig& model);

/// The objective of a config, with its head sized for `model`.
std::shared_ptr<Objective> make_objective(const ObjectiveConfig& config, const ModelConfig& model);

}  // namespace cloze

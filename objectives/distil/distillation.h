#pragma once
// The losses by which a network becomes like its teacher.
#include "objectives/distil/config.h"
#include "objectives/network.h"

namespace cloze {

/// The losses of `config` as an objective of `student`, which outlives it. The teacher stays as it is: it is no part of
/// the objective, and its pass records nothing. Throws ConfigError for what the two networks cannot compare.
std::shared_ptr<Objective> make_distillation(const DistilConfig& config, const Network& student,
                                             std::shared_ptr<Network> teacher);

}  // namespace cloze

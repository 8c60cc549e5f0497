#pragma once
// Warnings about rows that differ from what the config asks for.
#include <string>
#include <vector>

#include "evaluation/evaluate.h"

namespace cloze {

/// A warning if the share of random or swapped pairs differs much from the configured one; else empty.
std::string pair_warning(const Objectives& objectives, const Collator& collator);

/// A warning if the generator of rtd replaces too few tokens; else empty.
std::string replaced_warning(const std::vector<HeldOut>& losses, const EvaluationConfig& evaluation);

}  // namespace cloze

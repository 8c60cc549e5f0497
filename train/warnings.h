#pragma once
// Warnings about rows that differ from what the config asks for, and about losses of a run that learns nothing.
#include <string>
#include <vector>

#include "evaluation/evaluate.h"

namespace cloze {

/// A warning if the share of random or swapped pairs differs much from the configured one; else empty.
std::string pair_warning(const Objectives& objectives, const Collator& collator);

/// A warning if the generator of rtd replaces too few tokens; else empty.
std::string replaced_warning(const std::vector<HeldOut>& losses, const EvaluationConfig& evaluation);

/// A warning if less than half of the chosen tokens are masked, as where mask_prob was meant as other programs have it;
/// else empty.
std::string few_masked_warning(const Objectives& objectives);

/// A warning if a share of masked tokens that changes over decay_steps stops before its end, since a run has fewer
/// steps; else empty. `steps`: 0 where they are not known.
std::string long_decay_warning(const Objectives& objectives, int64_t steps);

/// The warning about a step whose rows have nothing to predict, of which nothing is learned.
std::string no_predictions_warning(int64_t step);

/// Whether a mean loss is more than twice ln(vocab_size), the loss of guessing evenly: no model that is initialized as
/// usual has such a loss. False for a loss that is not finite.
bool is_far_above_guessing(double loss, int64_t vocab_size);

/// The warning about such a loss. `which`: `loss of mlm`.
std::string divergence_warning(const std::string& which, double loss, int64_t step, int64_t vocab_size);

}  // namespace cloze

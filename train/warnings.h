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

/// The loss of guessing evenly.
struct Guessing {
  double loss = 0;       ///< of tokens: ln(vocab_size)
  bool of_task = false;  ///< of the labels, values, tokens or candidates of a task
};

/// Whether a mean loss is far above that of guessing evenly: of tokens beyond twice as much, which no model that is
/// initialized as usual has, of a task, where a few wrong items weigh more, beyond ten times as much and 5 more. False
/// for a loss that is not finite.
bool is_far_above_guessing(double loss, const Guessing& guessing);

/// The warning about such a loss. `which`: `loss of mlm`.
std::string divergence_warning(const std::string& which, double loss, int64_t step, const Guessing& guessing);

}  // namespace cloze

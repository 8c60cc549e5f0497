#pragma once
// Objectives in the short form of the command line and of reports.
#include <string>

#include "objectives/limits.h"
#include "run/config/config.h"

namespace cloze {

/// An objective in the short form of the command line: KIND[:SHARE][,KEY=VALUE]..., for instance `mlm:0.4` or
/// `mlm,unit=word`. SHARE is the kind's own: mlm_probability (mlm, mntp), random_next_prob, swap_prob, noise_density,
/// mask_ratio, gap_sentences_ratio. `source` names the text in messages. Throws ConfigError, also for an option that
/// has no effect on a held-out loss.
ObjectiveConfig parse_objective(const std::string& text, const std::string& source = "--objective");

/// The short form of an objective: its kind and its differences from the defaults of that kind. Objectives that need
/// different rows have different short forms.
std::string short_form(const ObjectiveConfig& objective);

/// Throws ConfigError for options of evaluation.objectives that have no effect on a held-out loss, one sentence each:
/// those of training, and those of networks where they are not what the run trains. For runs that begin: `validate`
/// accepts them, because the run.yaml of an earlier version may have them.
void refuse_ignored_options(const RunConfig& config);

/// What surrounds the objectives of this run. It refers to `config`.
ObjectiveSetting objective_setting(const RunConfig& config);

}  // namespace cloze

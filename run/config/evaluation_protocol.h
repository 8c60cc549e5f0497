#pragma once
// The protocol of the held-out evaluation: objectives, rows and masks that the training options do not change, so that
// losses of different runs can be compared; and the short form of objectives, which names what is compared.
#include <string>
#include <vector>

#include "run/config/config.h"

namespace cloze {

/// The form of an objective by which runs are compared by default: the defaults of its kind, whatever its training
/// options. Kept are every weight, the `corruption` of span_corruption, the networks of rtd and mntp's share of
/// causal rows.
ObjectiveConfig standard_form(const ObjectiveConfig& objective);

/// The objectives that are scored for one: itself; for a hybrid of mntp its masked and its causal loss, each on rows of
/// its own and weighted by its share.
Objectives separate_losses(const ObjectiveConfig& objective);

/// `evaluation` of a run with its defaults resolved: objectives (the run's own in standard form) and max_seq_length.
EvaluationConfig resolved_evaluation(const RunConfig& config);

/// The data config by which held-out rows are cut.
DataConfig held_out_data(const RunConfig& config);

/// The model config for held-out rows: without XLNet's mems and backward text, which belong to training.
ModelConfig held_out_model(const ModelConfig& model);

/// The objectives that make the rows of `objective`: itself, and for sbo also mlm (like: spanbert), which chooses its
/// spans.
Objectives row_objectives(const ObjectiveConfig& objective);

/// Errors in `evaluation` for the network of this run, one sentence each: a missing head, an objective that its model
/// does not support, a duplicate.
std::vector<std::string> evaluation_errors(const RunConfig& config);

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

}  // namespace cloze

#pragma once
// What held-out losses are measured by: objectives in a form of their own, rows and masks that training does not
// change.
#include <string>
#include <vector>

#include "run/config.h"

namespace cloze {

/// An objective as runs of its kind are compared by default: the defaults of its kind, whatever it was trained with. Of
/// span_corruption the `corruption` stays, of rtd its networks, and every weight.
ObjectiveConfig standard_form(const ObjectiveConfig& objective);

/// `evaluation` of a run with nothing left open: objectives (the run's own in standard form) and max_seq_length are
/// named.
EvaluationConfig resolved_evaluation(const RunConfig& config);

/// How held-out rows are cut.
DataConfig held_out_rows(const RunConfig& config);

/// The model as held-out rows know it: what it carries from row to row, and texts that run backwards, belong to
/// training.
ModelConfig held_out_model(const ModelConfig& model);

/// The objectives that a row of `objective` needs beside each other: sbo reads the spans that mlm (like: spanbert) has
/// chosen.
Objectives row_objectives(const ObjectiveConfig& objective);

/// An objective in the short form of the command line: KIND[:SHARE][,KEY=VALUE]..., for instance `mlm:0.4` or
/// `mlm,unit=word`. SHARE is the kind's own: mlm_probability, random_next_prob, swap_prob, noise_density, mask_ratio,
/// gap_sentences_ratio. Throws ConfigError.
ObjectiveConfig parse_objective(const std::string& text);

/// The short form of an objective: its kind, and what differs from the defaults of that kind. Distinct for objectives
/// that ask for distinct rows.
std::string short_form(const ObjectiveConfig& objective);

/// What is wrong with `evaluation` for the networks of this run, one sentence each: no head, a kind that its model
/// cannot have, one named twice.
std::vector<std::string> yardstick_mistakes(const RunConfig& config);

}  // namespace cloze

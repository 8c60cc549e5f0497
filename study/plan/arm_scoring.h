#pragma once
// How the arms of a plan are scored: by which metrics, on which text, and that this is the same for all of them.
#include <vector>

#include "study/plan/plan.h"

namespace cloze {

/// Reads the metrics of a study. Throws ConfigError for one that is named twice, for a margin in the wrong unit, and
/// for a suite that networks with new heads would answer.
void set_metrics(Plan& plan);

/// Throws DataError for a mixture of texts that the runs of an arm would refuse; one of texts that are not prepared yet
/// is left to them.
void check_mixtures(const Plan& plan, const std::vector<RunConfig>& configs);

/// Counts the held-out documents. Throws ConfigError for arms that are not scored alike, whose comparison the report
/// would refuse.
void compare_scoring(Plan& plan, const std::vector<RunConfig>& configs);

/// Makes a plan choose on the part of the held-out text that is for development. Throws ConfigError where that has too
/// few documents, or the metric has no parts.
void develop(Plan& plan);

}  // namespace cloze

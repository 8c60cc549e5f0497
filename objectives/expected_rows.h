#pragma once
// The rows that a run leads to expect, before any is made: their sizes decide what a step costs.
#include "models/layers/cost.h"
#include "objectives/limits.h"

namespace cloze {

/// The rows of a micro-batch, all of data.max_seq_length tokens, with what each objective expects of them
/// (ObjectiveKind::expect). The neighbours of spans that sbo reads are not counted.
std::vector<RowSizes> expected_rows(const ObjectiveSetting& in);

/// What several kinds expect: a source of data.max_seq_length tokens, and a target that is `fraction` as long; a
/// decoder-only model reads both in that length.
void expect_source_target(double fraction, const ObjectiveSetting& in, std::vector<RowSizes>& rows);

}  // namespace cloze

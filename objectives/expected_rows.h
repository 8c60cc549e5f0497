#pragma once
// The rows that a run leads to expect, before any is made: their sizes decide what a step costs.
#include "models/layers/cost.h"
#include "objectives/limits.h"

namespace cloze {

/// The rows of a micro-batch, all of data.max_seq_length tokens. Each objective adds what it predicts and reads, or
/// splits the rows into kinds, in a function
///   void expect_rows(const MlmConfig& objective, const ObjectiveSetting& in, std::vector<RowSizes>& rows);
/// which finds rows that nothing is predicted or read of. The neighbours of spans that sbo reads are not counted.
std::vector<RowSizes> expected_rows(const ObjectiveSetting& in);

// Answers that several kinds share.

/// The mean number of tokens that these maskings choose in a row of `length` tokens.
double expected_masks(const std::vector<MaskingPart>& maskings, double length);
/// The tokens that these maskings choose are predicted, from their own hidden states.
void expect_masks(const std::vector<MaskingPart>& maskings, std::vector<RowSizes>& rows);
/// A source of data.max_seq_length tokens, and a target that is `share` as long; a decoder-only model reads both in
/// that length.
void expect_source_target(double share, const ObjectiveSetting& in, std::vector<RowSizes>& rows);

}  // namespace cloze

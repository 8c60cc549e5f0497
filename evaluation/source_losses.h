#pragma once
// Held-out losses of the parts of a text: by source, as `prepare` told them apart.
#include <vector>

#include "data/store/shard.h"
#include "evaluation/evaluate.h"

namespace cloze {

/// A loss by source: each with the name of the source, the loss of its sequences, their predictions and its standard
/// error, in the order of the text. Weighted by their predictions they add up to the whole. Sources without a
/// prediction are left out. A sequence is of the source of its first token, as it is of that token's document: one of
/// several documents, or the B of a random segment pair, may hold tokens of another source.
///
/// sources   of the documents, in their order; empty gives none
std::vector<HeldOut> losses_by_source(const HeldOut& total, const std::vector<SourceSpan>& sources);

/// Documents that have predictions.
uint64_t scored_documents(const HeldOut& loss);

}  // namespace cloze

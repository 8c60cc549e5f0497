#pragma once
// What tells the scores of one network from those of another.
#include <string>

#include "run/run.h"
#include "objectives/scoring_form.h"

namespace cloze {

/// Sixteen hex digits of the weights in memory, the model, its objectives, the tokenizer, and how texts are scored.
std::string scores_name(const LoadedRun& run, ScoringForm form, int64_t stride, Precision precision);

}  // namespace cloze

#pragma once
// Blanks filled in by a trained model.
#include "train/run.h"

namespace cloze {

struct Candidate {
  int64_t id = 0;
  std::string piece;
  double probability = 0;
};

/// The `top` likeliest pieces for each `[MASK]` of `text`. Throws ConfigError for a text without one, or one too long.
std::vector<std::vector<Candidate>> fill(const LoadedRun& run, const std::string& text, int64_t top);

/// `text` with each `[MASK]` replaced by a piece, as it reads.
std::string filled_text(const Tokenizer& tokenizer, const std::string& text, const std::vector<Candidate>& choice);

}  // namespace cloze

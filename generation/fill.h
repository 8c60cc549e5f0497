#pragma once
// Blanks filled in by a trained model.
#include "run/run.h"

namespace cloze {

struct Candidate {
  int64_t id = 0;
  std::string piece;
  double probability = 0;
};

/// The `top` likeliest pieces for each `[MASK]` of `text`. Throws ConfigError for a text without one, or one too long.
std::vector<std::vector<Candidate>> fill(const LoadedRun& run, const std::string& text, int64_t top);

/// True for a run whose blanks a decoder writes: with span corruption or denoising.
bool fills_by_generating(const LoadedRun& run);
/// The `top` likeliest fillings of all blanks of `text` at once, by beams; each text whole. Spans of any length may
/// stand in a blank. Throws ConfigError as `fill`.
std::vector<std::pair<std::string, double>> fill_spans(const LoadedRun& run, const std::string& text, int64_t top);

/// `text` with each `[MASK]` replaced by a piece, as it reads.
std::string filled_text(const Tokenizer& tokenizer, const std::string& text, const std::vector<Candidate>& choice);

}  // namespace cloze

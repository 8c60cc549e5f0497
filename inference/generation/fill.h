#pragma once
// Masked positions filled in by a trained model.
#include "run/run.h"

namespace cloze {

/// A text whose blanks cannot be filled.
struct FillError : ConfigError {
  using ConfigError::ConfigError;
};

/// A token for a `[MASK]`.
struct MaskPrediction {
  int64_t id = 0;
  std::string token;  ///< as in the vocabulary
  std::string word;   ///< as in a text; `-` and its text for a token that continues a word where spaces part words
  double probability = 0;
};

/// The `top` most probable tokens for each `[MASK]` of `text`; where a space precedes it, only tokens that can follow
/// a space. Throws FillError for a text without `[MASK]` and for one that is too long.
std::vector<std::vector<MaskPrediction>> fill(const LoadedRun& run, const std::string& text, int64_t top);

/// True for a run whose decoder generates masked text: one trained with span corruption or denoising.
bool fills_by_generating(const LoadedRun& run);
/// The `top` most probable completions of all `[MASK]` of `text` together, by beam search; each is the whole text. A
/// `[MASK]` may be replaced by a span of any length. Throws FillError as `fill`, and for more blanks than the tokenizer
/// has sentinels.
std::vector<std::pair<std::string, double>> fill_spans(const LoadedRun& run, const std::string& text, int64_t top);

/// What stands before and after a token that was filled in.
struct FilledMarks {
  std::string before, after;
};

/// `text` with each `[MASK]` replaced by a token, detokenized, between `marks`.
std::string filled_text(const Tokenizer& tokenizer, const std::string& text, const std::vector<MaskPrediction>& choice,
                        const FilledMarks& marks = {});

}  // namespace cloze

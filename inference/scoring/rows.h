#pragma once
// The rows of forward passes from which passages are scored, for each kind of model.
#include <memory>
#include <span>

#include "run/run.h"
#include "inference/scoring/encoded_passage.h"
#include "objectives/kind.h"

namespace cloze {

/// A token that a state predicts.
struct Prediction {
  int32_t position = 0;  ///< of the state: in the row; of an encoder-decoder in `decoder`; of two streams the target's
  int32_t label = 0;
  uint32_t passage = 0,
           token = 0;  ///< whose score it is: number of the passage, and of the token among those that count
};

/// One row, and the tokens that it predicts.
struct ScoringRow {
  std::vector<int32_t> ids;        ///< input; of an encoder-decoder that of the encoder
  std::vector<int32_t> decoder{};  ///< input of the decoder
  int32_t prefix = 0;              ///< leading tokens that all tokens attend to
  std::vector<Prediction> predictions{};
  int32_t context = 0;  ///< leading tokens that predict nothing and are read once for all rows that have them; set by
                        ///< the scorer
};

/// Makes the rows of passages.
class RowsOfPassages {
 public:
  virtual ~RowsOfPassages() = default;
  virtual PassageText text() const = 0;
  /// The score in words.
  virtual std::string description() const = 0;
  /// Number of tokens of a text that a row has room for, by row_length.
  virtual size_t room(size_t stride) const = 0;
  /// The windows of a passage, as windows_of.
  virtual std::vector<Window> windows(const EncodedPassage& passage, size_t stride) const {
    return windows_of(passage, room(stride), stride);
  }
  /// Appends the rows of one window of a passage.
  virtual void add(const EncodedPassage& passage, const Window& window, uint32_t number,
                   std::vector<ScoringRow>& rows) const = 0;
};

/// Masked language models and masked next-token prediction: a row for each token.
std::unique_ptr<RowsOfPassages> make_masked_scoring(const LoadedRun& run, ScoringForm form);
/// The discriminator: one row.
std::unique_ptr<RowsOfPassages> make_detection_scoring(const LoadedRun& run);
/// Decoders whose rows are texts: one row.
std::unique_ptr<RowsOfPassages> make_causal_scoring(const LoadedRun& run);
/// Two streams: one row.
std::unique_ptr<RowsOfPassages> make_permuted_scoring(const LoadedRun& run);
/// Objectives with a source and a target: a row for each masked token, or for a context and its completion.
std::unique_ptr<RowsOfPassages> make_source_target_scoring(const LoadedRun& run, const ObjectiveConfig& objective,
                                                           ScoringForm form);
/// The one of the objective that answers `form`. Throws ConfigError for a tokenizer without a special token that it
/// needs.
std::unique_ptr<RowsOfPassages> make_scoring_rows(const LoadedRun& run, ScoringForm form);

/// The tokens of a row: as many as the model reads. Of a model without a limit those of its training rows
/// (data.max_seq_length) where texts are read in windows, so with a stride; without one as many as have attention
/// scores of a gigabyte.
int64_t row_length(const LoadedRun& run, size_t stride);
/// The model reads rows of any length.
bool is_unlimited(const RunConfig& config);

/// Throws ConfigError for a tokenizer without the special token `id`, which `use` names.
void require_token(const LoadedRun& run, int64_t id, const char* name, const char* use);
/// Number of the token `at` of a passage among those that count.
inline uint32_t scored_number(const EncodedPassage& passage, size_t at) {
  return static_cast<uint32_t>(at - passage.begin);
}
/// The token `at` of the passage of this number, predicted from the state at `position`.
inline Prediction predicted(const EncodedPassage& passage, uint32_t number, size_t at, size_t position) {
  return {static_cast<int32_t>(position), passage.tokens[at].id, number, scored_number(passage, at)};
}
/// The windows of a passage by windows_of; none where tokens that are masked together would be in several.
std::vector<Window> windows_of(const EncodedPassage& passage, size_t room, size_t stride, ScoringForm form);
/// The end of the masked tokens from `at` on: that token alone, or with the later ones of its word. `end`: of the row.
size_t masked_end(const EncodedPassage& passage, size_t at, size_t end, ScoringForm form);
/// The tokens of a window that count, [first, second).
inline std::pair<size_t, size_t> counted(const EncodedPassage& passage, const Window& window) {
  return {std::max(window.scored, passage.begin), std::min(window.end, passage.end)};
}

/// A window of one of several passages.
struct WindowPlace {
  size_t passage = 0, window = 0;
};
/// The rows of windows from `next` on, until they have `tokens` tokens or no window is left; `next` becomes the first
/// of the others. Passages that are done are emptied; those in which nothing counts have no rows. A long text is cut
/// between its windows: with a row for each token it is much larger than its tokens.
std::vector<ScoringRow> next_rows(const RowsOfPassages& rows, std::span<EncodedPassage> passages, size_t stride,
                                  size_t tokens, WindowPlace& next);

/// Merges equal rows into the first of them.
std::vector<ScoringRow> distinct(std::vector<ScoringRow> rows);

}  // namespace cloze

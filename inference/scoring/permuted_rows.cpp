// Rows of two-stream models.
#include <algorithm>

#include "inference/scoring/rows.h"

namespace cloze {

namespace {

/// text [SEP] [CLS], as in the rows of plm. The factorisation order is [SEP], [CLS], and then the text from left to
/// right: without the two, the first token would attend to nothing.
class PermutedScoring final : public RowsOfPassages {
 public:
  explicit PermutedScoring(const LoadedRun& run)
      : frame_{static_cast<int32_t>(run.tokenizer.special().sep), static_cast<int32_t>(run.tokenizer.special().cls)},
        room_(room_of(row_length(run, 0))),
        room_of_windows_(room_of(row_length(run, 1))) {
    require_token(run, frame_[0], "[SEP] or <sep>", "the token that ends a text");
    require_token(run, frame_[1], "[CLS] or <cls>", "the last token of a row");
  }

  PassageText text() const override { return PassageText::to_scored; }
  size_t room(size_t stride) const override { return stride > 0 ? room_of_windows_ : room_; }
  std::string description() const override {
    return "log-likelihood in the factorisation order [SEP], [CLS], then the text from left to right, by the query "
           "stream";
  }

  void add(const EncodedPassage& passage, const Window& window, uint32_t number,
           std::vector<ScoringRow>& rows) const override {
    auto& row = rows.emplace_back();
    for (size_t at = window.begin; at < window.end; ++at) row.ids.push_back(passage.tokens[at].id);
    row.ids.insert(row.ids.end(), frame_.begin(), frame_.end());
    const auto [first, last] = counted(passage, window);
    for (size_t at = first; at < last; ++at)
      row.predictions.push_back(predicted(passage, number, at, at - window.begin));
  }

 private:
  static size_t room_of(int64_t length) { return static_cast<size_t>(std::max<int64_t>(length - 2, 0)); }

  std::vector<int32_t> frame_;
  size_t room_, room_of_windows_;
};

}  // namespace

std::unique_ptr<RowsOfPassages> make_permuted_scoring(const LoadedRun& run) {
  return std::make_unique<PermutedScoring>(run);
}

}  // namespace cloze

// Rows of decoders that were trained on texts without a source.
#include "core/error.h"
#include "inference/scoring/rows.h"

namespace cloze {

namespace {

/// The text after the token that begins one, or without one after the separator of texts. The last token is a label
/// only. A window whose first token is context has no separator before it.
class CausalScoring final : public RowsOfPassages {
 public:
  explicit CausalScoring(const LoadedRun& run)
      : always_begins_(backbone_of(run.config.model).prepend_bos),
        begin_(static_cast<int32_t>(always_begins_ ? run.tokenizer.special().cls : run.tokenizer.special().sep)),
        begin_name_(begin_ >= 0 ? run.tokenizer.piece(begin_) : ""),
        room_(static_cast<size_t>(row_length(run, 0))),
        room_of_windows_(static_cast<size_t>(row_length(run, 1))) {
    require_token(run, begin_, "[SEP] or </s>", "the token that ends a text, after which the next one is predicted");
  }

  PassageText text() const override { return PassageText::to_scored; }
  size_t room(size_t stride) const override { return stride > 0 ? room_of_windows_ : room_; }
  std::string description() const override {
    return concat("log-likelihood: each token given those before it, the first given ", begin_name_);
  }

  void add(const EncodedPassage& passage, const Window& window, uint32_t number,
           std::vector<ScoringRow>& rows) const override {
    auto& row = rows.emplace_back();
    const auto [first, last] = counted(passage, window);
    if (always_begins_ || window.begin == 0 || first == window.begin) row.ids.push_back(begin_);
    const size_t before = row.ids.size();
    for (size_t at = window.begin; at + 1 < last; ++at) row.ids.push_back(passage.tokens[at].id);
    for (size_t at = first; at < last; ++at)
      row.predictions.push_back(predicted(passage, number, at, before + at - window.begin - 1));
  }

 private:
  bool always_begins_;
  int32_t begin_;
  std::string begin_name_;
  size_t room_, room_of_windows_;
};

}  // namespace

std::unique_ptr<RowsOfPassages> make_causal_scoring(const LoadedRun& run) {
  return std::make_unique<CausalScoring>(run);
}

}  // namespace cloze

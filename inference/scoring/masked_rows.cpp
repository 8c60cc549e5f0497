// Rows of masked language models, of masked next-token prediction, and of discriminators.
#include "core/error.h"
#include "inference/scoring/rows.h"

namespace cloze {

namespace {

/// The special tokens around a text.
struct TextFrame {
  std::vector<int32_t> before{}, after{};
  size_t size() const { return before.size() + after.size(); }
};

/// A window of a text in its frame.
ScoringRow framed(const TextFrame& frame, const EncodedPassage& passage, const Window& window) {
  ScoringRow row{.ids = frame.before};
  row.ids.reserve(frame.size() + window.end - window.begin);
  for (size_t at = window.begin; at < window.end; ++at) row.ids.push_back(passage.tokens[at].id);
  row.ids.insert(row.ids.end(), frame.after.begin(), frame.after.end());
  return row;
}

/// The position of a token in its row.
size_t position_of(const TextFrame& frame, const Window& window, size_t at) {
  return frame.before.size() + at - window.begin;
}

/// [CLS] text [SEP], as in the rows of mlm. A decoder of mntp reads the rows of clm: the token that begins a text, or
/// without one the separator of texts, and nothing after the text.
TextFrame frame_of(const LoadedRun& run) {
  const auto& model = backbone_of(run.config.model);
  const auto& special = run.tokenizer.special();
  if (predicts_shifted(run.config.objectives) && model.is_decoder()) {
    const auto begin = model.prepend_bos ? special.cls : special.sep;
    require_token(run, begin, "[SEP] or </s>", "the token that ends a text and begins the next one");
    return {.before = {static_cast<int32_t>(begin)}, .after = {}};
  }
  require_token(run, special.cls, "[CLS] or <s>", "the token that begins a text");
  require_token(run, special.sep, "[SEP] or </s>", "the token that ends a text");
  return {.before = {static_cast<int32_t>(special.cls)}, .after = {static_cast<int32_t>(special.sep)}};
}

/// The tokens of a text that a row has room for, without a stride and with one.
struct Room {
  Room(const LoadedRun& run, const TextFrame& frame)
      : whole(of(row_length(run, 0), frame)), window(of(row_length(run, 1), frame)) {}
  size_t of(size_t stride) const { return stride > 0 ? window : whole; }

 private:
  static size_t of(int64_t length, const TextFrame& frame) {
    const auto all = static_cast<size_t>(length);
    return all > frame.size() ? all - frame.size() : 0;
  }
  size_t whole, window;
};

class MaskedScoring final : public RowsOfPassages {
 public:
  MaskedScoring(const LoadedRun& run, ScoringForm form)
      : form_(form),
        frame_(frame_of(run)),
        room_(run, frame_),
        mask_(static_cast<int32_t>(run.tokenizer.special().mask)),
        shifted_(predicts_shifted(run.config.objectives)),
        bidirectional_(shifted_ && backbone_of(run.config.model).is_decoder()) {
    require_token(run, mask_, "[MASK] or <mask>", "the token that replaces a masked one");
  }

  PassageText text() const override { return PassageText::whole; }
  size_t room(size_t stride) const override { return room_.of(stride); }

  std::string description() const override {
    std::string how = "pseudo-log-likelihood: ";
    if (form_ == ScoringForm::pll_span)
      how += "all tokens masked together, and each predicted for itself (Kassner et al. 2021)";
    else if (form_ == ScoringForm::pll_word_l2r)
      how += "each token masked in turn, together with the later tokens of its word (Kauf and Ivanova 2023)";
    else
      how += "each token masked in turn (Salazar et al. 2020)";
    return shifted_ ? how + ", predicted by the state one position earlier" : how;
  }

  std::vector<Window> windows(const EncodedPassage& passage, size_t stride) const override {
    return windows_of(passage, room(stride), stride, form_);
  }

  void add(const EncodedPassage& passage, const Window& window, uint32_t number,
           std::vector<ScoringRow>& rows) const override {
    const auto unmasked = framed(frame_, passage, window);
    const auto [first, last] = counted(passage, window);
    const bool together = form_ == ScoringForm::pll_span;
    for (size_t at = first, next = 0; at < last; at = next) {
      next = together ? last : at + 1;
      const size_t end = together ? last : masked_end(passage, at, window.end, form_);
      auto& row = rows.emplace_back(unmasked);
      std::fill_n(row.ids.begin() + static_cast<std::ptrdiff_t>(position_of(frame_, window, at)), end - at, mask_);
      if (bidirectional_) row.prefix = static_cast<int32_t>(row.ids.size());
      for (size_t k = at; k < next; ++k)
        row.predictions.push_back(predicted(passage, number, k, position_of(frame_, window, k) - (shifted_ ? 1 : 0)));
    }
  }

 private:
  ScoringForm form_;
  TextFrame frame_;
  Room room_;
  int32_t mask_;
  bool shifted_, bidirectional_;  // a decoder reads masked rows in both directions
};

class DetectionScoring final : public RowsOfPassages {
 public:
  explicit DetectionScoring(const LoadedRun& run) : frame_(frame_of(run)), room_(run, frame_) {}

  PassageText text() const override { return PassageText::whole; }
  size_t room(size_t stride) const override { return room_.of(stride); }
  std::string description() const override {
    return "detection: log-probability that each token is original, by the discriminator, in one pass without masks";
  }

  void add(const EncodedPassage& passage, const Window& window, uint32_t number,
           std::vector<ScoringRow>& rows) const override {
    auto& row = rows.emplace_back(framed(frame_, passage, window));
    const auto [first, last] = counted(passage, window);
    for (size_t at = first; at < last; ++at)
      row.predictions.push_back(predicted(passage, number, at, position_of(frame_, window, at)));
  }

 private:
  TextFrame frame_;
  Room room_;
};

}  // namespace

std::unique_ptr<RowsOfPassages> make_masked_scoring(const LoadedRun& run, ScoringForm form) {
  return std::make_unique<MaskedScoring>(run, form);
}

std::unique_ptr<RowsOfPassages> make_detection_scoring(const LoadedRun& run) {
  return std::make_unique<DetectionScoring>(run);
}

}  // namespace cloze

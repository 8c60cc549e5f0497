// Rows of objectives with a source and a target: a masked token, or the completion of a context.
#include <algorithm>

#include "core/error.h"
#include "inference/scoring/rows.h"
#include "models/stack_parts.h"

namespace cloze {

namespace {

using Ids = std::vector<int32_t>;

using Prefix = SourceTargetLayout::Prefix;

class SourceTargetScoring final : public RowsOfPassages {
 public:
  SourceTargetScoring(const LoadedRun& run, const ObjectiveConfig& objective, ScoringForm form)
      : form_(form),
        model_(backbone_of(run.config.model)),
        prefix_(part_of<PrefixAttention>(run.config.model)),
        decoding_(decoding_ids_of(run.config.model)),
        layout_(*as_kind(objective).layout()),
        length_(row_length(run, 0)),
        length_of_windows_(row_length(run, 1)),
        bos_(static_cast<int32_t>(run.tokenizer.special().cls)),
        eos_(static_cast<int32_t>(run.tokenizer.special().sep)) {
    require_token(run, eos_, "[SEP] or </s>", "the token that ends a source");
    if (model_.prepend_bos) require_token(run, bos_, "[CLS] or <s>", "the token that begins a text");
    placeholder_ = placeholder_of_run(run);
    ends_source_ = model_.is_encoder_decoder() || !as_kind(objective).continues_source();
  }

  PassageText text() const override {
    if (form_ != ScoringForm::likelihood) return PassageText::whole;
    return layout_.pair ? PassageText::pair : PassageText::to_scored;
  }

  /// Tokens of a text that stands on one side, or on both; of a decoder both sides share the positions.
  size_t room(size_t stride) const override {
    const int64_t all = stride > 0 ? length_of_windows_ : length_;
    const int64_t placeholder = layout_.prefix == Prefix::source ? 0 : 1, begin = model_.prepend_bos ? 1 : 0;
    const int64_t length = all - begin - 1 - (has_two_texts() ? 0 : placeholder);
    const int64_t of_decoder = all - 2 * (begin + 1 + placeholder);
    const int64_t room = model_.is_encoder_decoder() ? length : has_two_texts() ? of_decoder / 2 : of_decoder;
    return static_cast<size_t>(std::max<int64_t>(room, 0));
  }

  /// Context and completion of an encoder-decoder have a side each: windows go over the completion, and all before one
  /// is its context.
  std::vector<Window> windows(const EncodedPassage& passage, size_t stride) const override {
    if (form_ != ScoringForm::likelihood || has_two_texts() || !model_.is_encoder_decoder())
      return windows_of(passage, room(stride), stride, form_);
    const size_t longest = room(stride);
    const bool fits = passage.begin <= longest && passage.end - passage.begin <= longest;
    std::vector<Window> list;
    for (size_t at = passage.begin, end = 0; at < passage.end && (fits || stride > 0) && longest > 0; at = end) {
      end = std::min(passage.end, at + (list.empty() ? longest : stride));
      list.push_back({at - std::min(at, longest), end, at});
    }
    return list;
  }

  std::string description() const override;

  void add(const EncodedPassage& passage, const Window& window, uint32_t number,
           std::vector<ScoringRow>& rows) const override {
    if (form_ == ScoringForm::likelihood) return add_completion(passage, window, number, rows);
    const auto [first, last] = counted(passage, window);
    if (form_ == ScoringForm::pll_span) return add_masked(passage, window, first, last, last, number, rows);
    for (size_t at = first; at < last; ++at)
      add_masked(passage, window, at, masked_end(passage, at, window.end, form_), at + 1, number, rows);
  }

 private:
  int32_t placeholder_of_run(const LoadedRun& run) const {
    const auto& special = run.tokenizer.special();
    if (layout_.prefix == Prefix::sentinel) {
      const auto& sentinels = run.tokenizer.sentinels();
      require_token(run, sentinels.empty() ? -1 : sentinels[0], "<extra_id_0>", "the sentinel that replaces a span");
      return static_cast<int32_t>(sentinels[0]);
    }
    if (layout_.prefix == Prefix::source) return -1;
    const auto id = layout_.of_sentences ? special.sentence_mask : special.mask;
    require_token(run, id, "[MASK] or <mask>", "the token that replaces a masked one");
    return static_cast<int32_t>(id);
  }

  static void append(Ids& ids, const EncodedPassage& passage, size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) ids.push_back(passage.tokens[at].id);
  }

  /// Source and target both have the text.
  bool has_two_texts() const {
    if (form_ != ScoringForm::likelihood) return layout_.target_has_text;
    return layout_.prefix == Prefix::repeated || layout_.prefix == Prefix::masks;
  }

  Ids begun() const { return model_.prepend_bos ? Ids{bos_} : Ids{}; }

  /// The tokens [at, end) are masked, and those of [at, predicted) predicted.
  void add_masked(const EncodedPassage& passage, const Window& window, size_t at, size_t end, size_t predicted,
                  uint32_t number, std::vector<ScoringRow>& rows) const {
    auto source = begun(), target = begun();
    append(source, passage, window.begin, at);
    source.insert(source.end(), layout_.one_mask ? 1 : end - at, placeholder_);
    append(source, passage, end, window.end);
    source.push_back(eos_);
    if (layout_.target_has_text)
      append(target, passage, window.begin, at);
    else
      target.push_back(placeholder_);
    const auto first = target.size();
    append(target, passage, at, predicted);
    add_row(std::move(source), target, first, at, passage, number, rows);
  }

  void add_completion(const EncodedPassage& passage, const Window& window, uint32_t number,
                      std::vector<ScoringRow>& rows) const {
    const auto [first, last] = counted(passage, window);
    auto source = begun(), target = begun();
    append(source, passage, window.begin, first);
    if (layout_.prefix != Prefix::source)
      source.insert(source.end(), layout_.prefix == Prefix::masks ? last - first : 1, placeholder_);
    // A source without text is an end token.
    if (ends_source_ || source.empty()) source.push_back(eos_);
    if (layout_.prefix == Prefix::sentinel) target.push_back(placeholder_);
    if (has_two_texts()) append(target, passage, window.begin, first);
    const auto before = target.size();
    append(target, passage, first, last);
    add_row(std::move(source), target, before, first, passage, number, rows);
  }

  /// The row whose target has at `first` and after it the tokens of the passage from `at` on.
  void add_row(Ids source, const Ids& target, size_t first, size_t at, const EncodedPassage& passage, uint32_t number,
               std::vector<ScoringRow>& rows) const {
    auto& row = rows.emplace_back();
    const bool two = model_.is_encoder_decoder();
    const size_t before = two ? 1 : source.size();
    row.ids = std::move(source);
    if (two) row.decoder.push_back(decoding_.decoder_starts_with_last_target ? eos_ : start());
    if (!two && prefix_.prefix_lm) row.prefix = static_cast<int32_t>(before) - 1;
    auto& read = two ? row.decoder : row.ids;
    read.insert(read.end(), target.begin(), target.end() - 1);
    for (size_t k = first; k < target.size(); ++k)
      row.predictions.push_back({.position = static_cast<int32_t>(before + k) - 1,
                                 .label = target[k],
                                 .passage = number,
                                 .token = scored_number(passage, at + k - first)});
  }

  int32_t start() const { return static_cast<int32_t>(decoding_.decoder_start_token_id); }

  ScoringForm form_;
  const BackboneConfig& model_;
  PrefixAttention prefix_;
  DecodingIds decoding_;
  SourceTargetLayout layout_;
  int64_t length_, length_of_windows_;  // of a row
  int32_t bos_, eos_, placeholder_ = -1;
  bool ends_source_ = true;
};

std::string SourceTargetScoring::description() const {
  const std::string side = model_.is_encoder_decoder() ? "decoder" : "target";
  if (form_ == ScoringForm::pll_span)
    return concat("mask form: all tokens together replaced by ", layout_.target_has_text ? "[MASK]" : "a sentinel",
                  " in the source, and predicted by the ", side, ", each after those before it (Kassner et al. 2021)");
  if (form_ != ScoringForm::likelihood) {
    const std::string later = form_ == ScoringForm::pll_word_l2r ? ", together with the later tokens of its word," : "";
    const std::string context = layout_.target_has_text ? "the tokens before it" : "the sentinel";
    return concat("mask form: each token", later, " replaced by ", layout_.target_has_text ? "[MASK]" : "a sentinel",
                  " in the source, and predicted by the ", side, " after ", context);
  }
  switch (layout_.prefix) {
    case Prefix::none:
    case Prefix::source:
      return concat("prefix form: log-likelihood of the text in the ", side, ", with its context as the source");
    case Prefix::sentinel:
      return concat("prefix form: log-likelihood of the text in the ", side,
                    " after a sentinel, with its context and the sentinel as the source");
    case Prefix::placeholder:
      return concat("prefix form: log-likelihood of the text in the ", side,
                    ", with its context and a masked sentence as the source");
    case Prefix::repeated:
    case Prefix::masks:
      return concat("prefix form: log-likelihood of the text in the ", side,
                    " after its context, with the context and ",
                    layout_.prefix == Prefix::masks ? "a [MASK] for each token" : "[MASK]", " as the source");
  }
  return "";
}

}  // namespace

std::unique_ptr<RowsOfPassages> make_source_target_scoring(const LoadedRun& run, const ObjectiveConfig& objective,
                                                           ScoringForm form) {
  return std::make_unique<SourceTargetScoring>(run, objective, form);
}

}  // namespace cloze

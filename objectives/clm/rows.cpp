#include "objectives/clm/clm.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

/// No source: the target is the text itself.
struct CausalLmBuilder final : SourceTargetBuilder {
  using SourceTargetBuilder::SourceTargetBuilder;

  uint64_t length() const override {
    return static_cast<uint64_t>(in_.data.max_seq_length + 1 - begins());  // the last token is a label only
  }

  SourceTarget build(const Example& example, Stream, RowDraws& drawn) const override {
    auto text = read_text(example);
    SourceTarget row{.source = {}, .target = std::move(text.tokens), .target_offsets = std::move(text.offsets)};
    const auto separators = static_cast<int64_t>(example.spans.size()) - 1;
    drawn.used_tokens = static_cast<int64_t>(row.target.size()) - separators;
    if (ends_document(example) && row.target.size() < length()) {
      row.target.push_back(eos_);
      row.target_offsets.push_back(-1);
    }
    if (begins()) {
      row.target.insert(row.target.begin(), in_.vocabulary.special.cls);
      row.target_offsets.insert(row.target_offsets.begin(), -1);
    }
    return row;
  }

  bool ends_document(const Example& example) const {
    const auto& last = example.spans.back();
    return last.first + last.count == in_.store.document_token(in_.store.document_of(last.first) + 1);
  }
};

}  // namespace

std::unique_ptr<SourceTargetBuilder> make_builder(const ClmConfig&, const RowContext& context) {
  return std::make_unique<CausalLmBuilder>(context);
}

}  // namespace cloze

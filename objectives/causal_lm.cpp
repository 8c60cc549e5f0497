#include "objectives/generative_rows.h"

namespace cloze {

namespace {

/// No source: the target is the text itself.
struct CausalLmBuilder final : SourceTargetBuilder {
  using SourceTargetBuilder::SourceTargetBuilder;

  uint64_t length() const override {
    const int64_t begin = model_.prepend_bos ? 1 : 0;
    return static_cast<uint64_t>(data_.max_seq_length + 1 - begin);  // the last token is a label only
  }

  void build(const Example& example, Stream, SourceTarget& row, Infilled*) override {
    read_text(example);
    auto& [tokens, offsets, sentence_lengths] = text_;
    const auto n = static_cast<int64_t>(tokens.size());
    const auto separators = static_cast<int64_t>(example.spans.size()) - 1;
    used_tokens_ = n - separators;
    const auto& last = example.spans.back();
    const uint64_t end = last.first + last.count;
    const bool ends = end == store_.document_token(store_.document_of(last.first) + 1);  // of its document
    if (ends && n < static_cast<int64_t>(length())) {
      tokens.push_back(eos_);
      offsets.push_back(-1);
    }
    row.source.clear();
    row.target = tokens;
    row.target_offsets = offsets;
    if (!model_.prepend_bos) return;
    row.target.insert(row.target.begin(), vocabulary_.special.cls);
    row.target_offsets.insert(row.target_offsets.begin(), -1);
  }
};

}  // namespace

std::unique_ptr<SourceTargetBuilder> make_builder(const ClmConfig&, const RowContext& context) {
  return std::make_unique<CausalLmBuilder>(context);
}

}  // namespace cloze

#include "objectives/generative_rows.h"

namespace cloze {

namespace {

/// The text itself, all of it written.
struct CausalRows final : GenerativeRows {
  using GenerativeRows::GenerativeRows;

  uint64_t length() const override {
    const int64_t begin = model_.texts_begin ? 1 : 0;
    return static_cast<uint64_t>(data_.max_seq_length + 1 - begin);  // the last one is only a label
  }

  void write(const Example& example, Stream, SourceTarget& row, Infilled*) override {
    gather(example);
    auto& [tokens, numbers, sentence_lengths] = text_;
    const auto n = static_cast<int64_t>(tokens.size());
    const auto separators = static_cast<int64_t>(example.spans.size()) - 1;
    read_ = n - separators;
    const auto& last = example.spans.back();
    const uint64_t end = last.first + last.count;
    const bool ends = end == store_.document_token(store_.document_of(last.first) + 1);  // of its document
    if (ends && n < static_cast<int64_t>(length())) {
      tokens.push_back(eos_);
      numbers.push_back(-1);
    }
    row.source.clear();
    row.target = tokens;
    row.target_tokens = numbers;
    if (!model_.texts_begin) return;
    row.target.insert(row.target.begin(), vocabulary_.special.cls);
    row.target_tokens.insert(row.target_tokens.begin(), -1);
  }
};

}  // namespace

std::unique_ptr<GenerativeRows> make_rows(const ClmConfig&, const RowContext& context) {
  return std::make_unique<CausalRows>(context);
}

}  // namespace cloze

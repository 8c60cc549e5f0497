#include <numeric>

#include "core/error.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

/// The first text of a pair is read, the second one written.
struct TextPairRows final : GenerativeRows {
  explicit TextPairRows(const RowContext& context) : GenerativeRows(context) {
    require<DataError>(store_.num_sentences() == 2 * store_.num_documents(),
                       data_.tokens.empty() ? "the text" : data_.tokens,
                       " does not hold pairs of texts; prepare them with --format pairs");
  }

  Packing packing() const override { return Packing::whole; }
  uint64_t length() const override {
    const int64_t begin = model_.texts_begin ? 1 : 0, most = data_.max_seq_length;
    // Both sides have an end token; a decoder alone reads them in one line, whose last label is not read.
    const int64_t side = model_.is_encoder_decoder() ? most - begin - 1 : (most + 1 - 2 * begin) / 2 - 1;
    return static_cast<uint64_t>(std::max<int64_t>(1, side));
  }

  void write(const Example& example, Stream, SourceTarget& row, Infilled*) override {
    const auto first = example.spans.front().first, end = first + example.spans.front().count;
    const auto middle = store_.first_token(store_.sentence_of(first) + 1);
    row.source.resize(middle - first);
    row.target.resize(end - middle);
    store_.read(first, middle - first, row.source.data());
    store_.read(middle, end - middle, row.target.data());
    context_.check_ids(row.source.data(), row.source.size());
    context_.check_ids(row.target.data(), row.target.size());
    row.source.push_back(eos_);
    row.target.push_back(eos_);
    row.target_tokens.resize(end - middle);
    std::iota(row.target_tokens.begin(), row.target_tokens.end(), static_cast<int64_t>(middle));
    row.target_tokens.push_back(-1);
    finish(row);
    const int64_t added = model_.texts_begin ? 4 : 2;  // beginnings and ends
    read_ = std::max<int64_t>(0, static_cast<int64_t>(row.source.size() + row.target.size()) - added);
  }
};

}  // namespace

std::unique_ptr<GenerativeRows> make_rows(const PairsConfig&, const RowContext& context) {
  return std::make_unique<TextPairRows>(context);
}

}  // namespace cloze

#include <numeric>

#include "core/error.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

/// The first text of a pair is the source, the second one the target.
struct ParallelTextBuilder final : SourceTargetBuilder {
  explicit ParallelTextBuilder(const RowContext& context) : SourceTargetBuilder(context) {
    require<DataError>(store_.num_sentences() == 2 * store_.num_documents(),
                       data_.tokens.empty() ? "the text" : data_.tokens,
                       " does not hold pairs of texts; prepare them with --format pairs");
  }

  Packing packing() const override { return Packing::whole; }
  uint64_t length() const override {
    const int64_t begin = model_.prepend_bos ? 1 : 0, max_length = data_.max_seq_length;
    // Both sides have an end token; a decoder-only model reads them concatenated, without the last label.
    const int64_t side = model_.is_encoder_decoder() ? max_length - begin - 1 : (max_length + 1 - 2 * begin) / 2 - 1;
    return static_cast<uint64_t>(std::max<int64_t>(1, side));
  }

  void build(const Example& example, Stream, SourceTarget& row, Infilled*) override {
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
    row.target_offsets.resize(end - middle);
    std::iota(row.target_offsets.begin(), row.target_offsets.end(), static_cast<int64_t>(middle));
    row.target_offsets.push_back(-1);
    add_bos_and_truncate(row);
    const int64_t added = model_.prepend_bos ? 4 : 2;  // begin and end tokens
    used_tokens_ = std::max<int64_t>(0, static_cast<int64_t>(row.source.size() + row.target.size()) - added);
  }
};

}  // namespace

std::unique_ptr<SourceTargetBuilder> make_builder(const PairsConfig&, const RowContext& context) {
  return std::make_unique<ParallelTextBuilder>(context);
}

}  // namespace cloze

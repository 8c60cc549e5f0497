#include <numeric>

#include "core/error.h"
#include "objectives/generative_rows.h"
#include "objectives/pairs/pairs.h"

namespace cloze {

namespace {

/// The first text of a pair is the source, the second one the target.
struct ParallelTextBuilder final : SourceTargetBuilder {
  explicit ParallelTextBuilder(const RowContext& context) : SourceTargetBuilder(context) {
    const auto parts = in_.store.parts();
    const auto named = in_.data.tokens.empty() ? std::string("the text") : in_.data.tokens;
    for (const auto& part : parts)
      require<DataError>(part.text.num_sentences() == 2 * part.text.num_documents(),
                         parts.size() > 1 ? part.text.folder() : named,
                         " does not hold pairs of texts; prepare them with --format pairs");
  }

  Packing packing() const override { return Packing::whole; }
  uint64_t length() const override {
    const int64_t max_length = in_.data.max_seq_length;
    // Both sides have an end token; a decoder-only model reads them concatenated, without the last label.
    const int64_t side =
        model().is_encoder_decoder() ? max_length - begins() - 1 : (max_length + 1 - 2 * begins()) / 2 - 1;
    return static_cast<uint64_t>(std::max<int64_t>(1, side));
  }

  SourceTarget build(const Example& example, Stream, RowDraws& drawn) const override {
    const auto first = example.spans.front().first, end = first + example.spans.front().count;
    const auto middle = in_.store.first_token(in_.store.sentence_of(first) + 1);
    SourceTarget row{.source = read({first, middle - first}), .target = read({middle, end - middle})};
    row.target_offsets.resize(end - middle);
    std::iota(row.target_offsets.begin(), row.target_offsets.end(), static_cast<int64_t>(middle));
    row.target_offsets.push_back(-1);
    add_bos_and_truncate(row);
    const int64_t added = 2 * (begins() + 1);  // begin and end tokens
    drawn.used_tokens = std::max<int64_t>(0, static_cast<int64_t>(row.source.size() + row.target.size()) - added);
    return row;
  }

  /// A text with its end token.
  std::vector<int64_t> read(Span span) const {
    std::vector<int64_t> ids(span.count);
    in_.store.read(span.first, span.count, ids.data());
    in_.check_ids(ids.data(), ids.size());
    ids.push_back(eos_);
    return ids;
  }
};

}  // namespace

std::unique_ptr<SourceTargetBuilder> make_builder(const PairsConfig&, const RowContext& context) {
  return std::make_unique<ParallelTextBuilder>(context);
}

}  // namespace cloze

// Rows of mlm, nsp, sop, rtd and sbo: a text or a segment pair, with some tokens masked.
#include <algorithm>

#include "core/error.h"
#include "objectives/collator.h"
#include "objectives/masking_config.h"

namespace cloze {

namespace {

/// The rows of a batch in a buffer of the maximum width.
struct RowBuffer {
  RowBuffer(int64_t count, int64_t stride)
      : width(stride), ids(static_cast<size_t>(count * stride)), rows(static_cast<size_t>(count)) {
    positions.reserve(ids.size() / 4);
    labels.reserve(ids.size() / 4);
  }
  int64_t* row_ids(int64_t row) { return ids.data() + row * width; }

  int64_t width;
  std::vector<int64_t> ids;
  std::vector<RowLayout> rows;
  std::vector<int64_t> positions, labels;  ///< of predicted tokens; flat indices into [B width]
};

class MaskedRows final : public RowMaker {
 public:
  explicit MaskedRows(const RowContext& context)
      : in_(context),
        pairs_(segment_pair_rule(context.objectives, context.data.packing)),
        budget_(static_cast<uint64_t>(context.data.max_seq_length - (pairs_ ? 3 : 2))),
        sampler_(context.sampler(sampling())),
        maskings_(maskings_of(context.objectives)) {
    if (pairs_) require_documents();
  }

  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const override {
    const auto sequences = in_.sequences(sampler_, first, count);
    RowBuffer buffer(count, in_.data.max_seq_length);
    std::vector<Masker> maskers;
    for (const auto& masking : maskings_) maskers.emplace_back(masking, in_.vocabulary);
    Example example;
    for (int64_t row = 0; row < count; ++row) {
      sampler_.sample(sequences[static_cast<size_t>(row)], example);
      auto* row_ids = buffer.row_ids(row);
      auto& layout = buffer.rows[static_cast<size_t>(row)];
      layout = pairs_ ? fill_pair_row(in_, *pairs_, example, budget_, row_ids) : fill_text_row(in_, example, row_ids);
      auto* drawn = draws ? &(*draws)[static_cast<size_t>(row)] : nullptr;
      if (drawn) record_text_usage(example, layout, *drawn);
      if (!maskers.empty()) mask(maskers, example, sequences[static_cast<size_t>(row)], row, buffer, drawn);
    }
    return padded(buffer);
  }

  uint64_t size() const override { return sampler_.size(); }
  double random_next_rate() const override { return sampler_.random_next_rate(); }

 private:
  SamplerOptions sampling() const {
    const auto pair_packing = [](const SegmentPairRule& rule) {
      return rule.single_sentences ? Packing::two_sentences : Packing::sentences;
    };
    return {.packing = pairs_ ? pair_packing(*pairs_) : packing_of(in_.data.packing),
            .length = budget_,
            .short_seq_prob = in_.data.short_seq_prob,
            .random_next_prob = pairs_ ? pairs_->random_next_prob : 0};
  }

  /// A random B must be from another document of the same text.
  void require_documents() const {
    const auto parts = in_.store.parts();
    for (const auto& part : parts)
      require<DataError>(part.text.num_documents() >= 2 || parts.size() == 1, "sentence pairs (nsp, sop, data.packing ",
                         "of pairs) need at least two documents, ", part.text.folder(), " has one, and no B is taken ",
                         "from another text; leave it out of data.mixture, or prepare more of it");
    require<DataError>(in_.store.num_documents() >= 2 || in_.stage != "train",
                       "sentence pairs (nsp, sop, data.packing of pairs) need at least two documents, the text has "
                       "one; separate documents by a blank line, remove that objective, or choose another packing");
    require<DataError>(in_.store.num_documents() >= 2,
                       "sentence pairs (nsp, sop, data.packing of pairs) need at least two documents, the held-out "
                       "text has one; prepare the text again with more of it held out (--held-out, --valid), or remove "
                       "that objective");
  }

  /// Chooses and corrupts the tokens of a row.
  void mask(std::vector<Masker>& maskers, const Example& example, uint64_t sequence, int64_t row, RowBuffer& buffer,
            RowDraws* drawn) const {
    const auto masking = draw_masking(maskings_, Stream(in_.mixture_key, example.epoch, example.item));
    if (drawn) drawn->masking = masking;
    maskers[masking].set_rate(masking_rate(maskings_[masking], in_.step, sequence, sampler_.size()));
    maskers[masking].corrupt(buffer.row_ids(row), buffer.rows[static_cast<size_t>(row)].length, row * buffer.width,
                             Stream(in_.mask_key, example.epoch, example.item), buffer.positions, buffer.labels,
                             drawn ? &drawn->lengths : nullptr);
  }

  /// The batch, padded on the right to the longest row.
  Batch padded(RowBuffer& buffer) const {
    const auto count = static_cast<int64_t>(buffer.rows.size());
    int64_t longest = 0;
    Batch batch;
    for (const auto& row : buffer.rows) {
      longest = std::max(longest, row.length);
      batch.tokens += row.length;
      batch.forced_pairs += row.forced;
    }
    batch.input_ids = at::full({count, longest}, in_.vocabulary.special.filler(), at::kLong);
    batch.token_type_ids = at::zeros({count, longest}, at::kLong);
    const bool has_padding = batch.tokens < count * longest;
    if (has_padding) batch.attention_mask = at::zeros({count, longest}, at::kBool);
    std::vector<int64_t> pair_labels;
    for (int64_t r = 0; r < count; ++r) {
      const auto& row = buffer.rows[static_cast<size_t>(r)];
      const int64_t begin = r * longest;
      std::copy_n(buffer.row_ids(r), row.length, batch.input_ids.data_ptr<int64_t>() + begin);
      std::fill_n(batch.token_type_ids.data_ptr<int64_t>() + begin + row.second, row.length - row.second, 1);
      if (has_padding) std::fill_n(batch.attention_mask.data_ptr<bool>() + begin, row.length, true);
      pair_labels.push_back(row.label);
    }
    for (auto& position : buffer.positions) position -= position / buffer.width * (buffer.width - longest);
    batch.positions = to_tensor(buffer.positions);
    batch.labels = to_tensor(buffer.labels);
    if (pairs_) batch.pair_label = to_tensor(pair_labels);
    return batch;
  }

  const RowContext& in_;
  std::optional<SegmentPairRule> pairs_;
  uint64_t budget_;  // tokens of a row without special ones
  MixedSampler sampler_;
  std::vector<MaskingPart> maskings_;  // empty: no masking
};

}  // namespace

bool needs_documents(const Objectives& objectives, const DataConfig& data) {
  return !any_that(objectives, &ObjectiveKind::makes_pairs) && segment_pair_rule(objectives, data.packing).has_value();
}

std::unique_ptr<RowMaker> make_masked_rows(const RowContext& context) { return std::make_unique<MaskedRows>(context); }

}  // namespace cloze

#include "objectives/generative_rows.h"

namespace cloze {

namespace {

class GenerativeRows final : public RowMaker {
 public:
  GenerativeRows(std::unique_ptr<SourceTargetBuilder> builder, const RowContext& context)
      : in_(context),
        builder_(std::move(builder)),
        sampler_(context.sampler({.packing = builder_->packing(), .length = builder_->length()})) {}

  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const override {
    const auto sequences = in_.sequences(sampler_, first, count);
    std::vector<SourceTarget> rows;
    Example example;
    for (size_t r = 0; r < sequences.size(); ++r) {
      sampler_.sample(sequences[r], example);
      RowDraws drawn;
      rows.push_back(builder_->build(example, Stream(in_.mask_key, example.epoch, example.item), drawn));
      if (!draws) continue;
      for (const auto& span : example.spans) drawn.example_tokens += static_cast<int64_t>(span.count);
      drawn.document = example.document;
      drawn.label_offsets = label_offsets(rows.back());
      (*draws)[r] = std::move(drawn);
    }
    return source_target_batch(in_, rows);
  }

  uint64_t size() const override { return sampler_.size(); }
  double random_next_rate() const override { return sampler_.random_next_rate(); }

 private:
  /// A decoder-only model has no input before its first token, which is therefore no label.
  std::vector<int64_t> label_offsets(const SourceTarget& row) const {
    auto offsets = row.target_offsets;
    const bool starts = !backbone_of(in_.model).is_encoder_decoder() && row.source.empty();
    if (starts && !offsets.empty()) offsets.erase(offsets.begin());
    return offsets;
  }

  const RowContext& in_;
  std::unique_ptr<SourceTargetBuilder> builder_;
  MixedSampler sampler_;
};

}  // namespace

std::unique_ptr<RowMaker> make_generative_rows(std::unique_ptr<SourceTargetBuilder> builder,
                                               const RowContext& context) {
  return std::make_unique<GenerativeRows>(std::move(builder), context);
}

}  // namespace cloze

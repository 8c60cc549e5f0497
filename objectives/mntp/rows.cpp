#include <algorithm>

#include "objectives/generative_rows.h"
#include "objectives/mntp/mntp.h"

namespace cloze {

namespace {

/// Rows of a decoder: the rows of clm, causal, or masked and bidirectional.
class HybridRows final : public RowMaker {
 public:
  HybridRows(const RowContext& context, const MntpConfig& config)
      : in_(context),
        config_(config),
        texts_(make_builder(config.causal(), context)),
        sampler_(context.sampler({.packing = texts_->packing(), .length = texts_->length()})) {}

  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const override {
    const auto sequences = in_.sequences(sampler_, first, count);
    std::vector<SourceTarget> rows;
    std::vector<Example> examples(sequences.size());
    for (size_t r = 0; r < sequences.size(); ++r) {
      sampler_.sample(sequences[r], examples[r]);
      RowDraws drawn;
      rows.push_back(texts_->build(examples[r], Stream(in_.mask_key, examples[r].epoch, examples[r].item), drawn));
      for (const auto& span : examples[r].spans) drawn.example_tokens += static_cast<int64_t>(span.count);
      drawn.document = examples[r].document;
      if (draws) (*draws)[r] = drawn;
    }
    auto batch = source_target_batch(in_.model, in_.vocabulary.special.filler(), rows);
    batch.prefix = at::zeros({count}, at::kLong);
    Labels predicted;
    Masker masker(config_, in_.vocabulary);
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto& text = rows[r].target;
      const int64_t begin = static_cast<int64_t>(r) * batch.input_ids.size(1);
      const size_t first_label = predicted.labels.size();
      if (is_causal_row(config_.causal_share, sequences[r])) {
        add_next_tokens(text, begin, predicted);
      } else {
        masker.set_rate(masking_rate(config_, in_.step, sequences[r], sampler_.size()));
        const Stream stream(in_.mask_key, examples[r].epoch, examples[r].item);
        const auto read = masked_input(masker, text, begin, stream, predicted, draws ? &(*draws)[r].lengths : nullptr);
        std::copy(read.begin(), read.end(), batch.input_ids.data_ptr<int64_t>() + begin);
        batch.prefix.data_ptr<int64_t>()[r] = static_cast<int64_t>(read.size());
      }
      for (size_t k = first_label; draws && k < predicted.labels.size(); ++k)
        (*draws)[r].label_offsets.push_back(
            rows[r].target_offsets[static_cast<size_t>(predicted.positions[k] - begin + 1)]);
    }
    batch.positions = to_tensor(predicted.positions);
    batch.labels = to_tensor(predicted.labels);
    return batch;
  }

  uint64_t size() const override { return sampler_.size(); }

 private:
  /// Predicted tokens: flat indices into [B T] of the states that predict them, and their ids.
  struct Labels {
    std::vector<int64_t> positions{}, labels{};
  };

  /// Every token of a causal row but the first.
  static void add_next_tokens(const std::vector<int64_t>& text, int64_t begin, Labels& predicted) {
    for (int64_t t = 0; t + 1 < static_cast<int64_t>(text.size()); ++t) predicted.positions.push_back(begin + t);
    predicted.labels.insert(predicted.labels.end(), text.begin() + 1, text.end());
  }

  /// The corrupted input of a masked row. Without the first token, the masker's indices are those of the states that
  /// predict: one position earlier. The last token is a label only, as in causal rows.
  static std::vector<int64_t> masked_input(Masker& masker, const std::vector<int64_t>& text, int64_t begin,
                                           const Stream& stream, Labels& predicted, std::vector<int64_t>* lengths) {
    auto corrupted = text;
    const auto length = static_cast<int64_t>(text.size()) - 1;
    masker.corrupt(corrupted.data() + 1, length, begin, stream, predicted.positions, predicted.labels, lengths);
    corrupted.pop_back();
    return corrupted;
  }

  const RowContext& in_;
  const MntpConfig& config_;
  std::unique_ptr<SourceTargetBuilder> texts_;
  MixedSampler sampler_;
};

/// Rows of an encoder: the rows of mlm with labels one position earlier. [CLS], which has no earlier position, is never
/// chosen.
class ShiftedRows final : public RowMaker {
 public:
  explicit ShiftedRows(std::unique_ptr<RowMaker> masked) : masked_(std::move(masked)) {}

  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const override {
    auto batch = masked_->batch(first, count, draws);
    batch.positions = batch.positions - 1;
    return batch;
  }
  uint64_t size() const override { return masked_->size(); }
  double text_fraction() const override { return masked_->text_fraction(); }
  double random_next_rate() const override { return masked_->random_next_rate(); }

 private:
  std::unique_ptr<RowMaker> masked_;
};

}  // namespace

std::unique_ptr<RowMaker> make_rows(const MntpConfig& config, const RowContext& context) {
  if (!backbone_of(context.model).is_decoder()) return std::make_unique<ShiftedRows>(make_masked_rows(context));
  return std::make_unique<HybridRows>(context, config);
}

}  // namespace cloze

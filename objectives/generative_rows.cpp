#include "objectives/generative_rows.h"

#include <algorithm>

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
    return source_target_batch(in_.model, in_.vocabulary.special.filler(), rows);
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

namespace {

using Lines = std::vector<std::vector<int64_t>>;

/// Lines of ids, padded on the right. `mask`, if given, is set if there is padding.
Tensor padded(const Lines& lines, int64_t filler, Tensor* mask) {
  const auto count = static_cast<int64_t>(lines.size());
  int64_t longest = 1, total = 0;
  for (const auto& line : lines) {
    longest = std::max(longest, static_cast<int64_t>(line.size()));
    total += static_cast<int64_t>(line.size());
  }
  auto ids = at::full({count, longest}, filler, at::kLong);
  for (int64_t r = 0; r < count; ++r)
    std::copy(lines[static_cast<size_t>(r)].begin(), lines[static_cast<size_t>(r)].end(),
              ids.data_ptr<int64_t>() + r * longest);
  if (!mask || total == count * longest) return ids;
  *mask = at::zeros({count, longest}, at::kBool);
  for (int64_t r = 0; r < count; ++r)
    std::fill_n(mask->data_ptr<bool>() + r * longest, lines[static_cast<size_t>(r)].size(), true);
  return ids;
}

int64_t tokens_of(const Lines& lines) {
  int64_t total = 0;
  for (const auto& line : lines) total += static_cast<int64_t>(line.size());
  return total;
}

/// The decoder reads the target shifted right by one.
std::vector<int64_t> shifted(const std::vector<int64_t>& target, const DecodingIds& ids) {
  std::vector<int64_t> out{ids.decoder_starts_with_last_target ? target.back() : ids.decoder_start_token_id};
  out.insert(out.end(), target.begin(), target.end() - 1);
  return out;
}

/// A decoder-only model reads source and target; the last token is a label only.
std::vector<int64_t> joined(const SourceTarget& row) {
  auto out = row.source;
  out.insert(out.end(), row.target.begin(), row.target.end() - 1);
  return out;
}

/// The last source token predicts the first target token.
int64_t prefix_of(const SourceTarget& row) { return std::max<int64_t>(0, static_cast<int64_t>(row.source.size()) - 1); }

/// Position p predicts the next token. A decoder-only model has no input before its first token.
void add_labels(Batch& batch, const std::vector<SourceTarget>& rows) {
  const bool two = batch.decoder_input_ids.defined();
  const int64_t width = (two ? batch.decoder_input_ids : batch.input_ids).size(1);
  std::vector<int64_t> positions, labels;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto& target = rows[r].target;
    const int64_t before = two ? 0 : static_cast<int64_t>(rows[r].source.size()) - 1;
    for (int64_t k = before < 0 ? 1 : 0; k < static_cast<int64_t>(target.size()); ++k) {
      positions.push_back(static_cast<int64_t>(r) * width + before + k);
      labels.push_back(target[static_cast<size_t>(k)]);
    }
  }
  batch.positions = to_tensor(positions);
  batch.labels = to_tensor(labels);
}

}  // namespace

Batch source_target_batch(const ModelConfig& config, int64_t filler, const std::vector<SourceTarget>& rows) {
  const auto& model = backbone_of(config);
  const auto decoding = decoding_ids_of(config);
  Lines inputs, decoder_inputs;
  for (const auto& row : rows) {
    inputs.push_back(model.is_encoder_decoder() ? row.source : joined(row));
    if (model.is_encoder_decoder()) decoder_inputs.push_back(shifted(row.target, decoding));
  }
  Batch batch;
  batch.input_ids = padded(inputs, filler, &batch.attention_mask);
  if (model.is_encoder_decoder()) batch.decoder_input_ids = padded(decoder_inputs, filler, nullptr);
  batch.tokens = tokens_of(inputs) + tokens_of(decoder_inputs);
  if (part_of<PrefixAttention>(config).prefix_lm && !model.is_encoder_decoder()) {
    std::vector<int64_t> prefixes;
    for (const auto& row : rows) prefixes.push_back(prefix_of(row));
    batch.prefix = to_tensor(prefixes);
  }
  add_labels(batch, rows);
  return batch;
}

}  // namespace cloze

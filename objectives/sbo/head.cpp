#include "core/tensor/moved.h"
#include "core/tensor/plain.h"
#include "objectives/objective.h"
#include "objectives/sbo/sbo.h"
#include "objectives/sbo/span_targets.h"

namespace cloze {

SpanTargets span_targets(const Batch& batch, int64_t max_targets) {
  SpanTargets targets;
  const int64_t length = batch.input_ids.size(1);
  const auto& positions = batch.positions;
  const auto ids = batch.input_ids.contiguous();
  const auto tokens = batch.attention_mask.defined() ? batch.attention_mask.sum(1)
                                                     : at::full({batch.input_ids.size(0)}, length, at::kLong);
  const auto* at = positions.data_ptr<int64_t>();
  const auto* id = ids.data_ptr<int64_t>();
  // The first token of a row is [CLS], the last one [SEP]; neither is masked, so their ids are unchanged.
  const auto is_special = [&](int64_t position) {
    const int64_t row = position / length;
    return position % length == 0 || id[position] == id[row * length + tokens.data_ptr<int64_t>()[row] - 1];
  };
  for (int64_t i = 0, count = positions.numel(); i < count;) {
    int64_t end = i + 1;
    while (end < count && at[end] == at[end - 1] + 1 && at[end] % length != 0) ++end;
    const int64_t left = at[i] - 1;
    const int64_t right = at[end - 1] + 1;
    const bool at_row_end =
        at[i] % length == 0 || right % length == 0;  // with mask_special, special tokens are predicted too
    const bool has_targets = !at_row_end && !is_special(left) && !is_special(right);
    for (int64_t k = i; has_targets && k < std::min(end, i + max_targets); ++k) {
      targets.left.push_back(left);
      targets.right.push_back(right);
      targets.position.push_back(k - i);
      targets.prediction.push_back(k);
    }
    i = end;
  }
  return targets;
}

namespace {

/// LN(GELU(W2 LN(GELU(W1 [left; right; position])))) against the token embedding.
struct SpanBoundary final : Objective {
  SpanBoundary(const SboConfig& c, const BackboneConfig& m)
      : Objective(c),
        config(c),
        position_embeddings(
            own_param("position_embeddings", {c.max_pair_targets, c.position_embedding_size}, Init::embedding)),
        first(own("linear1", std::make_shared<Linear>(2 * m.hidden_size + c.position_embedding_size, m.hidden_size))),
        first_norm(
            own("layer_norm1", std::make_shared<Norm>(m.hidden_size, NormConfig{.layer_norm_eps = m.layer_norm_eps}))),
        second(own("linear2", std::make_shared<Linear>(m.hidden_size, m.embedding_width()))),
        second_norm(own("layer_norm2",
                        std::make_shared<Norm>(m.embedding_width(), NormConfig{.layer_norm_eps = m.layer_norm_eps}))),
        bias(own_param("bias", {m.vocab_size}, Init::zero)) {}

  std::string name() const override { return SboConfig::kind; }
  std::vector<LossPart> parts(const Batch& batch) const override {
    return {part_of(batch, span_targets(batch.host(), config.max_pair_targets))};
  }
  LossPart part_of(const Batch& batch, const SpanTargets& targets) const {
    LossPart part{.name = name(), .weight = config.weight, .count = static_cast<int64_t>(targets.position.size())};
    if (batch.weights.defined())
      part.weights =
          batch.weights.index_select(0, moved_to(at::tensor(targets.prediction, at::kLong), batch.weights.device()));
    return part;
  }

  Tensor read_positions(const Batch& batch) const override {
    const auto targets = span_targets(batch, config.max_pair_targets);
    return std::get<0>(
        at::_unique(at::cat({at::tensor(targets.left, at::kLong), at::tensor(targets.right, at::kLong)})));
  }

  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override {
    const auto table = static_cast<double>(backbone.token_embedding().value().numel());
    return {.trained = total(rows, &RowSizes::boundary_predicted) *
                       (first->multiply_adds() + second->multiply_adds() + table)};
  }
  void count_predictions(const Batch& batch, std::vector<RowSizes>& rows) const override {
    const int64_t width = batch.input_ids.size(1);
    for (const int64_t left : span_targets(batch, config.max_pair_targets).left)
      rows[static_cast<size_t>(left / width)].boundary_predicted += 1;
  }

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    const auto targets = span_targets(batch.host(), config.max_pair_targets);
    auto part = part_of(batch, targets);
    if (part.count == 0) {
      part.sum = at::zeros({}, hidden.options().dtype(at::kFloat));
      return {part};
    }
    const auto index = [&](const std::vector<int64_t>& list) {
      return moved_to(at::tensor(list, at::kLong), hidden.device());
    };
    const auto rows = hidden.flatten(0, 1);  // [B T, D]
    const auto position =
        at::embedding(plain::weight(position_embeddings, rows.scalar_type()), index(targets.position));  // [N, P]
    const auto joined =
        at::cat({take_rows(rows, index(targets.left)), take_rows(rows, index(targets.right)), position}, -1);
    const auto once = first_norm->forward(linear_activation(joined, first->weight, first->bias, Activation::gelu));
    const auto twice = second_norm->forward(linear_activation(once, second->weight, second->bias, Activation::gelu));
    const auto predicted = index(targets.prediction);
    fill_by_tokens(part, twice, backbone.token_embedding(), bias, batch.labels.index_select(0, predicted),
                   {batch.positions.index_select(0, predicted), hidden.size(1)}, in_training(config, is_training()));
    return {part};
  }

  /// Empty: without masked spans there is nothing to predict.
  NetworkOutputs outputs(Backbone&, const Tensor&) override { return {}; }

  SboConfig config;
  Param position_embeddings;
  std::shared_ptr<Linear> first;
  std::shared_ptr<Norm> first_norm;
  std::shared_ptr<Linear> second;
  std::shared_ptr<Norm> second_norm;
  Param bias;
};

}  // namespace

std::shared_ptr<Objective> make_head(const SboConfig& config, const HeadContext& in) {
  return std::make_shared<SpanBoundary>(config, in.base);
}

}  // namespace cloze

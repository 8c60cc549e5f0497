#include "core/tensor/moved.h"
#include "models/initialization.h"
#include "objectives/objective.h"
#include "objectives/rtd/replacement_numbers.h"
#include "objectives/rtd/rtd.h"

namespace cloze {

namespace {

/// Replaced token detection, with its generator.
struct ReplacedToken final : Objective {
  ReplacedToken(const RtdConfig& c, const ModelConfig& model, const Backbone& of)
      : Objective(c),
        config(c),
        discriminator(of),
        vocab_size(backbone_of(model).vocab_size),
        act(backbone_of(model).hidden_act) {
    const auto& m = backbone_of(model);
    dense = own("dense", std::make_shared<Linear>(m.hidden_size, m.hidden_size));
    prediction = own("prediction", std::make_shared<Linear>(m.hidden_size, 1));
    if (m.initializer == Initializer::truncated_normal)
      set_xavier(prediction->weight);  // as google-research/electra, whose output layer has the default initializer
    if (c.replace_by != ReplaceBy::generator) return;
    const auto g = generator_of(c, model);
    BackboneParts parts;
    if (c.tie != EmbeddingTie::none) parts.embeddings = of.embedding_tables();
    parts.own_norm = c.tie == EmbeddingTie::tables;
    generator = own("generator", make_backbone(g, parts));
    head = own("generator_head", make_token_head(backbone_of(g)));
    head->transform->weight.set_projection(Projection::other);  // the depth that others are scaled by is not its own
  }

  /// With two stages: first only the generator trains; then the discriminator, from the generator's weights, with the
  /// generator frozen.
  bool generator_only() const { return config.generator_only(step()); }
  bool generator_frozen() const { return config.generator_steps > 0 && !generator_only(); }

  bool before_step(int64_t step, const Rng& rng) override {
    const bool changed = Objective::before_step(step, rng);
    if (config.generator_steps == 0) return changed;
    for (const auto* part : {static_cast<const Layer*>(generator.get()), static_cast<const Layer*>(head.get())})
      for (auto [name, param] : collect_params(*part)) param.set_frozen(generator_frozen());
    if (step != config.generator_steps) return changed;
    at::NoGradGuard no_grad;
    const auto from = collect_params(*generator), to = collect_params(discriminator);
    for (size_t i = 0; i < from.size(); ++i) to[i].param.value().copy_(from[i].param.value());
    return true;
  }
  bool reads_backbone() const override { return !generator_only(); }
  std::vector<int64_t> changes() const override {
    return {config.from_step, config.until_step, config.generator_steps};
  }

  std::string name() const override { return RtdConfig::kind; }
  int64_t scored_batch_size(int64_t) const override { return 32; }

  std::vector<LossPart> parts(const Batch& batch) const override {
    std::vector<LossPart> list;
    if (generator && !generator_frozen() && !batch.replaced.defined())
      list.push_back({.name = "generator",
                      .weight = config.generator_weight,
                      .count = batch.positions.defined() ? batch.positions.numel() : 0,
                      .weights = batch.weights});
    if (!generator_only())
      list.push_back({.name = name(), .weight = config.weight, .count = number_of_classified(batch)});
    return list;
  }

  int64_t number_of_classified(const Batch& batch) const {
    if (of_masked()) return batch.positions.numel();
    const auto& mask = batch.host().attention_mask;
    return mask.defined() ? mask.sum().item<int64_t>() : batch.input_ids.numel();
  }

  /// Held-out losses are over all tokens.
  bool of_masked() const { return is_training() && config.positions == DiscriminatorPositions::masked; }
  Tensor read_positions(const Batch& batch) const override { return of_masked() ? batch.positions : Tensor(); }

  Cost cost(const Backbone&, const std::vector<RowSizes>& rows) const override {
    Cost sum;
    if (generator) {
      auto masked = rows;
      for (auto& row : masked) row.read = row.predicted;
      (generator_frozen() ? sum.frozen : sum.trained) +=
          generator->multiply_adds(masked) +
          total(rows, &RowSizes::predicted) * head->multiply_adds(generator->token_embedding());
    }
    const auto classified = of_masked() ? &RowSizes::predicted : &RowSizes::length;
    if (!generator_only())
      sum.trained += total(rows, classified) * (dense->multiply_adds() + prediction->multiply_adds());
    return sum;
  }

  /// Fills the masked positions with samples and marks those that differ from the text.
  std::vector<LossPart> rewrite(Batch& batch, uint64_t key) override {
    std::vector<LossPart> early;
    if (batch.replaced.defined()) return early;
    const auto drawn = generator ? generate(batch, key, early) : uniform_ids(batch.labels, key);
    if (!drawn.defined()) return early;
    const auto shape = batch.input_ids.sizes();
    batch.replaced = at::zeros_like(batch.input_ids)
                         .flatten()
                         .index_put({batch.positions}, drawn.ne(batch.labels).to(at::kLong))
                         .view(shape);
    batch.input_ids = batch.input_ids.flatten().index_put({batch.positions}, drawn).view(shape);
    return early;
  }

  /// The generator's samples [N] for the masked positions; undefined where only the generator trains. Adds its loss to
  /// `early`, if it trains.
  Tensor generate(const Batch& batch, uint64_t key, std::vector<LossPart>& early) {
    if (batch.unpadded) require_real(batch.host().positions, batch.host().attention_mask);
    const at::AutoGradMode graph(at::GradMode::is_enabled() && !generator_frozen());
    const auto hidden = generator->hidden({.input_ids = batch.input_ids,
                                           .attention_mask = batch.attention_mask,
                                           .padding_is_unread = true,
                                           .unpadded = batch.unpadded,
                                           .token_type_ids = batch.token_type_ids,
                                           .read_positions = batch.positions,
                                           .dropout_key = mix(key, name_hash("generator"))});
    const auto rows = head->transformed(take_rows(hidden.flatten(0, 1), batch.positions));  // [N, E]
    const auto& table = head->table(generator->token_embedding());
    TokenDraw draw{.temperature = config.temperature, .uniform = replacement_numbers(rows.size(0), key)};
    if (generator_frozen()) return draw_tokens(rows, table, head->bias, draw);
    auto& part = early.emplace_back(parts(batch)[0]);
    fill_by_tokens(part, rows, table, head->bias, batch.labels, {batch.positions, batch.input_ids.size(1)},
                   in_training(config.mlm, is_training()), generator_only() ? nullptr : &draw);
    return generator_only() ? Tensor() : draw.drawn;
  }

  /// Random ids of the shape of `labels`, uniform over the vocabulary.
  Tensor uniform_ids(const Tensor& labels, uint64_t key) const {
    Stream stream = Rng(key).stream("replace");
    auto drawn = at::empty_like(labels, at::kCPU);
    for (int64_t i = 0; i < drawn.numel(); ++i)
      drawn.data_ptr<int64_t>()[i] = static_cast<int64_t>(stream.below(static_cast<uint64_t>(vocab_size)));
    return moved_to(drawn, labels.device());
  }

  std::vector<LossPart> losses(Backbone&, const Tensor& hidden, const Batch& batch) override {
    if (generator_only()) return {};
    auto part = parts(batch).back();
    auto rows = hidden.flatten(0, 1);
    auto labels = batch.replaced.flatten();
    auto classified = at::ones_like(labels).cumsum(0) - 1;
    if (of_masked() || batch.attention_mask.defined()) {
      classified = of_masked() ? batch.positions
                               : moved_to(batch.host().attention_mask.flatten().nonzero().flatten(), rows.device());
      rows = take_rows(rows, classified);
      labels = labels.index_select(0, classified);
    }
    const auto logits = scores(rows).to(at::kFloat);  // [M]
    const auto losses =
        at::binary_cross_entropy_with_logits(logits, labels.to(at::kFloat), {}, {}, at::Reduction::None);
    fill_by_answers(part, losses, logits.gt(0), labels, {classified, hidden.size(1)});
    part.detects = true;
    return {part};
  }

  /// [..., D] to [...].
  Tensor scores(const Tensor& hidden) const {
    return prediction->forward(linear_activation(hidden, dense->weight, dense->bias, act)).squeeze(-1);
  }

  NetworkOutputs outputs(Backbone&, const Tensor& hidden) override { return {{"logits", scores(hidden)}}; }

  RtdConfig config;
  const Backbone& discriminator;
  int64_t vocab_size;
  Activation act;
  std::shared_ptr<Linear> dense, prediction;
  std::shared_ptr<Backbone> generator;
  std::shared_ptr<TokenHead> head;
};

}  // namespace

Tensor replacement_numbers(int64_t n, uint64_t key) { return uniform_numbers(n, mix(key, name_hash("replace"))); }

std::shared_ptr<Objective> make_head(const RtdConfig& config, const HeadContext& in) {
  return std::make_shared<ReplacedToken>(config, in.model, in.backbone);
}

}  // namespace cloze

#pragma once
// The LM head, and the loss of next-token objectives.
#include "objectives/objective.h"

namespace cloze {

/// The LM head: the tied token embedding, or an untied output embedding.
struct NextTokenHead : Layer {
  explicit NextTokenHead(const BackboneConfig& m);
  Tensor scaled(const Tensor& hidden) const { return scale == 1 ? hidden : hidden * scale; }
  const Param& table(const Param& token_embedding) const { return decoder.defined() ? decoder : token_embedding; }

  double scale;
  Param decoder, bias;
};

/// Cross entropy of the label at each predicted position, from the hidden state at that position.
struct NextTokenPrediction : Objective {
  NextTokenPrediction(const std::string& kind, const ObjectiveTerms& of_all, const NextTokenTerms& terms,
                      const BackboneConfig& model);

  std::string name() const override { return kind_name; }
  std::string head_name() const override { return "lm"; }
  std::vector<LossPart> parts(const Batch& batch) const override;
  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override;
  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override;
  NetworkOutputs outputs(Backbone& backbone, const Tensor& hidden) override;
  std::optional<VocabularyProjection> projection(const Backbone& backbone, const Tensor& hidden) const override;

 protected:
  /// Fills `part` with the loss at `positions` int64 [N], flat indices into hidden [B, T, D].
  void fill(LossPart& part, const Backbone& backbone, const Tensor& hidden, const Tensor& positions,
            const Tensor& labels) const;

  double weight;
  NextTokenTerms terms;

 private:
  Tensor transformed(const Tensor& hidden) const;
  const Param& table(const Backbone& backbone) const;
  const Param& bias() const { return head ? head->bias : token_head->bias; }

  std::string kind_name;
  std::shared_ptr<NextTokenHead> head;  // exactly one of the two is set
  std::shared_ptr<TokenHead> token_head;
};

/// Cross entropy of the target tokens of a generative objective; `name` is its kind. Throws ConfigError for a model
/// that does not generate.
std::shared_ptr<Objective> make_next_token(const std::string& name, const ObjectiveTerms& of_all,
                                           const NextTokenTerms& terms, const BackboneConfig& model);
template <std::derived_from<NextTokenTerms> Config>
std::shared_ptr<Objective> make_head(const Config& config, const HeadContext& in) {
  return make_next_token(Config::kind, config, config, in.base);
}

}  // namespace cloze

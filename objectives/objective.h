#pragma once
// Factories of the objectives, each defined in the objective's .cpp file, and the helpers that they share.
#include "models/layers/heads.h"
#include "objectives/network.h"

namespace cloze {

std::shared_ptr<Objective> make_mlm(const MlmConfig& config, const BackboneConfig& model);
std::shared_ptr<Objective> make_nsp(const NspConfig& config, const BackboneConfig& model);
std::shared_ptr<Objective> make_sop(const SopConfig& config, const BackboneConfig& model);
std::shared_ptr<Objective> make_rtd(const RtdConfig& config, const ModelConfig& model, const Backbone& backbone);
std::shared_ptr<Objective> make_mntp(const MntpConfig& config, const BackboneConfig& model);
std::shared_ptr<Objective> make_sbo(const SboConfig& config, const BackboneConfig& model);
/// Cross entropy of the targets of the query stream. Throws ConfigError for a model without one.
std::shared_ptr<Objective> make_plm(const PlmConfig& config, const BackboneConfig& model);
/// Cross entropy of the target tokens of a generative objective; `name` is its kind. Throws ConfigError for a model
/// that does not generate.
std::shared_ptr<Objective> make_next_token(const std::string& name, const NextTokenTerms& terms,
                                           const BackboneConfig& model);

/// Flat indices of predictions into [B width], int64 [N].
struct FlatIndices {
  Tensor index;
  int64_t width = 1;
};
/// The z-loss of a network in training; held-out losses have none.
inline LossOptions in_training(const ZLoss& terms, bool is_training) {
  return {.z_loss = is_training ? terms.z_loss : 0};
}

/// Fills `part` with the cross entropy of `hidden` [N, D] against the output embedding: the sum and, without gradients,
/// the individual predictions.
void fill_by_tokens(LossPart& part, const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                    const FlatIndices& flat, const LossOptions& shape = {}, TokenDraw* draw = nullptr);
/// The same for binary classification: `losses` fp32 [N], `predictions` and `labels` [N], nonzero = positive.
void fill_by_answers(LossPart& part, const Tensor& losses, const Tensor& predictions, const Tensor& labels,
                     const FlatIndices& flat);

/// The numbers fp64 [n] in [0, 1) by which the generator of rtd draws the replacements in a pass of this key: the first
/// token whose cumulative probability is above the number.
Tensor replacement_numbers(int64_t n, uint64_t key);

/// The targets of the span boundary objective: the tokens of each run of predicted positions, at most `max_targets` per
/// run. A run next to [CLS] or [SEP] has no targets. Source: facebookresearch/SpanBERT, fairseq/data/masking.py,
/// span_masking.
struct SpanTargets {
  std::vector<int64_t> left, right;  ///< flat indices into [B T] of the tokens next to the run
  std::vector<int64_t> position;     ///< of the token in its run, from 0
  std::vector<int64_t> prediction;   ///< index of the token in Batch::positions
};
/// The targets of a batch whose rows are [CLS] text [SEP], or [CLS] A [SEP] B [SEP].
SpanTargets span_targets(const Batch& batch, int64_t max_targets);

/// The MLM head of `model`.
std::shared_ptr<TokenHead> make_token_head(const BackboneConfig& model);
/// The generator of this discriminator, a model of its family. Source: Clark et al. 2020, section 3.2.
ModelConfig generator_of(const RtdConfig& config, const ModelConfig& discriminator);

}  // namespace cloze

#pragma once
// Makers of objectives; each lives in a file that nobody includes.
#include "models/layers/heads.h"
#include "objectives/network.h"

namespace cloze {

std::shared_ptr<Objective> make_mlm(const MlmConfig& config, const BackboneConfig& model);
std::shared_ptr<Objective> make_nsp(const NspConfig& config, const BackboneConfig& model);
std::shared_ptr<Objective> make_sop(const SopConfig& config, const BackboneConfig& model);
std::shared_ptr<Objective> make_rtd(const RtdConfig& config, const BackboneConfig& model, const Backbone& backbone);
std::shared_ptr<Objective> make_sbo(const SboConfig& config, const BackboneConfig& model);
/// Cross entropy of the tokens that a decoder should write, by whatever text it reads: `name` is the objective's kind.
std::shared_ptr<Objective> make_next_token(const std::string& name, const NextTokenTerms& terms,
                                           const BackboneConfig& model);

/// Where predictions stand: places of the flattened rows [B width], int64 [N].
struct Places {
  Tensor at;
  int64_t width = 1;
};
/// Fills `part` by the cross entropy of `hidden` [N, D] against the token table: its sum and, where no gradient is
/// wanted, its single predictions.
void fill_by_tokens(LossPart& part, const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                    const Places& places, const LossShape& shape = {}, TokenDraw* draw = nullptr);
/// The same of a question of yes or no: `losses` fp32 [N], `answers` and `labels` [N], nonzero = yes.
void fill_by_answers(LossPart& part, const Tensor& losses, const Tensor& answers, const Tensor& labels,
                     const Places& places);

/// What the span boundary objective predicts: tokens of runs of predicted positions, up to `most` of each run. A run
/// next to [CLS] or [SEP] has no targets. Source: facebookresearch/SpanBERT, fairseq/data/masking.py, span_masking.
struct SpanTargets {
  std::vector<int64_t> left, right;  ///< positions next to the run, in the flattened [B T]
  std::vector<int64_t> place;        ///< of the token in its run, from 0
  std::vector<int64_t> prediction;   ///< its number among `positions`
};
/// Of a batch whose rows are [CLS] text [SEP], or [CLS] A [SEP] B [SEP].
SpanTargets span_targets(const Batch& batch, int64_t most);

/// The head that turns hidden states of `model` into tokens.
std::shared_ptr<TokenHead> make_token_head(const BackboneConfig& model);
/// The generator of replaced token detection beside a discriminator. Source: Clark et al. 2020, section 3.2.
BackboneConfig generator_of(const RtdConfig& config, const BackboneConfig& discriminator);

}  // namespace cloze

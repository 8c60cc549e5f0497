#pragma once
// Makers of objectives; each lives in a file that nobody includes.
#include "models/heads.h"
#include "objectives/network.h"

namespace cloze {

std::shared_ptr<Objective> make_mlm(const MlmConfig& config, const EncoderConfig& model);
std::shared_ptr<Objective> make_nsp(const NspConfig& config, const EncoderConfig& model);
std::shared_ptr<Objective> make_sop(const SopConfig& config, const EncoderConfig& model);
std::shared_ptr<Objective> make_rtd(const RtdConfig& config, const EncoderConfig& model, const Backbone& backbone);
std::shared_ptr<Objective> make_sbo(const SboConfig& config, const EncoderConfig& model);
/// Cross entropy of the tokens that a decoder should write, by whatever text it reads: `name` is the objective's kind.
std::shared_ptr<Objective> make_next_token(const std::string& name, const NextTokenTerms& terms, const EncoderConfig& model);

/// What the span boundary objective predicts: tokens of runs of predicted places, up to `most` of each run.
struct SpanTargets {
  std::vector<int64_t> left, right;   ///< places beside the run, in the flattened [B T]
  std::vector<int64_t> place;         ///< of the token in its run, from 0
  std::vector<int64_t> prediction;    ///< its number among `positions`
};
/// positions int64 [N], ascending, in the flattened rows of `length`.
SpanTargets span_targets(const Tensor& positions, int64_t length, int64_t most);

/// The head that turns hidden states of `model` into tokens.
std::shared_ptr<TokenHead> make_token_head(const EncoderConfig& model);
/// The generator of replaced token detection beside a discriminator. Source: Clark et al. 2020, section 3.2.
EncoderConfig generator_of(const RtdConfig& config, const EncoderConfig& discriminator);

}  // namespace cloze

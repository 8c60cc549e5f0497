#pragma once
// Makers of objectives; each lives in a file that nobody includes.
#include "models/heads.h"
#include "objectives/network.h"

namespace cloze {

std::shared_ptr<Objective> make_mlm(const MlmConfig& config, const EncoderConfig& model);
std::shared_ptr<Objective> make_nsp(const NspConfig& config, const EncoderConfig& model);
std::shared_ptr<Objective> make_sop(const SopConfig& config, const EncoderConfig& model);
std::shared_ptr<Objective> make_rtd(const RtdConfig& config, const EncoderConfig& model, const Backbone& backbone);

/// The head that turns hidden states of `model` into tokens.
std::shared_ptr<TokenHead> make_token_head(const EncoderConfig& model);
/// The generator of replaced token detection beside a discriminator. Source: Clark et al. 2020, section 3.2.
EncoderConfig generator_of(const RtdConfig& config, const EncoderConfig& discriminator);

}  // namespace cloze

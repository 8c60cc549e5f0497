#pragma once
// How the published BabyLM program scores a model, without LibTorch.
#include <array>

#include "core/config_rule.h"

namespace cloze {

/// The `--backend` of BabyLM 2026 (github.com/babylm-org/babylm-eval, strict/evaluation_pipeline).
enum class BabylmBackend { causal, mlm, mntp, enc_dec_mask, enc_dec_prefix };
constexpr auto choices(BabylmBackend) {
  using enum BabylmBackend;
  return std::array{
      Choice{causal, "causal", "each token given those before it"}, Choice{mlm, "mlm", "one token masked at a time"},
      Choice{mntp, "mntp", "one token masked at a time, predicted by the position before it"},
      Choice{enc_dec_mask, "enc_dec_mask", "one token masked at a time in the encoder, predicted by the decoder"},
      Choice{enc_dec_prefix, "enc_dec_prefix", "the decoder continues what the encoder read"}};
}

}  // namespace cloze

#pragma once
// What the command line wants of suites, without LibTorch.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "inference/scoring/passage.h"
#include "inference/scoring/pooling.h"
#include "run/checkpoints/chosen_checkpoint.h"
#include "run/config/config.h"

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

/// The suites of `cloze evaluate`, and how runs are evaluated on them; without names it computes losses.
struct SuiteRequest {
  std::vector<std::string> names{};              ///< of suites, or their files and folders
  std::optional<ScoringForm> form{};             ///< none: the run's own
  std::optional<Normalisation> normalisation{};  ///< none: sum
  std::optional<int64_t> layer{};                ///< of embeddings
  std::optional<Pooling> pooling{};              ///< of embeddings; none: mean
  int64_t limit = 0;                             ///< items of each paradigm; 0: all
  std::string keep{};                            ///< table of the items to keep; empty: all
  std::optional<Precision> precision{};          ///< of scores; none: fp32
  std::optional<int64_t> stride{};               ///< of scores; none: a text longer than the model is refused
  std::string cache{}, out{};                    ///< folders; empty: none
  bool paradigms = false;
  bool fast = false;                       ///< of BabyLM: the fast evaluation
  std::optional<BabylmBackend> backend{};  ///< of BabyLM; none: the run's own
  std::string results{};                   ///< of BabyLM: the folder for its files; empty: `results`
};

}  // namespace cloze

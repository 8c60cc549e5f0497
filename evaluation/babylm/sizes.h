#pragma once
// The tracks of the BabyLM Challenge, and how many predictions a submission has; without LibTorch.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

/// The tracks of the BabyLM Challenge.
enum class BabylmTrack { strict_small, strict, interaction };
constexpr auto choices(BabylmTrack) {
  using enum BabylmTrack;
  return std::array{Choice{strict_small, "strict-small", "10 M words of text, checkpoints up to 100 M"},
                    Choice{strict, "strict", "100 M words of text, checkpoints up to 1,000 M"},
                    Choice{interaction, "interaction", "checkpoints as in strict"}};
}

/// Predictions of a task.
struct TaskSize {
  int64_t each = 0;                        ///< of every part, where all have as many
  std::map<std::string, int64_t> parts{};  ///< of parts by their names in lower case; empty: `each`
};

/// The predictions of each task, in the full evaluation and in the fast one.
struct BabylmSizes {
  std::map<std::string, TaskSize> full, fast;  ///< by task
  int64_t acquisition = 0;                     ///< surprisals of each checkpoint
};

/// Those of the published data. Source: BabyLM 2026, strict/evaluation_pipeline/collate_preds.py.
const BabylmSizes& published_sizes();

/// The revisions of a submission, in order: chck_1M to chck_9M, chck_10M to chck_90M, chck_100M, and past strict-small
/// chck_200M to chck_1000M.
std::vector<std::string> babylm_revisions(BabylmTrack track);

}  // namespace cloze

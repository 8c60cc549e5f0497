#pragma once
// The file that a submission to BabyLM uploads: all predictions of a model, and the fast scores of its checkpoints; and
// how many predictions the tracks of the challenge want. Without LibTorch.
// Source: BabyLM 2026, strict/evaluation_pipeline/collate_preds.py, whose bytes it has for the same predictions.
// Differs: the last digits of gains of reading times, which there move with the machine's BLAS.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config_rule.h"
#include "evaluation/suites/request.h"

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

/// What is collated. Empty fields are found: a model is its folder of results, a backend the only one of these.
struct CollateRequest {
  std::string results{};          ///< folder with one of each model (evaluation/babylm/results.h), or that of a model
  std::string model{};            ///< name of one; empty: `results` is its folder
  std::string revision = "main";  ///< whose predictions are submitted
  std::optional<BabylmBackend> backend{};  ///< none: the only one of the results
  BabylmTrack track = BabylmTrack::strict;
  bool fast = false;     ///< also the scores of every revision of the track on the fast evaluation
  std::string data{};    ///< evaluation data, whose `fast_eval` has the right answers; empty: `babylm` of the suites
  bool partial = false;  ///< write what is there
};

/// The file that was written, and what a complete one lacks.
struct Collation {
  std::string file;                 ///< all_full_preds_and_fast_scores_BACKEND.json, or partial_... with faults
  std::vector<std::string> faults;  ///< what is missing or has another size, a sentence each; empty: it is complete
};

/// Writes the file of a model. Throws ConfigError for results of no model, and of none or several backends, DataError
/// that lists all faults, unless `partial`.
Collation collate_babylm(const CollateRequest& request, const BabylmSizes& sizes = published_sizes());

}  // namespace cloze

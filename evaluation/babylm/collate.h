#pragma once
// The file that a submission to BabyLM uploads: all predictions of a model, and the fast scores of its checkpoints.
// Source: BabyLM 2026, strict/evaluation_pipeline/collate_preds.py, whose bytes it has for the same predictions.
// Differs: the last digits of gains of reading times, which there move with the machine's BLAS.
#include <optional>
#include <string>
#include <vector>

#include "evaluation/babylm/sizes.h"
#include "evaluation/suites/request.h"

namespace cloze {

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

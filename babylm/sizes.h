#pragma once
// How many predictions a submission to BabyLM has.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "babylm/track.h"

namespace cloze {

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

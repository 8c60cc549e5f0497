#pragma once
// The ranking tasks of BabyLM's evaluation data.
// Source: BabyLM 2026, strict/evaluation_pipeline/sentence_zero_shot/read_files.py.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/suites/babylm.h"

namespace cloze {

/// One item: the first candidate is the right one.
struct BabylmItem {
  std::string uid;                                            ///< its paradigm
  std::vector<std::pair<std::string, std::string>> groups{};  ///< `field` -> `syntax`, ..., as reports have them
  std::vector<BabylmCandidate> candidates{};
  double ratio = 0;  ///< fraction of people who choose the first candidate (wug)
};

/// How the items of a task are written.
enum class BabylmFormat { blimp, ewok, entity_tracking, wug, comps };

/// A folder of evaluation data and the task that reads it.
struct BabylmDataset {
  std::string task;    ///< `blimp`: `--task` of the published program
  std::string folder;  ///< `blimp_filtered`
  BabylmFormat format;
};

/// The ranking tasks of the full evaluation, or of the fast one, in the order of the published scripts.
const std::vector<BabylmDataset>& babylm_datasets(bool fast);

/// The items of a dataset, from every .jsonl file in `folder` by name; `.xz` and `.gz` are read as they are. Throws
/// DataError with the line of an item that is cut, lacks a field, or has an empty side, and for an empty file.
/// Candidates may be the same, as those of seven pairs of the published BLiMP are.
std::vector<BabylmItem> read_babylm_items(const std::string& folder, const BabylmDataset& dataset);

}  // namespace cloze

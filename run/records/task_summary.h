#pragma once
// `task` in the summary.json of a fine-tuned run: what its valid and test parts found, which tables and studies read.
//
//   {"metric", "best", "floor", "learned", "test", "notes", "rows", "predictions", "xxh3"}
//
// `rows` is the fingerprint of the rows that it was judged on (tasks/rows/prepared_task.h), `predictions` the XXH3 of
// predictions.jsonl, and `xxh3` that of all the others, "layer" and "layers" of probes among them
// (train/pretrain.h). Runs of earlier versions lack the last three.
#include <nlohmann/json.hpp>
#include <string>

namespace cloze {

/// Adds the checksums to what a run found on `rows`; `predictions`: the content of its predictions.jsonl.
void seal_task_summary(nlohmann::json& task, const std::string& rows, const std::string& predictions);

/// What the summary of a fine-tuned run says. Throws DataError for a run that has not judged its test part, and for a
/// summary or predictions other than those that the run wrote.
nlohmann::json read_task_summary(const std::string& run);

}  // namespace cloze

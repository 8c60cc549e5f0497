#include "run/records/task_summary.h"

#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t most_summary_bytes = uint64_t{64} << 20, most_predicted_bytes = uint64_t{2} << 30;

/// The checksum of all but the checksum itself.
std::string hash_of_summary(json task) {
  task.erase("xxh3");
  return hash_hex(json_text(task));
}

}  // namespace

void seal_task_summary(json& task, const std::string& rows, const std::string& predictions) {
  task["rows"] = rows;
  task["predictions"] = hash_hex(predictions);
  task["xxh3"] = hash_of_summary(task);
}

json read_task_summary(const std::string& run) {
  const auto path = run + "/summary.json", predicted = run + "/predictions.jsonl";
  const auto again = concat("; resume the run with `cloze pretrain --run ", run, " --resume`, which judges it again");
  require<DataError>(fs::exists(path), path, ": is missing, so that the run has no figure of its task", again);
  const auto task = value_at(parse_json(read_text(path, most_summary_bytes)), "/task");
  require<DataError>(value_at(task, "/test").is_object() && !string_at(task, "/metric").empty(), path,
                     ": says nothing of the test part of a task", again);
  if (!task.contains("xxh3") && !task.contains("predictions") && !task.contains("rows")) return task;
  require<DataError>(string_at(task, "/xxh3") == hash_of_summary(task), path,
                     ": what it says of the task is damaged or was edited", again);
  require<DataError>(fs::exists(predicted), predicted, ": is missing, and the figures of the task are made of it",
                     again);
  require<DataError>(string_at(task, "/predictions") == hash_hex(read_text(predicted, most_predicted_bytes)), predicted,
                     ": is not what the run predicted", again);
  return task;
}

}  // namespace cloze

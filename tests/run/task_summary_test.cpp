// What the summary of a fine-tuned run says of its task.
#include "run/records/task_summary.h"

#include <filesystem>

#include "core/error.h"
#include "core/json.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

const json judged{
    {"metric", "accuracy"}, {"best", 0.5}, {"learned", true}, {"test", {{"accuracy", {{"value", 0.75}}}}}};
const std::string predictions = "{\"item\": \"a\", \"label\": \"x\"}\n";

std::string summary_of(const json& task) { return json_text(json{{"steps", 3}, {"task", task}}); }

/// A run with a sealed summary.
struct JudgedRun : TempDir {
  JudgedRun() {
    auto task = judged;
    seal_task_summary(task, "of-rows", predictions);
    write("summary.json", summary_of(task));
    write("predictions.jsonl", predictions);
  }
  std::string fault() const {
    try {
      read_task_summary(path);
      return "";
    } catch (const DataError& error) {
      return error.what();
    }
  }
};

}  // namespace

TEST_CASE("a sealed summary is read as it was written, and one of an earlier version as it is", "[run][tasks]") {
  const JudgedRun run;
  const auto read = read_task_summary(run.path);
  CHECK(read["rows"] == "of-rows");
  CHECK(read["test"] == judged["test"]);
  run.write("summary.json", summary_of(judged));
  std::filesystem::remove(run / "predictions.jsonl");
  CHECK(read_task_summary(run.path) == judged);
}

TEST_CASE("every changed figure, changed predictions and those of another run are refused", "[run][tasks]") {
  const JudgedRun run;
  const auto whole = parse_json(read_file(run / "summary.json"))["task"];
  for (const auto& [key, value] : whole.items()) {
    INFO(key);
    auto changed = whole;
    changed[key] = key == "learned" ? json(false) : json("another");
    run.write("summary.json", summary_of(changed));
    CHECK_THAT(run.fault(), Contains("summary.json: "));
    changed.erase(key);  // as a flipped bit in its name
    run.write("summary.json", summary_of(changed));
    CHECK_THAT(run.fault(), Contains("summary.json: "));
  }
  run.write("summary.json", summary_of(whole));
  CHECK(run.fault().empty());
  run.write("predictions.jsonl", "{\"item\": \"a\", \"label\": \"y\"}\n");
  CHECK_THAT(run.fault(), Contains("predictions.jsonl: is not what the run predicted; resume the run with `cloze "
                                   "pretrain --run "));
  std::filesystem::remove(run / "predictions.jsonl");
  CHECK_THAT(run.fault(), Contains("predictions.jsonl: is missing, and the figures of the task are made of it"));
  run.write("summary.json", summary_of(judged));
  auto edited = judged;
  seal_task_summary(edited, "of-rows", predictions);
  edited["best"] = 0.9;
  run.write("summary.json", summary_of(edited));
  CHECK_THAT(run.fault(), Contains("summary.json: what it says of the task is damaged or was edited; resume the run"));
}

// What summary.json and provenance.json say of a run.
#include <algorithm>

#include "tests/support/runs.h"

using namespace cloze;
namespace fs = std::filesystem;
using nlohmann::json;

TEST_CASE("the summary names losses and baseline of each objective, peak memory and the best checkpoint",
          "[train][summary]") {
  const TempDir dir;
  auto config = tiny_run(dir, 4);
  config.evaluation.every = 2;
  const auto report = pretrain(config, {.run = dir / "run"});
  const auto summary = json::parse(read_file(dir / "run/summary.json"));
  const auto last = metrics(dir / "run");
  const auto row = std::find_if(last.rbegin(), last.rend(), [](const json& r) { return r.contains("learning_rate"); });
  REQUIRE(row != last.rend());
  for (const std::string name : {"mlm", "nsp"}) {
    INFO(name);
    CHECK(summary["train"][name] == (*row)[name]);
    CHECK(summary["held_out"][name]["loss"].is_number());
    CHECK(summary["held_out"][name]["baseline"]["loss"].is_number());
  }
  CHECK(summary["train"].size() == 2);
  CHECK(summary["peak_memory_bytes"].get<double>() > 1e7);
  REQUIRE(report.best_step > 0);
  const auto best = summary["best_checkpoint"].get<std::string>();
  CHECK(best + "\n" == read_file(dir / "run/best"));
  CHECK(fs::exists(dir / ("run/" + best + "/weights.safetensors")));
}

TEST_CASE("a finished run that is resumed keeps the training losses of its summary", "[train][summary][resume]") {
  const TempDir dir;
  const auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  const auto before = json::parse(read_file(dir / "run/summary.json"))["train"];
  pretrain(config, {.run = dir / "run", .resume = true});
  CHECK(before.contains("mlm"));
  CHECK(json::parse(read_file(dir / "run/summary.json"))["train"] == before);
}

TEST_CASE("a finished run whose last line of the log is damaged has the training losses of the line before, and warns",
          "[train][summary][resume]") {
  const TempDir dir;
  const auto config = tiny_run(dir, 3);
  pretrain(config, {.run = dir / "run"});
  const auto rows = metrics(dir / "run");
  REQUIRE(rows.size() >= 3);
  REQUIRE(rows[1]["step"] == 2);
  auto text = read_file(dir / "run/metrics.jsonl");
  const auto at = text.rfind("\"learning_rate\"");
  REQUIRE(at != std::string::npos);
  text[text.rfind('\n', at) + 1] = '#';
  dir.write("run/metrics.jsonl", text);
  pretrain(config, {.run = dir / "run", .resume = true});
  CHECK(json::parse(read_file(dir / "run/summary.json"))["train"]["mlm"] == rows[1]["mlm"]);
  CHECK_THAT(read_file(dir / "run/log.txt"),
             Catch::Contains("is damaged; the training losses of summary.json are those of the line before"));
}

TEST_CASE("a resumed run that ends before its next line of the log has the training losses of the line before",
          "[train][summary][resume]") {
  const TempDir dir;
  auto config = tiny_run(dir, 2);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  config.checkpoint.log_every = 100;  // only the first step has a line
  pretrain(config, {.run = dir / "run"});
  const auto before = json::parse(read_file(dir / "run/summary.json"))["train"];
  fs::remove(dir / "run/summary.json");  // as in a run that was stopped
  config.train.budget.steps = 3;
  pretrain(config, {.run = dir / "run", .resume = true});
  CHECK(before.size() == 2);
  CHECK(json::parse(read_file(dir / "run/summary.json"))["train"] == before);
}

TEST_CASE("a run without a best step has no best checkpoint in its summary", "[train][summary]") {
  const TempDir dir;
  auto config = tiny_run(dir, 1);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  config.optimizer.learning_rate = 50;
  REQUIRE(pretrain(config, {.run = dir / "run"}).best_step == 0);
  CHECK(json::parse(read_file(dir / "run/summary.json"))["best_checkpoint"].is_null());
}

TEST_CASE("the provenance names folder, commit and threads", "[train][summary]") {
  const TempDir dir;
  pretrain(tiny_run(dir, 1), {.run = dir / "run", .command_line = "cloze pretrain tiny.yaml"});
  const auto origin = json::parse(read_file(dir / "run/provenance.json"));
  CHECK(origin["command"] == "cloze pretrain tiny.yaml");
  CHECK(origin["folder"] == fs::current_path().string());
  CHECK(origin["threads"] == 2);
  const auto& commit = origin["commit"];
  REQUIRE((commit.is_null() || commit.is_string()));  // null: built outside of a git checkout
  if (commit.is_string()) {
    auto name = commit.get<std::string>();
    if (name.ends_with("-dirty")) name.resize(name.size() - 6);  // built from files that were not committed
    CHECK(name.size() >= 40);
    CHECK(std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isxdigit(c) != 0; }));
  }
}

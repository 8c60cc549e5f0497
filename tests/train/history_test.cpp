// What provenance.json says of the processes that trained a run.
#include "run/records/history.h"

#include "core/text.h"
#include "tests/support/runs.h"

using namespace cloze;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

json recorded(const std::string& run) { return json::parse(read_file(run + "/provenance.json")); }

/// A run whose rates follow no budget.
RunConfig steady_run(const TempDir& dir, int64_t steps) {
  auto config = tiny_run(dir, steps);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  return config;
}

}  // namespace

TEST_CASE("a resume that changes something says so on one line, and every process is in the history",
          "[train][history]") {
  TempDir dir;
  auto config = steady_run(dir, 4);
  const auto run = dir / "run";
  pretrain(config, {.run = run, .command_line = "cloze first"});
  config.optimizer.learning_rate = 0.001;
  config.train.budget.steps = 8;
  pretrain(config, {.run = run, .resume = true, .overwrite_config = true, .command_line = "cloze second"});
  const std::string line =
      "resumed at step 4 with optimizer.learning_rate 0.001 (was 0.003), train.budget.steps 8 (was 4); reports hold it "
      "apart from runs that never changed";
  CHECK_THAT(read_file(run + "/log.txt"), Catch::Contains(line));
  pretrain(config, {.run = run, .resume = true});
  const auto log = read_file(run + "/log.txt");
  CHECK(log.find("resumed at") == log.rfind("resumed at"));
  const auto history = recorded(run)["history"];
  REQUIRE(history.size() == 3);
  CHECK(history[0]["step"] == 0);
  CHECK(history[0]["command"] == "cloze first");
  CHECK(history[0]["changed"].empty());
  CHECK(history[1]["step"] == 4);
  CHECK(history[1]["command"] == "cloze second");
  CHECK(history[1]["changed"][0].dump() == R"({"is":"0.001","key":"optimizer.learning_rate","was":"0.003"})");
  for (const auto* fact : {"cloze", "libtorch", "threads", "machine", "date"}) CHECK(history[1].contains(fact));
  CHECK(history[2]["step"] == 8);
  const auto told = history_of(recorded(run));
  REQUIRE(told.changes.size() == 1);
  CHECK(to_text(told.changes[0]) == "step 4 with optimizer.learning_rate 0.001 (was 0.003)");
}

TEST_CASE("what somebody edited in run.yaml is told and recorded by the resume that follows, and needs no leave",
          "[train][history]") {
  TempDir dir;
  auto config = steady_run(dir, 4);
  const auto run = dir / "run";
  pretrain(config, {.run = run});
  const auto made = read_file(run + "/run.yaml");
  dir.write("run/run.yaml", "# a remark\n" + made);
  pretrain(config, {.run = run, .resume = true});
  CHECK(history_of(recorded(run)).changes.empty());
  config.optimizer.learning_rate = 0.001;
  config.train.budget.steps = 8;
  auto edited = made;
  replace_all(edited, "learning_rate: 0.003", "learning_rate: 0.001");
  replace_all(edited, "    steps: 4\n", "    steps: 8\n");
  REQUIRE(edited.size() == made.size());
  REQUIRE(edited != made);
  dir.write("run/run.yaml", edited);
  pretrain(config, {.run = run, .resume = true});
  CHECK_THAT(
      read_file(run + "/log.txt"),
      Catch::Contains("resumed at step 4 with optimizer.learning_rate 0.001 (was 0.003), train.budget.steps 8 (was 4); "
                      "reports hold it apart"));
  const auto told = history_of(recorded(run));
  REQUIRE(told.changes.size() == 1);
  CHECK(to_text(told.changes[0]) == "step 4 with optimizer.learning_rate 0.001 (was 0.003)");
  pretrain(config, {.run = run, .resume = true});
  CHECK(recorded(run)["history"].back()["changed"].empty());
}

TEST_CASE("of a history with more keys than any config, some are read", "[train][history]") {
  auto changed = json::array();
  for (int i = 0; i < 100'000; ++i) changed.push_back({{"key", concat("k", i)}, {"was", "a"}, {"is", "b"}});
  const json entry{{"step", 3}, {"changed", changed}};
  const auto told = history_of({{"history", {entry, entry}}});
  REQUIRE(told.changes.size() == 1);
  CHECK(told.changes[0].keys.size() == 1000);
}

TEST_CASE("a run without a step left takes no change of its steps, and may be measured and ended otherwise",
          "[train][history][resume]") {
  TempDir dir;
  const auto config = steady_run(dir, 8);
  const auto run = dir / "run";
  pretrain(config, {.run = run});
  const auto resume = [&](RunConfig changed) {
    return pretrain(changed, {.run = run, .resume = true, .overwrite_config = true});
  };
  const auto before = read_file(run + "/run.yaml");
  auto faster = config;
  faster.optimizer.learning_rate = 0.001;
  const auto refusal = run +
                       ": has no step left after step 8, so that nothing would be trained with these changes; raise "
                       "train.budget as well, or train a new run with them:\n  optimizer.learning_rate: 0.003 -> 0.001";
  CHECK_THROWS_WITH(resume(faster), refusal);
  auto shorter = config;
  shorter.train.budget.steps = 6;
  CHECK_THROWS_WITH(resume(shorter), Catch::Contains("train.budget.steps: 8 -> 6"));
  CHECK(read_file(run + "/run.yaml") == before);
  CHECK(history_of(recorded(run)).changes.empty());
  auto measured = config;
  measured.evaluation.sequences = 32;
  CHECK(resume(measured).steps == 8);
  faster.train.budget.steps = 10;
  CHECK(resume(faster).steps == 10);
  auto patient = faster;  // its patience is over at step 3
  patient.evaluation.every = patient.evaluation.patience = 1;
  patient.optimizer.learning_rate = 0;
  patient.train.budget.steps = 12;
  const auto stopped = dir / "stopped";
  const auto end = pretrain(patient, {.run = stopped}).steps;
  CHECK(end < 12);
  patient.optimizer.weight_decay = 0.5;
  CHECK_THROWS_WITH(pretrain(patient, {.run = stopped, .resume = true, .overwrite_config = true}),
                    Catch::Contains("has no step left after step "));
}

TEST_CASE("a resume that is refused leaves the run as it was, whatever is allowed", "[train][history][resume]") {
  TempDir dir;
  auto config = steady_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  const auto files = [&] { return read_file(dir / "run/run.yaml") + read_file(dir / "run/provenance.json"); };
  const auto before = files();
  const auto refused = [&](const RunConfig& wrong, const std::string& sentence) {
    CHECK_THROWS_WITH(pretrain(wrong, {.run = dir / "run", .resume = true, .overwrite_config = true}),
                      Catch::Contains(sentence));
    CHECK(files() == before);
  };
  config.train.budget.steps = 4;
  auto wrong = config;
  as<BertConfig>(wrong.model)->hidden_size = 64;
  refused(wrong, "weights.safetensors: does not fit the model:");
  wrong = config;
  wrong.init.from = dir / "other";
  refused(wrong, "has begun, and a run that goes on keeps what it began with");
  wrong = config;
  as<BertConfig>(wrong.model)->initializer_range = 0.5;
  refused(wrong, "model.initializer_range: 0.02 -> 0.5");
  wrong = config;
  wrong.train.seeds.init = 5;
  refused(wrong, "train.seeds.init: -1 -> 5");
}

TEST_CASE("a budget that is used up ends a run that was stopped before", "[train][history][resume]") {
  TempDir dir;
  auto config = steady_run(dir, 8);
  config.checkpoint.every = 4;
  pretrain(config, {.run = dir / "run"});
  fs::remove_all(dir / "run/step-00000008");  // as where it was killed after step 4
  config.train.budget.steps = 4;
  CHECK(pretrain(config, {.run = dir / "run", .resume = true}).steps == 4);
}

TEST_CASE("what was changed counts from the checkpoint that a run goes on from, where later ones are lost",
          "[train][history][resume]") {
  TempDir dir;
  auto config = steady_run(dir, 8);
  config.checkpoint.every = 4;
  config.checkpoint.keep = 3;
  pretrain(config, {.run = dir / "run"});
  config.optimizer.learning_rate = 0.001;
  config.train.budget.steps = 12;
  pretrain(config, {.run = dir / "run", .resume = true, .overwrite_config = true});
  CHECK(history_of(recorded(dir / "run")).changes.at(0).step == 8);
  for (const auto* later : {"run/step-00000008", "run/step-00000012"}) fs::remove_all(dir / later);
  pretrain(config, {.run = dir / "run", .resume = true});
  CHECK(history_of(recorded(dir / "run")).changes.at(0).step == 4);
}

TEST_CASE("a longer budget is a change of the training once the rates have followed the first", "[train][history]") {
  TempDir dir;
  auto config = steady_run(dir, 4);
  bool counts = false;
  SECTION("constant") {}
  SECTION("linear") {
    config.schedule.shape = LinearSchedule{};
    counts = true;
  }
  SECTION("wsd") {
    config.schedule.shape = WsdSchedule{};
    counts = true;
  }
  pretrain(config, {.run = dir / "run"});
  config.train.budget.steps = 8;
  pretrain(config, {.run = dir / "run", .resume = true});
  CHECK(history_of(recorded(dir / "run")).changes.size() == (counts ? 1 : 0));
  CHECK_THAT(read_file(dir / "run/log.txt"), Catch::Contains("resumed at step 4 with train.budget.steps 8 (was 4)"));
}

TEST_CASE("changed tokens are in the history, and a branch shares that of its run", "[train][history][branch]") {
  TempDir dir;
  auto config = steady_run(dir, 4);
  pretrain(config, {.run = dir / "run"});
  PrepareOptions other;
  other.inputs = {dir.write("other.txt", synthetic_text(50, 10))};
  other.tokenizer = dir / "vocab.txt";
  other.out = dir / "other";
  other.format = TextFormat::lines;
  other.held_out = 0.1;
  other.threads = 1;
  prepare(other);
  config.data.tokens = other.out;
  config.train.budget.steps = 6;
  pretrain(config, {.run = dir / "run", .resume = true, .overwrite_config = true});
  const auto changes = history_of(recorded(dir / "run")).changes;
  REQUIRE(changes.size() == 1);
  REQUIRE(changes[0].keys.size() == 1);
  CHECK(changes[0].keys[0].key == text_key);
  CHECK(changes[0].keys[0].is == recorded(dir / "run")["data"]["fingerprint"]);
  config.train.budget.steps = 8;
  pretrain(config, {.run = dir / "branch", .branch_from = dir / "run"});
  CHECK((history_of(recorded(dir / "branch")).changes.at(0).keys == changes[0].keys));
  CHECK(recorded(dir / "branch")["history"].back()["step"] == 6);
}

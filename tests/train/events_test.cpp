// What a hook is told of a run, and runs that stop when they diverge.
#include <sstream>

#include "tests/support/runs.h"

using namespace cloze;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::vector<json> told(const TempDir& dir) {
  std::vector<json> events;
  std::istringstream lines(read_file(dir / "events"));
  for (std::string line; std::getline(lines, line);) events.push_back(json::parse(line));
  return events;
}

/// The kinds of events, in order.
std::string kinds_of(const std::vector<json>& events) {
  std::string kinds;
  for (const auto& event : events) kinds += event["event"].get<std::string>() + " ";
  return kinds;
}

RunConfig exploding(const TempDir& dir) {
  auto config = tiny_run(dir, 12);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  config.optimizer.learning_rate = 50;
  return config;
}

}  // namespace

TEST_CASE("a hook is told of the start, evaluations, checkpoints and the end of a run", "[train][hook]") {
  const TempDir dir;
  auto config = tiny_run(dir, 6);
  config.evaluation.every = 3;
  config.checkpoint.every = 2;
  const auto report =
      pretrain(config, {.run = dir / "run", .command_line = "cloze x", .hook = "cat >> " + dir / "events"});
  const auto events = told(dir);
  CHECK(kinds_of(events) == "started checkpoint evaluated checkpoint checkpoint evaluated checkpoint finished ");
  const auto &first = events.front(), &evaluated = events[2], &best = events[3], &last = events.back();
  CHECK(first["config"]["optimizer.learning_rate"] == "0.003");
  CHECK(first["command"] == "cloze x");
  CHECK(first["resumed"] == false);
  CHECK(evaluated["step"] == 3);
  CHECK(evaluated["run"] == dir / "run");
  CHECK(evaluated["held_out_loss"].is_number());
  CHECK(evaluated["train"]["mlm"]["loss"].is_number());
  CHECK(best["folder"] == "step-00000003");
  CHECK(best["best"] == true);
  CHECK(last["held_out_loss"] == report.held_out_loss);
  CHECK(last["stopped_by"] == "budget");
  const auto same = pretrain(config, {.run = dir / "quiet"});
  CHECK(same.held_out_loss == report.held_out_loss);
}

TEST_CASE("a hook that fails stops no run, and one that a run fails is told why", "[train][hook]") {
  const TempDir dir;
  const auto config = tiny_run(dir, 2);
  CHECK(pretrain(config, {.run = dir / "run", .hook = "exit 1"}).steps == 2);
  CHECK_THAT(read_file(dir / "run/log.txt"), Catch::Contains("the hook failed at the event 'started' (exit code 1)") &&
                                                 Catch::Contains("the hook failed at the event 'checkpoint'"));
  for (const auto& entry : fs::directory_iterator(dir / "run"))
    if (entry.path().filename().string().starts_with("step-")) fs::remove_all(entry.path());
  CHECK_THROWS(pretrain(config, {.run = dir / "run", .resume = true, .hook = "cat >> " + dir / "events"}));
  const auto events = told(dir);
  CHECK(kinds_of(events) == "failed ");
  CHECK_THAT(events[0]["message"].get<std::string>(), Catch::Contains("no intact checkpoint to continue from"));
  CHECK(events[0]["exit_code"] == 1);
}

TEST_CASE("a run that is to stop when it diverges ends with exit code 3", "[train][divergence][hook]") {
  const TempDir dir;
  auto config = exploding(dir);
  config.checkpoint.every = 1;
  SECTION("it goes on by default, and the hook is told once") {
    CHECK(pretrain(config, {.run = dir / "run", .hook = "cat >> " + dir / "events"}).steps == 12);
    const auto kinds = kinds_of(told(dir));
    CHECK(kinds.find("diverged") != std::string::npos);
    CHECK(kinds.find("diverged") == kinds.rfind("diverged"));
    for (const auto& event : told(dir))
      if (event["event"] == "diverged") CHECK(event["stops"] == false);
  }
  SECTION("it stops") {
    config.train.on_divergence = OnDivergence::stop;
    std::ofstream(dir / "run.yaml") << to_yaml(config);
    CHECK(wait_for(train_in_child({.run = dir / "run"})) == 3);
    CHECK(fs::exists(dir / "run/step-00000001"));
    CHECK_FALSE(fs::exists(dir / "run/step-00000012"));
    CHECK_FALSE(fs::exists(dir / "run/summary.json"));
    const auto rows = read_file(dir / "run/metrics.jsonl");  // the last of which says why the run ended
    CHECK_THAT(rows.substr(rows.rfind('\n', rows.size() - 2) + 1), Catch::Contains("\"diverged\":\"the "));
    try {
      pretrain(config, {.run = dir / "again", .hook = "cat >> " + dir / "events"});
      FAIL("it did not stop");
    } catch (const Diverged& e) {
      CHECK_THAT(e.what(), Catch::Contains("training has diverged") &&
                               Catch::Contains("the run ends here, as train.on_divergence says, and its newest "
                                               "checkpoint is " +
                                               dir / "again/step-0000000"));
    }
    const auto events = told(dir);
    CHECK(events[events.size() - 2]["event"] == "diverged");
    CHECK(events.back()["event"] == "failed");
    CHECK(events.back()["exit_code"] == 3);
  }
  SECTION("it stops where only the held-out losses show it") {
    config.train.on_divergence = OnDivergence::stop;
    config.train.budget.steps = 1;
    CHECK_THROWS_AS(pretrain(config, {.run = dir / "run"}), Diverged);
  }
}

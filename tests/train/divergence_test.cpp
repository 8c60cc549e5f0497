// Runs that diverge with finite losses.
#include <cmath>

#include "tests/support/runs.h"
#include "train/warnings.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A run whose weights leave every sensible range at once, though its losses stay finite.
RunConfig diverging(const TempDir& dir, int64_t steps) {
  auto config = tiny_run(dir, steps);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  config.optimizer.learning_rate = 50;
  return config;
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a loss is far above that of guessing beyond twice ln(vocab_size)", "[train][divergence]") {
  const Guessing guessing{.loss = std::log(100.0)};
  CHECK_FALSE(is_far_above_guessing(guessing.loss, guessing));
  CHECK_FALSE(is_far_above_guessing(1.99 * guessing.loss, guessing));
  CHECK(is_far_above_guessing(2.01 * guessing.loss, guessing));
  CHECK_FALSE(is_far_above_guessing(std::nan(""), guessing));
  CHECK(divergence_warning("loss of mlm", 67506, 40, guessing) ==
        "the loss of mlm at step 40 is 67506, far above ln(vocab_size) = 4.605, that of guessing evenly: training has "
        "diverged, and such a step cannot be the best; start again with a lower optimizer.learning_rate or a longer "
        "schedule.warmup");
}

TEST_CASE("a loss of a task is far above that of guessing beyond ten times as much and 5 more",
          "[train][divergence][tasks]") {
  const Guessing labels{.loss = std::log(2.0), .of_task = true}, values{.loss = 0.1, .of_task = true};
  CHECK_FALSE(is_far_above_guessing(6.9, labels));
  CHECK(is_far_above_guessing(7, labels));
  CHECK_FALSE(is_far_above_guessing(5.09, values));
  CHECK(is_far_above_guessing(5.11, values));
  CHECK(divergence_warning("loss of classification", 158113, 10, labels) ==
        "the loss of classification at step 10 is 158113, far above 0.6931, that of guessing evenly: training has "
        "diverged; start again with a lower optimizer.learning_rate or a longer schedule.warmup");
}

TEST_CASE("divergence is reported once, and such an evaluation is not the best", "[train][divergence]") {
  const TempDir dir;
  auto config = diverging(dir, 12);
  config.evaluation.every = 4;
  const auto report = pretrain(config, {.run = dir / "run"});
  REQUIRE(std::isfinite(report.held_out_loss));
  REQUIRE(is_far_above_guessing(report.held_out[0].loss, {.loss = std::log(21.0)}));
  CHECK(report.best_step == 0);
  CHECK_FALSE(fs::exists(dir / "run/best"));
  const auto log = read_file(dir / "run/log.txt");
  CHECK(occurrences(log, "training has diverged") == 1);
  CHECK(occurrences(log, "(best so far)") == 0);
}

TEST_CASE("divergence that only the held-out losses show is reported", "[train][divergence]") {
  const TempDir dir;
  const auto report = pretrain(diverging(dir, 1), {.run = dir / "run"});  // the loss of step 1 precedes its update
  REQUIRE(is_far_above_guessing(report.held_out[0].loss, {.loss = std::log(21.0)}));
  CHECK(report.best_step == 0);
  CHECK(occurrences(read_file(dir / "run/log.txt"), "the held-out loss of mlm at step 1 is ") == 1);
}

TEST_CASE("a run that learns is not said to have diverged", "[train][divergence]") {
  const TempDir dir;
  const auto report = pretrain(tiny_run(dir, 3), {.run = dir / "run"});
  CHECK(report.best_step == 3);
  CHECK(occurrences(read_file(dir / "run/log.txt"), "diverged") == 0);
}

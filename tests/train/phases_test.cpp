// Phases with rows of another length and number.
#include <fstream>

#include "models/families/xlnet.h"
#include "run/run.h"
#include "run/training_rows.h"
#include "tests/support/runs.h"
#include "train/training.h"
#include "tests/support/objective.h"

using namespace cloze;

namespace {

/// Twelve steps, of which the last six have fewer and shorter rows; every step has the same rate.
RunConfig phased_run(const TempDir& dir) {
  auto config = tiny_run(dir, 12);
  config.objectives = {default_objective<MlmConfig>()};
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  config.train.phases = {{.from = 0.5, .max_seq_length = 16, .batch_size = 4}};
  return config;
}

std::string folder_of_step(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08d", static_cast<int>(step));
  return name;
}

std::string weights_of(const std::string& run, int64_t step) {
  return read_file(run + "/" + folder_of_step(step) + "/weights.safetensors");
}

std::string refusal(const RunConfig& config) {
  try {
    validate(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a phase has rows of its own from its share of the budget on, and epochs are counted on", "[train][phases]") {
  const TempDir dir;
  auto config = phased_run(dir);
  config.checkpoint.every = 6;
  pretrain(config, {.run = dir / "run"});
  const TokenStore store(config.data.tokens, "train");
  const auto size_of = [&](int64_t phase) {
    return static_cast<double>(text_rows(config_of_phase(config, phase), store, {}).size());
  };
  const auto state = load_state(dir / "run/step-00000012", nullptr);
  CHECK(state.phase == 1);
  CHECK(state.phase_start.step == 6);
  CHECK(state.phase_start.epochs == Approx(6 * 8 / size_of(0)));
  CHECK(state.phase_start.sequence % 4 == 0);
  CHECK(static_cast<double>(state.phase_start.sequence) / size_of(1) >= state.phase_start.epochs);
  CHECK(state.sequences == state.phase_start.sequence + 6 * 4);
  const auto rows = metrics(dir / "run");
  CHECK(rows[11]["epochs"].get<double>() == Approx(6 * 8 / size_of(0) + 6 * 4 / size_of(1)));
  const auto tokens = [&](size_t step) { return rows[step]["tokens"].get<int64_t>(); };
  CHECK(tokens(11) - tokens(10) <= 4 * 16);
  CHECK(tokens(5) - tokens(4) > 4 * 16);
  // Up to there it is the run without phases.
  config.train.phases.clear();
  config.train.budget.steps = 6;
  pretrain(config, {.run = dir / "first"});
  CHECK(weights_of(dir / "run", 6) == weights_of(dir / "first", 6));
}

TEST_CASE("a run with phases resumes to the same bits, before, at and after the change", "[train][phases][resume]") {
  const TempDir dir;
  auto config = phased_run(dir);
  config.train.accumulation = 2;
  config.checkpoint.keep = 9;
  config.train.phases.push_back({.from = 0.75, .max_seq_length = 24, .accumulation = 3});
  config.objectives = {objective("{kind: mlm, initial_mlm_probability: 0.4}")};
  pretrain(config, {.run = dir / "whole"});
  for (const int64_t every : {5, 6, 8, 9, 10}) {
    INFO(every);
    config.checkpoint.every = every;
    const auto whole = dir / ("whole" + std::to_string(every)), parts = dir / ("parts" + std::to_string(every));
    pretrain(config, {.run = whole});
    CHECK(weights_of(whole, 12) == weights_of(dir / "whole", 12));
    std::filesystem::copy(whole, parts, std::filesystem::copy_options::recursive);
    const auto kept = folder_of_step(every);
    for (const auto& entry : std::filesystem::directory_iterator(whole)) {
      const auto name = entry.path().filename().string();
      if (is_step_name(name) && name > kept) std::filesystem::remove_all(parts + "/" + name);
    }
    std::ofstream(parts + "/latest") << kept << "\n";
    std::filesystem::remove(parts + "/best");
    pretrain(config, {.run = parts, .resume = true});
    CHECK(weights_of(parts, 12) == weights_of(dir / "whole", 12));
    CHECK(metrics(parts) == metrics(dir / "whole"));
  }
}

TEST_CASE("a run that was resumed with fewer phases than it has begun is refused", "[train][phases][resume]") {
  const TempDir dir;
  auto config = phased_run(dir);
  pretrain(config, {.run = dir / "run"});
  config.train.phases.clear();
  config.train.budget.steps = 14;
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run", .resume = true, .overwrite_config = true}),
                    Catch::Contains("has begun phase 1 of train.phases, which now has 0"));
}

TEST_CASE("phases are refused that come in no order, or whose rows break a rule", "[train][phases]") {
  const TempDir dir;
  auto config = phased_run(dir);
  CHECK(refusal(config) == "accepted");
  config.train.phases[0].from = 0;
  CHECK_THAT(refusal(config), Catch::Contains("train.phases.0.from 0 is not after 0"));
  config = phased_run(dir);
  config.train.phases.push_back({.from = 0.5});
  CHECK_THAT(refusal(config), Catch::Contains("train.phases.1.from 0.5 is not after 0.5"));
  config = phased_run(dir);
  config.train.phases[0].max_seq_length = 64;
  CHECK_THAT(refusal(config), Catch::Contains("train.phases.0: data.max_seq_length 64 is longer than "
                                              "model.max_position_embeddings 32"));
  config.train.phases[0].max_seq_length = 3;
  CHECK_THAT(refusal(config), Catch::Contains("train.phases.0.max_seq_length 3 leaves no room"));
  config = phased_run(dir);
  XlnetConfig xlnet;
  xlnet.mem_len = xlnet.reuse_len = 8;
  config.model = xlnet;
  config.objectives = {default_objective<PlmConfig>()};
  CHECK_THAT(refusal(config), Catch::Contains("train.phases cut the text anew"));
}

TEST_CASE("a branch of a run with phases keeps its budget", "[train][phases][branch]") {
  const TempDir dir;
  auto config = phased_run(dir);
  config.checkpoint.every = 6;
  pretrain(config, {.run = dir / "run"});
  auto longer = config;
  longer.train.budget.steps = 20;
  CHECK_THROWS_WITH(pretrain(longer, {.run = dir / "branch", .branch_from = dir / "run/step-00000006"}),
                    Catch::Contains("train.phases begin at shares of train.budget"));
}

TEST_CASE("the length of a run is known by its steps, else by its epochs or words", "[train][phases]") {
  const TempDir dir;
  const auto config = tiny_run(dir, 7);
  const TokenStore store(config.data.tokens, "train");
  const auto of = [&](const BudgetConfig& budget) {
    auto train = config.train;
    train.budget = budget;
    return training_rows(train, store);
  };
  const auto words = static_cast<int64_t>(*store.train_words());
  CHECK(of({.steps = 7, .epochs = 2}).steps == 7);
  CHECK(of({.steps = 7, .epochs = 2}).epochs == 0);
  CHECK(of({.epochs = 2}).epochs == 2);
  CHECK(of({.words = 3 * words}).epochs == 3);
  CHECK(of({.words = 3 * words, .epochs = 2}).epochs == 2);
  const auto tokens = static_cast<int64_t>(store.num_tokens());
  CHECK(of({.tokens = 3 * tokens}).epochs == 3);
  CHECK(of({.tokens = 3 * tokens, .epochs = 2}).epochs == 2);
  CHECK(of({.minutes = 2}).epochs == 0);
}

TEST_CASE("the share of masked tokens follows a budget in words or tokens", "[train][phases]") {
  const bool is_in_words = GENERATE(true, false);
  const TempDir dir;
  auto config = tiny_run(dir, 0);
  config.objectives = {objective("{kind: mlm, initial_mlm_probability: 0.6, mlm_probability: 0.1}")};
  config.train.budget.steps = 0;
  CHECK_THAT(refusal(config), Catch::Contains("over the steps, epochs, words or tokens of train.budget"));
  const TokenStore store(config.data.tokens, "train");
  if (is_in_words)
    config.train.budget.words = static_cast<int64_t>(*store.train_words());
  else
    config.train.budget.tokens = static_cast<int64_t>(store.num_tokens());
  pretrain(config, {.run = dir / "run"});
  const auto rows = metrics(dir / "run");
  const auto share = [&](size_t first, size_t last) {
    const auto difference = [&](const char* key) {
      return rows[last][key].get<double>() - rows[first][key].get<double>();
    };
    return difference("predicted_tokens") / difference("tokens");
  };
  const size_t steps = rows.size() - 1;  // the last row is of the evaluation
  CHECK(share(0, 4) > 0.5);
  CHECK(share(steps - 5, steps - 1) < (is_in_words ? 0.18 : 0.3));  // special tokens end one in tokens early
}

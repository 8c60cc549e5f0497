#include "run/load_config.h"

#include <cstdlib>

#include "tests/support/runs.h"

using namespace cloze;

namespace {

/// run.yaml as written by a version without these keys.
std::string earlier_yaml(const std::string& written) {
  std::istringstream lines(written);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const auto key = line.substr(0, line.find(':'));
    if (key != "  eos_token_id" && key != "  epsilon_hat" && key != "  decay_score_biases" &&
        key != "  decay_in_warmup")
      text += line + "\n";
  }
  return text;
}

std::string earlier_yaml(const RunConfig& config) { return earlier_yaml(to_yaml(config)); }

RunConfig config_of(const std::string& yaml) { return decode<RunConfig>(ConfigTree::parse(yaml, "config.yaml")); }

}  // namespace

TEST_CASE("a key that is missing in a run.yaml matches the behaviour of its version, not today's preset",
          "[train][config]") {
  TempDir dir;
  const auto yaml = dir / "run/run.yaml";
  const auto read = [&](const std::string& text, const std::vector<std::string>& overrides = {}) {
    dir.write("run/run.yaml", text);
    return decode<RunConfig>(load_run_config(yaml, overrides));
  };
  auto roberta = config_of("like: fairseq-roberta\nmodel: {kind: roberta}\n");
  REQUIRE(roberta.optimizer.epsilon_hat);
  CHECK_FALSE(read(earlier_yaml(roberta)).optimizer.epsilon_hat);
  CHECK(read(to_yaml(roberta)).optimizer.epsilon_hat);
  CHECK(read(earlier_yaml(roberta), {"optimizer.epsilon_hat=true"}).optimizer.epsilon_hat);

  const auto electra = config_of("like: electra\nmodel: {kind: electra}\n");
  REQUIRE(electra.schedule.decay_in_warmup);
  CHECK_FALSE(read(earlier_yaml(electra)).schedule.decay_in_warmup);
  CHECK(read(to_yaml(electra)).schedule.decay_in_warmup);

  for (const std::string kind : {"t5", "xlnet"}) {
    const auto config = config_of("model: {kind: " + kind + "}\nobjectives: []\n");
    REQUIRE_FALSE(config.optimizer.decay_score_biases);
    CHECK(read(earlier_yaml(config)).optimizer.decay_score_biases);
    CHECK_FALSE(read(to_yaml(config)).optimizer.decay_score_biases);
  }
  // A model without such biases does not differ from its preset.
  const auto bert = read(earlier_yaml(config_of("like: google-bert\n")));
  CHECK_FALSE(bert.optimizer.decay_score_biases);
  CHECK(deviations(bert).empty());

  // Files outside run directories follow today's presets; `explain` tells where a value comes from.
  dir.write("run/run.yaml", earlier_yaml(roberta));
  CHECK(decode<RunConfig>(load_config(yaml)).optimizer.epsilon_hat);
  dir.write("run/provenance.json", "{}");
  CHECK_FALSE(decode<RunConfig>(load_config(yaml)).optimizer.epsilon_hat);
  CHECK_THAT(explain<RunConfig>(load_config(yaml), "optimizer.epsilon_hat"),
             Catch::Contains("= false") && Catch::Contains("run/run.yaml (of an earlier version):3:16"));
}

TEST_CASE(
    "a run of an earlier version resumes with its original behaviour, from its own config and from the original file",
    "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 8);
  config.schedule.shape = ScheduleShape::constant;
  config.schedule.warmup = 0;
  fairseq_roberta_optimizer(config.optimizer);
  config.optimizer.like = "fairseq-roberta";
  config.optimizer.epsilon = 1e-2;  // large, so that the form of epsilon matters
  config.optimizer.epsilon_hat = false;
  pretrain(config, {.run = dir / "whole"});
  config.train.budget.steps = 4;
  pretrain(config, {.run = dir / "half"});
  dir.write("half/run.yaml", earlier_yaml(read_file(dir / "half/run.yaml")));
  dir.write("made-from.yaml", earlier_yaml(config));
  for (const std::string file : {"", "made-from.yaml"}) {
    INFO(file);
    const auto run = dir / ("again" + file);
    std::filesystem::copy(dir / "half", run, std::filesystem::copy_options::recursive);
    const auto command = std::string(BINARY_DIR "/cloze --quiet pretrain ") + (file.empty() ? "" : dir / file) +
                         " --run " + run + " --resume --set train.budget.steps=8";
    REQUIRE(std::system(command.c_str()) == 0);
    CHECK(same_files(dir / "whole/step-00000008/weights.safetensors", run + "/step-00000008/weights.safetensors"));
    CHECK_THAT(read_file(run + "/run.yaml"), Catch::Contains("  epsilon_hat: false\n"));
  }
  // A value that a file or a command names is a change, and is rejected.
  const auto named = std::string(BINARY_DIR "/cloze --quiet pretrain --run ") + (dir / "half") +
                     " --resume --set optimizer.epsilon_hat=true 2> " + (dir / "refused.txt");
  CHECK(std::system(named.c_str()) != 0);
  CHECK_THAT(read_file(dir / "refused.txt"), Catch::Contains("optimizer.epsilon_hat: false -> true"));
}

TEST_CASE("a decoder from an earlier version uses the tokenizer's end token", "[train][generate]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  backbone_of(config.model).architecture = Architecture::decoder;
  config.objectives = {default_objective<ClmConfig>()};
  pretrain(config, {.run = dir / "run"});
  const auto end_of = [&] { return backbone_of(open_run(dir / "run").config.model).eos_token_id; };
  const auto end = end_of();
  CHECK(end == 3);
  dir.write("run/run.yaml", earlier_yaml(read_file(dir / "run/run.yaml")));
  CHECK(end_of() == end);
}

TEST_CASE("a family of decoders may predict masks as an encoder only", "[config]") {
  const auto with = [](const std::string& architecture) {
    return config_of("model: {kind: gpt2, architecture: " + architecture +
                     "}\nobjectives: [{kind: mlm}]\ntrain: {budget: {steps: 10}}\nschedule: {warmup: 0}\n");
  };
  CHECK_NOTHROW(validate(with("encoder")));
  CHECK_THROWS_WITH(
      validate(with("decoder")),
      Catch::Contains("objective mlm needs bidirectional attention, and gpt2 is causal; choose clm, or another model"));
}

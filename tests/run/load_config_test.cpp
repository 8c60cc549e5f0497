#include "run/config/load_config.h"

#include <cstdlib>

#include "core/config/config.h"
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

AdamMoments adam_of(const RunConfig& config) { return *part_in<AdamMoments>(config.optimizer.rule); }
bool multiplies_warmup(const RunConfig& config) {
  return part_in<DecayStart>(config.schedule.shape)->multiplies_warmup();
}

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
  REQUIRE(adam_of(roberta).epsilon_hat);
  CHECK_FALSE(adam_of(read(earlier_yaml(roberta))).epsilon_hat);
  CHECK(adam_of(read(to_yaml(roberta))).epsilon_hat);
  CHECK(adam_of(read(earlier_yaml(roberta), {"optimizer.epsilon_hat=true"})).epsilon_hat);

  const auto electra = config_of("like: electra\nmodel: {kind: electra}\n");
  REQUIRE(multiplies_warmup(electra));
  CHECK_FALSE(multiplies_warmup(read(earlier_yaml(electra))));
  CHECK(multiplies_warmup(read(to_yaml(electra))));

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
  CHECK(adam_of(decode<RunConfig>(load_config(yaml))).epsilon_hat);
  dir.write("run/provenance.json", "{}");
  CHECK_FALSE(adam_of(decode<RunConfig>(load_config(yaml))).epsilon_hat);
  CHECK_THAT(explain<RunConfig>(load_config(yaml), "optimizer.epsilon_hat"),
             Catch::Contains("= false") && Catch::Contains("run/run.yaml (of an earlier version):3:16"));
}

TEST_CASE("options of other kinds that an earlier version wrote into a run.yaml are ignored", "[train][config]") {
  TempDir dir;
  const auto yaml = dir / "run/run.yaml";
  dir.write("run/run.yaml",
            "optimizer: {like: '', kind: adafactor, beta1: 0.9, epsilon_hat: false, weight_decay: 0}\n"
            "schedule: {shape: constant, warmup: 2, end_factor: 0.5, decay_in_warmup: true}\n");
  const auto config = decode<RunConfig>(load_run_config(yaml));
  CHECK(part_in<Adafactor>(config.optimizer.rule));
  CHECK(config.optimizer.weight_decay == 0);
  CHECK(config.schedule.warmup == 2);
  CHECK_THROWS_WITH(decode<RunConfig>(load_run_config(yaml, {"optimizer.beta1=0.9"})),
                    Catch::Contains("'optimizer.beta1' is an option of adamw, lamb and lion"));
  CHECK_THROWS_WITH(decode<RunConfig>(load_config(yaml)), Catch::Contains("'optimizer.beta1' is an option"));
  dir.write("run/provenance.json", "{}");
  CHECK_NOTHROW(decode<RunConfig>(load_config(yaml)));
}

TEST_CASE(
    "a run of an earlier version resumes with its original behaviour, from its own config and from the original file",
    "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 8);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  config.optimizer = preset<OptimizerConfig>("fairseq-roberta");
  auto& adam = std::get<AdamW>(config.optimizer.rule);
  adam.epsilon = 1e-2;  // large, so that the form of epsilon matters
  adam.epsilon_hat = false;
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
  CHECK_THROWS_AS(validate(with("decoder")), ConfigError);
}

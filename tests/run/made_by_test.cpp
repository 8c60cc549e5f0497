// What made a checkpoint, against run.yaml and the tokenizer of its run.
#include "run/records/made_by.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "run/records/provenance.h"
#include "tests/support/catch.h"
#include "tests/support/runs.h"
#include "tests/support/tiny.h"
#include "train/pretrain.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A config of a run with one line of its model changed.
std::string with_line(std::string yaml, const std::string& key, const std::string& value) {
  const auto at = yaml.find("\n  " + key + ": ") + 1;
  REQUIRE(at != 0);
  const auto end = yaml.find('\n', at);
  return yaml.replace(at, end - at, "  " + key + ": " + value);
}

/// Makes the checkpoint in a folder one of an earlier version, which says nothing of what made it.
void make_earlier(const std::string& step_folder) {
  const auto path = step_folder + "/manifest.json";
  auto manifest = nlohmann::json::parse(read_file(path));
  manifest["version"] = 1;
  manifest["files"].erase("config.yaml");
  for (const auto* key : {"fingerprint", "tokenizer"}) manifest.erase(key);
  std::ofstream(path) << manifest;
  fs::remove(step_folder + "/config.yaml");
}

}  // namespace

TEST_CASE("a run.yaml with another model than made the checkpoints is refused, and a resume may allow it",
          "[run][made_by]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  const auto run = dir / "run", step = run + "/step-00000002";
  pretrain(config, {.run = run});
  CHECK_NOTHROW(verify_run(run));
  const auto yaml = read_file(run + "/run.yaml");
  CHECK(read_file(step + "/config.yaml") == yaml);
  const std::vector<std::pair<std::string, std::string>> changes{
      {"num_attention_heads", "4"}, {"hidden_act", "relu"}, {"layer_norm_eps", "0.1"}};
  for (const auto& [key, value] : changes) {
    INFO(key);
    dir.write("run/run.yaml", with_line(yaml, key, value));
    const auto refused =
        Catch::StartsWith(run + "/run.yaml: is not the config by which " + step + " was trained (model." + key + ": ");
    CHECK_THROWS_WITH(verify_run(run), refused);
    CHECK_THROWS_WITH(open_run(run), refused);
    CHECK_THROWS_WITH(open_run(step), refused);
    auto changed = decode<RunConfig>(ConfigTree::load(run + "/run.yaml"));
    changed.train.budget.steps = 3;
    CHECK_THROWS_WITH(pretrain(changed, {.run = run, .resume = true}), refused);
  }
  dir.write("run/run.yaml", with_line(yaml, "every", "7"));  // of the evaluation: the weights are the same
  CHECK_NOTHROW(verify_run(run));
  // Another activation, as the user wants it: both checkpoints have made themselves known.
  dir.write("run/run.yaml", yaml);
  backbone_of(config.model).hidden_act = Activation::relu;
  config.train.budget.steps = 4;
  CHECK(pretrain(config, {.run = run, .resume = true, .overwrite_config = true}).steps == 4);
  CHECK_NOTHROW(verify_run(run));
  CHECK_NOTHROW(open_run(step));
  config.train.budget.steps = 5;
  CHECK(pretrain(config, {.run = run, .resume = true}).steps == 5);
  dir.write("run/run.yaml", yaml);  // that of the first two steps
  CHECK_THROWS_WITH(verify_run(run), Catch::Contains("step-00000005 was trained (model.hidden_act: relu -> gelu)"));
}

TEST_CASE("a tokenizer that was put into a run with its provenance is not taken for that of the checkpoints",
          "[run][made_by]") {
  TempDir dir;
  const auto run = dir / "run";
  pretrain(tiny_run(dir, 2), {.run = run});
  auto provenance = nlohmann::json::parse(read_file(run + "/provenance.json"));
  const auto tokenizer = Tokenizer::open(run + "/tokenizer");
  auto words = read_file(run + "/tokenizer/vocab.txt");
  std::swap(words[words.find("wa\n") + 1], words[words.find("wb\n") + 1]);
  const auto other = Tokenizer::open(dir.write("other/vocab.txt", words));
  REQUIRE(other.fingerprint() != tokenizer.fingerprint());
  fs::remove_all(run + "/tokenizer");
  fs::create_directories(run + "/tokenizer");
  other.save(run + "/tokenizer");
  provenance["tokenizer"] = other.fingerprint();
  dir.write("run/provenance.json", provenance.dump());
  const auto refused = Catch::StartsWith(run + "/tokenizer: is not the tokenizer by which " + run + "/step-00000002");
  CHECK_THROWS_WITH(open_run(run), refused);
  CHECK_THROWS_WITH(verify_run(run), refused);
}

TEST_CASE("one fingerprint guards the manifest of a checkpoint, and those of earlier versions are read without it",
          "[run][made_by]") {
  TempDir dir;
  const auto run = dir / "run", step = run + "/step-00000002";
  auto config = tiny_run(dir, 2);
  pretrain(config, {.run = run});
  const auto manifest = read_file(step + "/manifest.json");
  for (size_t at = 0; at < manifest.size(); ++at) {
    if (std::isspace(static_cast<unsigned char>(manifest[at])) != 0) continue;
    auto damaged = manifest;
    damaged[at] ^= 1;
    INFO(damaged);
    dir.write("run/step-00000002/manifest.json", damaged);
    CHECK_THROWS_AS(require_intact(step), CheckpointError);
  }
  dir.write("run/step-00000002/manifest.json", manifest);
  CHECK_NOTHROW(require_intact(step));
  make_earlier(step);
  auto provenance = nlohmann::json::parse(read_file(run + "/provenance.json"));
  provenance.erase("made_by");
  dir.write("run/provenance.json", provenance.dump());
  CHECK_NOTHROW(verify_run(run));
  CHECK_NOTHROW(open_run(run));
  config.train.budget.steps = 3;
  CHECK(pretrain(config, {.run = run, .resume = true}).steps == 3);
  CHECK_NOTHROW(verify_run(run));
}

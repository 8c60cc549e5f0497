// The checkpoints of a run at numbers of words, as model folders.
#include <filesystem>

#include "core/tensor/safetensors.h"
#include "data/store/token_store.h"
#include "interchange/huggingface_classes.h"
#include "interchange/interchange.h"
#include "run/checkpoints/milestones.h"
#include "run/config/load_config.h"
#include "tests/support/runs.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A run of one epoch that keeps its checkpoints after a third and after two thirds of the words, in `dir`/run.
std::string run_with_milestones(const TempDir& dir) {
  auto config = tiny_run(dir, 0);
  config.objectives = {default_objective<MlmConfig>()};
  config.train.budget = {.epochs = 1};
  config.train.ema_decay = 0.9;
  config.checkpoint.keep = 1;
  const auto words = static_cast<int64_t>(*TokenStore(config.data.tokens, "train").train_words());
  config.checkpoint.at_words = {words / 3, 2 * words / 3};
  pretrain(config, {.run = dir / "run"});
  return dir / "run";
}

/// The token embedding of a run's checkpoint, and that of a model folder.
at::Tensor table_of(const std::string& checkpoint) {
  return SafeTensors::open(checkpoint + "/weights.safetensors").get("backbone.embeddings.word").clone();
}
at::Tensor exported_table(const std::string& folder) {
  return SafeTensors::open(folder + "/model.safetensors").get("bert.embeddings.word_embeddings.weight").clone();
}

}  // namespace

TEST_CASE("the configs for BabyLM have models that a submission can have", "[interchange][revisions]") {
  size_t count = 0;
  for (const auto& file : fs::directory_iterator(SOURCE_DIR "/configs/babylm")) {
    INFO(file.path());
    CHECK_NOTHROW(require_huggingface(decode<RunConfig>(load_run_config(file.path().string()))));
    ++count;
  }
  CHECK(count == 3);
}

TEST_CASE("each milestone of a run is exported as a model folder of its name, and main next to them",
          "[interchange][revisions]") {
  const TempDir dir;
  const auto run = run_with_milestones(dir);
  const auto newest = find_checkpoint(run), out = dir / "hf";
  const auto names = export_revisions(run, newest, out);
  const auto milestones = milestones_of(run);
  REQUIRE(milestones.size() == 2);
  REQUIRE(names ==
          std::vector<std::string>{revision_of(milestones[0].words), revision_of(milestones[1].words), "main"});
  for (size_t i = 0; i < 3; ++i) {
    const auto folder = out + "/" + names[i];
    const auto checkpoint = i < 2 ? milestones[i].checkpoint : newest;
    CHECK(exported_table(folder).equal(table_of(checkpoint)));
    CHECK(fs::exists(folder + "/config.json"));
    CHECK(fs::exists(folder + "/tokenizer_config.json"));
  }
  CHECK_FALSE(table_of(milestones[0].checkpoint).equal(table_of(newest)));
  import_huggingface(out + "/" + names[0], dir / "again");
  CHECK(table_of(find_checkpoint(dir / "again")).equal(table_of(milestones[0].checkpoint)));
}

TEST_CASE("revisions are refused as a whole where a folder exists, and replaced on request",
          "[interchange][revisions]") {
  const TempDir dir;
  const auto run = run_with_milestones(dir);
  const auto newest = find_checkpoint(run), out = dir / "hf";
  const auto names = export_revisions(run, newest, out);
  fs::remove_all(out + "/" + names[0]);
  CHECK_THROWS_WITH(export_revisions(run, newest, out),
                    Catch::Contains("already exists") && Catch::Contains("--force"));
  CHECK_FALSE(fs::exists(out + "/" + names[0]));
  std::ofstream(out + "/main/README.md") << "mine";
  export_revisions(run, newest, out, "", /*replace=*/true);
  CHECK(fs::exists(out + "/" + names[0]));
  CHECK(read_file(out + "/main/README.md") == "mine");  // a model card that somebody completed
  CHECK_THROWS_WITH(export_revisions(run, newest, out + "/main"), Catch::Contains("not a folder for the folders"));
  std::ofstream(out + "/notes.txt") << "of the user";
  CHECK_THROWS_WITH(export_revisions(run, newest, out, "", /*replace=*/true), Catch::Contains("it holds notes.txt"));
  CHECK(read_file(out + "/notes.txt") == "of the user");
  CHECK_THROWS_WITH(export_revisions(newest, newest, dir / "x"), Catch::Contains("is not a run directory"));
  auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "plain"});
  CHECK_THROWS_WITH(export_revisions(dir / "plain", find_checkpoint(dir / "plain"), dir / "x"),
                    Catch::Contains("keeps no checkpoint for a number of words") && Catch::Contains("at_words"));
  CHECK_FALSE(fs::exists(dir / "x"));
}

TEST_CASE("revisions of which one cannot be written leave no folder that is in the way of the next try",
          "[interchange][revisions]") {
  const TempDir dir;
  const auto run = run_with_milestones(dir);
  const auto newest = find_checkpoint(run), weights = newest + "/weights.safetensors", out = dir / "hf";
  const auto whole = read_file(weights);
  std::ofstream(weights) << "damaged";
  CHECK_THROWS_AS(export_revisions(run, newest, out), CheckpointError);
  CHECK_FALSE(fs::exists(out));
  std::ofstream(weights) << whole;
  CHECK(export_revisions(run, newest, out).size() == 3);
  std::ofstream(weights) << "damaged";
  CHECK_THROWS_AS(export_revisions(run, newest, out, "", /*replace=*/true), CheckpointError);
  CHECK(exported_table(out + "/main").defined());
}

// Runs that learn from a teacher.
#include <ATen/Parallel.h>

#include <filesystem>

#include "core/tensor/safetensors.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "optimizers/optimizer.h"
#include "run/checkpoints/checksums.h"
#include "run/run.h"
#include "tests/support/runs.h"
#include "tests/train/together.h"
#include "train/inspection/describe.h"

using namespace cloze;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

BertConfig model_of(int64_t layers) {
  auto model = tiny_model<BertConfig>();
  model.num_hidden_layers = layers;
  return model;
}

/// A teacher of two layers in `dir`/teacher, and the config of a student of one.
struct Taught {
  TempDir dir{};
  RunConfig config{};
  explicit Taught(int64_t steps = 3) {
    config = tiny_run(dir, 4);
    config.objectives = {MlmConfig{}};
    config.model = model_of(2);
    pretrain(config, {.run = dir / "teacher"});
    config.model = model_of(1);
    config.distil.teacher = dir / "teacher";
    config.distil.logits = 5;
    config.distil.temperature = 2;
    config.distil.cosine = config.distil.hidden = config.distil.values = 1;
    config.train.budget.steps = steps;
  }
};

std::vector<std::string> names_at(const std::string& checkpoint) {
  return SafeTensors::open(checkpoint + "/weights.safetensors").names();
}

}  // namespace

TEST_CASE("a student comes near to its teacher, and its run stands without it", "[train][distil]") {
  Taught run;
  auto teacher = run.config, longer = run.config;
  teacher.distil = {};
  teacher.model = model_of(2);
  teacher.train.budget.steps = longer.train.budget.steps = 150;
  pretrain(teacher, {.run = run.dir / "learned"});
  longer.distil.teacher = run.dir / "learned";
  longer.optimizer.learning_rate = 1e-2;
  const auto report = pretrain(longer, {.run = run.dir / "student"});
  const auto rows = metrics(run.dir / "student");
  const auto loss = [&](const nlohmann::json& row) { return row.at("distil").at("loss").get<double>(); };
  CHECK(loss(rows.at(rows.size() - 2)) < 0.5 * loss(rows.front()));
  REQUIRE(report.held_out.size() == 1);
  CHECK(report.held_out[0].name == "mlm");
  auto alone = run.config;
  alone.distil = {};
  pretrain(alone, {.run = run.dir / "alone"});
  CHECK(names_at(run.dir / "student/step-00000150") == names_at(run.dir / "alone/step-00000003"));
  fs::remove_all(run.dir / "learned");
  const auto opened = open_run(run.dir / "student");
  CHECK(opened.network->teacher() == nullptr);
  CHECK(opened.state.teacher.checkpoint == run.dir / "learned/step-00000150");
}

TEST_CASE("a student that is killed resumes to the same bits, also where both were moved", "[train][distil][resume]") {
  Taught run;
  auto config = run.config;
  config.model = model_of(1);
  as<BertConfig>(config.model)->hidden_size = 16;  // states are compared through a layer
  config.distil.cosine = 0;
  config.train.budget.steps = 300;
  config.checkpoint.every = 20;
  check_killed_run(config, run.dir, "step-00000020", "step-00000300", {"weights.safetensors", "optimizer.safetensors"});
  const auto names = names_at(run.dir / "a/step-00000300");
  CHECK(std::ranges::count(names, "distil.hidden.weight") == 1);
  CHECK_NOTHROW(open_run(run.dir / "a"));
  config.train.budget.steps = 310;
  fs::create_directory(run.dir / "moved");
  for (const auto* name : {"a", "teacher"}) fs::rename(run.dir / name, run.dir / (std::string("moved/") + name));
  CHECK_NOTHROW(pretrain(config, {.run = run.dir / "moved/a", .resume = true}));
}

TEST_CASE("a student has the same bits on several threads and processes", "[train][distil][processes]") {
  Taught run;
  run.config.train.precision = Precision::bf16;
  for (const int threads : {1, 3}) {
    run.config.train.threads = threads;
    pretrain(run.config, {.run = run.dir / ("threads" + std::to_string(threads))});
  }
  at::set_num_threads(2);
  CHECK(same_files(run.dir / "threads1/step-00000003/weights.safetensors",
                   run.dir / "threads3/step-00000003/weights.safetensors"));
  const std::string runs = run.dir / "runs";
  fs::create_directory(runs);
  run.config.train.parts = 4;
  run.config.train.threads = 1;
  write_config(run.config, runs, "student");
  check_processes(runs, {2, 4}, "step-00000003");
}

TEST_CASE("a student takes the same steps with plain operators", "[train][distil][plain]") {
  Taught run(4);
  pretrain(run.config, {.run = run.dir / "fused"});
  set_fused(false);
  pretrain(run.config, {.run = run.dir / "plain"});
  set_fused(true);
  const auto fused = metrics(run.dir / "fused"), plain = metrics(run.dir / "plain");
  for (size_t i = 0; i < 4; ++i)
    CHECK(plain[i].at("grad_norm").get<double>() == Approx(fused[i].at("grad_norm").get<double>()).epsilon(1e-4));
}

TEST_CASE("layers of a run that is deeper begin a network, evenly spaced, last or listed", "[train][distil][init]") {
  Taught run;
  auto deep = run.config;
  deep.distil = {};
  deep.model = model_of(4);
  pretrain(deep, {.run = run.dir / "deep"});
  auto config = deep;
  config.model = model_of(2);
  config.init.from = run.dir / "deep";
  config.train.budget.steps = 1;
  config.optimizer.learning_rate = 0;
  const auto deep_weights = SafeTensors::open(run.dir / "deep/step-00000003/weights.safetensors");
  const auto check = [&](const std::vector<int64_t>& layers, std::pair<int, int> wanted) {
    config.init.layers = layers;
    const auto name = run.dir / concat("from", wanted.first, wanted.second);
    pretrain(config, {.run = name});
    const auto weights = SafeTensors::open(name + "/step-00000001/weights.safetensors");
    const auto of = [](int layer) { return concat("backbone.stack.", layer, ".intermediate.weight"); };
    CHECK(at::equal(weights.get(of(0)), deep_weights.get(of(wanted.first - 1))));
    CHECK(at::equal(weights.get(of(1)), deep_weights.get(of(wanted.second - 1))));
    CHECK(at::equal(weights.get("backbone.embeddings.word"), deep_weights.get("backbone.embeddings.word")));
  };
  check({evenly_spaced}, {2, 4});
  check({the_last}, {3, 4});
  check({1, 4}, {1, 4});
  config.model = model_of(3);
  config.init.layers = {evenly_spaced};
  CHECK_THROWS_WITH(pretrain(config, {.run = run.dir / "uneven"}),
                    Contains("init.layers: " + (run.dir / "deep") + " has 4 layers, which 3 do not divide"));
}

TEST_CASE("a teacher that a run cannot learn from is said before anything is made", "[train][distil]") {
  Taught run;
  const auto refused = [&](const std::string& sentence, const std::function<void(RunConfig&)>& change) {
    auto config = run.config;
    change(config);
    INFO(sentence);
    CHECK_THROWS_WITH(pretrain(config, {.run = run.dir / "student"}), Contains(sentence));
    CHECK_FALSE(fs::exists(run.dir / "student/run.yaml"));
  };
  refused("is neither a run directory", [&](auto& c) { c.distil.teacher = run.dir / "nothing"; });
  refused("reads 32 tokens at most, and data.max_seq_length is 40; shorten the rows, or name another teacher",
          [](auto& c) {
            c.data.max_seq_length = 40;
            as<BertConfig>(c.model)->max_position_embeddings = 40;
          });
  PrepareOptions options;
  options.inputs = {run.dir / "text.txt"};
  options.out = run.dir / "others";
  options.format = TextFormat::lines;
  options.held_out = 0.1;
  options.threads = 1;
  options.vocab_size = 60;
  prepare(options);
  refused(
      ": reads another tokenizer than " + (run.dir / "others") + ", so that its tokens are others; prepare the text",
      [&](auto& c) { c.data.tokens = run.dir / "others"; });
  refused("has 2 layers, fewer than the 3 of this network", [](auto& c) { c.model = model_of(3); });
  refused(
      "distil.teacher is not given, and distil has losses; name the run to learn from with --set distil.teacher=RUN",
      [](auto& c) { c.distil.teacher = ""; });
  refused("no loss of distil has a factor above 0",
          [](auto& c) { c.distil.logits = c.distil.cosine = c.distil.hidden = c.distil.values = 0; });
  refused("distil.scores, distil.attention and distil.values read what train.gradient_checkpointing does not keep",
          [](auto& c) { c.train.gradient_checkpointing = true; });
  refused("distil.layers is empty", [](auto& c) { c.distil.layers.clear(); });
  refused("distil.logits compares logits of tokens or of a task, and rtd has none; set it to 0", [](auto& c) {
    c.objectives = {RtdConfig{}};
    c.model = tiny_model<ElectraConfig>();
  });
  refused("init.layers are those of another run; name it with init.from", [](auto& c) { c.init.layers = {the_last}; });
}

TEST_CASE("a teacher that has other weights by now, or is gone, ends a resume", "[train][distil]") {
  Taught run;
  pretrain(run.config, {.run = run.dir / "student"});
  auto longer = run.config;
  longer.train.budget.steps = 5;
  const auto weights = weights_fingerprint(run.dir / "teacher");
  auto other = run.config;
  other.distil = {};
  other.model = model_of(2);
  other.train.seed = 9;
  other.train.budget.steps = 4;
  fs::rename(run.dir / "teacher", run.dir / "elsewhere");
  CHECK_THROWS_WITH(
      pretrain(longer, {.run = run.dir / "student", .resume = true}),
      Contains("student: learns from ") && Contains("which is not there any more; restore it") && Contains(weights));
  pretrain(other, {.run = run.dir / "teacher"});
  CHECK_THROWS_WITH(pretrain(longer, {.run = run.dir / "student", .resume = true}),
                    Contains("which has others by now; restore it"));
}

TEST_CASE("the description of a student has the cost and the memory of its teacher", "[train][distil]") {
  Taught run;
  auto alone = run.config;
  alone.distil = {};
  const auto taught = describe_run(run.config), plain = describe_run(alone);
  CHECK(taught.parameters == plain.parameters);
  CHECK(taught.flops_per_step > 1.5 * plain.flops_per_step);
  CHECK(taught.teacher_bytes > 4 * plain.parameters);
  CHECK_THAT(to_text(taught), Contains(", teacher "));
  run.config.data.tokens = "";
  CHECK(describe_run(run.config).parameters == plain.parameters);  // by the vocabulary of the teacher
}

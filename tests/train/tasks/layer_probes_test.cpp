// Runs that train a linear probe on every layer of another run.
#include <algorithm>
#include <fstream>

#include "core/tensor/safetensors.h"
#include "evaluation/tasks/judged_task.h"
#include "finetune/chosen.h"
#include "objectives/kinds.h"
#include "run/checkpoints/chosen_checkpoint.h"
#include "run/config/load_config.h"
#include "run/run.h"
#include "tasks/rows/prepared_task.h"
#include "tests/support/runs.h"
#include "tests/train/tasks/trained.h"
#include "tests/train/together.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

/// Texts whose label is that of their first word: `early` for those of the first half of the language, else `late`.
std::string early_and_late(int items, uint64_t seed) {
  auto stream = Rng(seed).stream("texts");
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < items; ++i) {
    const auto first = stream.below(16), length = 2 + stream.below(5);
    lines += std::string("w") + static_cast<char>('a' + first);
    for (uint64_t k = 0; k < length; ++k) lines += std::string(" w") + static_cast<char>('a' + stream.below(16));
    lines += first < 8 ? "\tearly\n" : "\tlate\n";
  }
  return lines;
}

/// A pretrained run of two layers and the parts of a task, each made once.
struct ProbedWorld {
  TempDir dir{};
  RunConfig base{};
  ProbedWorld() {
    base = tiny_run(dir, 20);
    as<BertConfig>(base.model)->num_hidden_layers = 2;
    base.schedule.shape = ConstantSchedule{};
    base.schedule.warmup = 0;
    finetune(base, {.run = dir / "base"});
    set_log_file("");
    dir.write("train.tsv", early_and_late(43, 1));
    dir.write("valid.tsv", early_and_late(21, 2));
    dir.write("test.tsv", early_and_late(24, 3));
    std::string tags;
    for (int i = 0; i < 12; ++i) {
      const auto low = static_cast<char>('a' + i % 8), high = static_cast<char>('i' + i % 8);
      tags += concat("w", low, " LOW\nw", high, " HIGH\nw", low, " LOW\n\n");
    }
    dir.write("tags.conll", tags);
  }
};
ProbedWorld& probed_world() {
  static ProbedWorld made;
  return made;
}

constexpr const char* early_task =
    "task: early\nkind: classification\ndata: {train: train.tsv, valid: valid.tsv, test: test.tsv, text: text, label: "
    "label}\n";

/// The config of a run with probes of these layers, whose steps clip gradients and have dropout in the heads.
RunConfig probing(const TempDir& dir, const std::vector<int64_t>& layer, const std::string& yaml = early_task) {
  auto& world = probed_world();
  const auto task = open_task(world.dir.write("task.yaml", yaml));
  const auto tokenizer = Tokenizer::open(world.base.data.tokens + "/tokenizer");
  auto config = world.base;
  config.model = decode<RunConfig>(load_run_config(world.dir / "base/run.yaml")).model;
  const auto made = prepare_task(task, tokenizer, special_token_template(tokenizer, config.model), dir / "rows");
  TaskHeadTerms terms;
  terms.labels = task.labels.names;
  terms.layer = layer;
  terms.classifier_dropout = 0.1;
  config.init = {.from = world.dir / "base", .probe = true};
  config.objectives = {task_head_objective(name_of(task.config.kind), terms)};
  config.data.tokens = dir / "rows";
  config.task = {.name = task.config.task,
                 .file = task.file,
                 .like = "none",
                 .metric = "accuracy",
                 .fingerprint = made.fingerprint};
  config.optimizer.learning_rate = 1e-2;
  config.optimizer.max_grad_norm = 0.2;
  config.train.precision = Precision::fp32;
  config.train.budget = {};
  config.train.budget.epochs = 3;
  config.train.batch_size = 8;
  config.evaluation.every = 6;  // an epoch of 43 items
  config.checkpoint.every = 6;
  config.checkpoint.keep = 9;
  return config;
}

Tensor weights_in(const std::string& run, const std::string& name, const char* step = "step-00000018") {
  return SafeTensors::open(run + "/" + step + "/weights.safetensors").get(name);
}

/// The scores on the valid part by step.
std::map<int64_t, double> accuracies_on_valid(const std::string& run) {
  std::map<int64_t, double> found;
  for (const auto& row : metrics(run))
    if (row.contains("held_out")) found[row["step"]] = row["suites"]["early-valid"]["accuracy"]["value"];
  return found;
}

}  // namespace

TEST_CASE("probes of all layers end in the bits of those that are trained alone, and the backbone keeps its own",
          "[train][tasks][probe]") {
  const TempDir dir;
  const auto all = finetune(probing(dir, {every_layer}), {.run = dir / "all"});
  REQUIRE(all.task["layers"].size() == 3);
  double best = 0;
  for (int64_t k = 0; k < 3; ++k) {
    const auto name = concat("alone", k);
    const auto alone = finetune(probing(dir, {k}), {.run = dir / name});
    for (const auto* part : {"weight", "bias"}) {
      const auto parameter = concat("classification.layer", k, ".", part);
      CHECK(at::equal(weights_in(dir / "all", parameter), weights_in(dir / name, parameter)));
    }
    const auto& point = all.task["layers"][static_cast<size_t>(k)];
    CHECK(point["layer"] == k);
    const auto of_alone = accuracies_on_valid(dir / name).at(all.best_step);
    CHECK(point["valid"]["value"].get<double>() == Approx(of_alone));
    CHECK(point["valid"]["count"] == 21);
    CHECK(point["test"]["count"] == 24);
    best = std::max(best, of_alone);
    CHECK_FALSE(alone.task.contains("layers"));
  }
  const auto layer = all.task["layer"].get<size_t>();
  CHECK(all.task["layers"][layer]["valid"]["value"].get<double>() == Approx(best));
  CHECK(all.task["best"].get<double>() == Approx(best));
  CHECK(all.task["test"]["accuracy"]["value"] == all.task["layers"][layer]["test"]["value"]);
  const auto before = SafeTensors::open(probed_world().dir / "base/step-00000020/weights.safetensors"),
             after = SafeTensors::open(dir / "all/step-00000018/weights.safetensors");
  const auto is_base = [](const std::string& name) {
    return name.starts_with("backbone.") && !name.starts_with("backbone.pooler.");
  };
  CHECK(std::ranges::none_of(after.names(), is_base));
  int held = 0;
  const auto opened = open_chosen(dir / "all/step-00000018", CheckpointChoice::newest);
  for (const auto& [name, param] : collect_params(*opened.network)) {
    INFO(name);
    if (!is_base(name)) continue;
    CHECK(at::equal(param.value(), before.get(name)));
    ++held;
  }
  CHECK(held > 20);
}

TEST_CASE("a run of probes says which layer is the best on valid, with its test figure, and is judged as that layer",
          "[train][tasks][probe]") {
  const TempDir dir;
  set_log_level(LogLevel::normal);
  const auto report = finetune(probing(dir, {every_layer}), {.run = dir / "run"});
  set_log_level(LogLevel::quiet);
  const auto layer = report.task["layer"].get<int64_t>();
  const auto log = read_file(dir / "run/log.txt");
  CHECK_THAT(log, Contains("the states that the probes read are computed once: ") &&
                      Contains(concat("the best of 3 layers on the valid part is ", layer, ", with accuracy ")) &&
                      Contains("; its test figure is "));
  CHECK_THAT(read_file(dir / "run/layers.svg"), Contains("early: accuracy by layer"));
  CHECK(json::parse(read_file(dir / "run/summary.json"))["task"] == report.task);
  const auto opened = open_run(dir / "run");
  CHECK(chosen_on_valid(opened.state).probed_layer == layer);
  const auto& probes = *probes_of(*opened.network);
  CHECK(probes.layers()[probes.chosen()] == layer);
  const auto task = judged_task(opened.config.data.tokens, opened.config.objectives);
  const auto judged =
      judge_split(*opened.network, task, read_prepared_split(opened.config.data.tokens, "test"), /*resamples=*/0);
  CHECK(score_of(judged.scores, "accuracy")->value ==
        report.task["layers"][static_cast<size_t>(layer)]["test"]["value"].get<double>());
}

TEST_CASE("a run of probes resumes to the same bits within an epoch and at its end", "[train][tasks][probe][resume]") {
  const TempDir dir;
  auto config = probing(dir, {every_layer});
  config.train.budget = {};
  config.train.budget.steps = 18;
  finetune(config, {.run = dir / "whole"});
  for (const int64_t at : {4, 6}) {
    auto half = config;
    half.train.budget.steps = at;
    const auto parts = dir / concat("parts", at);
    finetune(half, {.run = parts});
    const auto report = finetune(config, {.run = parts, .resume = true});
    for (const auto* file : {"weights.safetensors", "optimizer.safetensors"})
      CHECK(same_files(dir / (std::string("whole/step-00000018/") + file), parts + "/step-00000018/" + file));
    if (at == 6) CHECK(same_files(dir / "whole/predictions.jsonl", parts + "/predictions.jsonl"));
    CHECK(report.task["layers"].size() == 3);
  }
}

TEST_CASE("probes that diverged have no figure, and their run ends with a curve of none", "[train][tasks][probe]") {
  const TempDir dir;
  auto config = probing(dir, {every_layer});
  config.train.on_nonfinite = OnNonFinite::skip;
  config.optimizer.learning_rate = 1000;
  config.optimizer.weight_decay = 10;  // each step makes the weights 10,000 times as large
  config.evaluation.every = config.checkpoint.every = 0;
  CHECK(finetune(config, {.run = dir / "run"}).best_step == 0);
  const auto task = json::parse(read_file(dir / "run/summary.json"))["task"];
  CHECK(task["learned"] == false);
  CHECK(task["test"]["accuracy"]["value"].is_null());
  REQUIRE(task["layers"].size() == 3);
  for (const auto& point : task["layers"]) CHECK(point["test"]["value"].is_null());
}

TEST_CASE("the same bits of probes for any number of workers and threads", "[train][tasks][probe]") {
  const TempDir dir;
  auto config = probing(dir, {every_layer});
  finetune(config, {.run = dir / "a"});
  config.train.workers = 3;
  config.train.threads = 1;
  finetune(config, {.run = dir / "b"});
  CHECK(same_files(dir / "a/step-00000018/weights.safetensors", dir / "b/step-00000018/weights.safetensors"));
}

TEST_CASE("the same bytes of probes on 1 and 2 processes, each probe clipped by its own norm",
          "[train][tasks][probe][processes]") {
  const TempDir dir;
  auto config = probing(dir, {every_layer});
  config.optimizer.max_grad_norm = 0.01;
  config.train.parts = 2;
  config.train.threads = 1;
  const std::string runs = dir / "runs";
  std::filesystem::create_directory(runs);
  write_config(config, runs, "probes");
  check_processes(runs, {2}, "step-00000018");
}

TEST_CASE("tags have probes at the first token of each word", "[train][tasks][probe]") {
  const TempDir dir;
  auto config = probing(dir, {every_layer},
                        "task: early\nkind: tagging\ndata: {train: tags.conll, valid: tags.conll, test: tags.conll}\n");
  config.optimizer.max_grad_norm = 1;
  config.train.budget.epochs = 60;
  config.evaluation.every = config.checkpoint.every = 120;  // the last step alone, at which all layers have learned
  const auto report = finetune(config, {.run = dir / "run"});
  CHECK(report.task["layers"][0]["test"]["value"] == 1);  // the tag of a word is in its embedding
  CHECK(report.task["layers"][0]["test"]["count"] == 36);
}

TEST_CASE("the probe of a layer whose network would be trained is refused", "[train][tasks][probe]") {
  const TempDir dir;
  auto config = probing(dir, {1});
  config.init.probe = false;
  CHECK_THROWS_WITH(validate(config),
                    Contains("objectives.0.layer has the probe of a layer, and init.probe is false, so that the layers "
                             "would be trained; set init.probe=true, or leave layer out"));
}

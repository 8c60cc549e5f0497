// Runs that several processes train together.
#include <filesystem>
#include <set>

#include "models/families/families.h"
#include "objectives/kinds.h"
#include "optimizers/rules.h"
#include "tests/distributed/rank_case.h"
#include "tests/support/families.h"
#include "tests/support/mems.h"
#include "tests/train/together.h"
#include "train/shares.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A step of four parts, of which each has a batch.
RunConfig in_four_parts(RunConfig config, int64_t steps) {
  config.train.batch_size = 8;
  config.train.parts = 4;
  config.train.threads = 1;
  config.train.budget = {.steps = steps};
  config.checkpoint.every = 0;
  config.checkpoint.log_every = 1;
  config.evaluation.every = 0;
  return config;
}

}  // namespace

TEST_CASE("a run of every family has the same bytes on 1, 2, 3 and 4 processes", "[train][processes]") {
  TempDir dir;
  const auto base = tiny_run(dir, 3);
  const auto marked = prepare_marked(dir);
  const std::string runs = dir / "runs";
  fs::create_directory(runs);
  for (const auto& family : every_family())
    write_config(in_four_parts(run_of(family, base, marked), 3), runs, family.name);
  check_processes(runs, {2, 3, 4}, "step-00000003");
}

TEST_CASE(
    "every optimizer, averages, phases, mems, unequal parts and clipping give the same bytes on 1, 2 and 4 processes",
    "[train][processes]") {
  TempDir dir;
  const auto base = in_four_parts(tiny_run(dir, 4), 4);
  const std::string runs = dir / "runs";
  fs::create_directory(runs);
  const auto with = [&](const std::string& name, const std::function<void(RunConfig&)>& change) {
    auto config = base;
    change(config);
    write_config(config, runs, name);
  };
  with("lamb", [](RunConfig& config) { config.optimizer.rule = Lamb{}; });
  with("adafactor", [](RunConfig& config) { config.optimizer.rule = Adafactor{}; });
  with("lion", [](RunConfig& config) { config.optimizer.rule = Lion{}; });
  with("muon", [](RunConfig& config) {
    config.optimizer.groups = {ParameterGroup{}};
    config.optimizer.groups[0].rule = Muon{};
    config.optimizer.groups[0].role = Role::weight;
  });
  with("average", [](RunConfig& config) { config.train.ema_decay = 0.9; });
  with("clipped", [](RunConfig& config) { config.optimizer.max_grad_norm = 0.01; });
  with("unequal", [](RunConfig& config) {
    config.train.batch_size = 3;
    config.train.accumulation = 6;
  });
  with("phases",
       [](RunConfig& config) { config.train.phases = {{.from = 0.5, .max_seq_length = 16, .batch_size = 12}}; });
  with("two-stage", [](RunConfig& config) {
    auto model = tiny_model<ElectraConfig>();
    model.embedding_size = model.hidden_size;
    RtdConfig rtd;
    rtd.generator_steps = 2;
    rtd.generator_hidden_size = rtd.generator_layers = 1;
    rtd.tie = EmbeddingTie::none;
    config.model = model;
    config.objectives = {rtd};
  });
  with("mems", carry_mems);
  check_processes(runs, {2, 4}, "step-00000004");
}

TEST_CASE("a step in eight parts has the same bytes on 1, 2, 4 and 8 processes", "[train][processes]") {
  TempDir dir;
  const auto base = tiny_run(dir, 3);
  const auto marked = prepare_marked(dir);
  const std::string runs = dir / "runs";
  fs::create_directory(runs);
  const std::set<std::string> chosen{"bert", "albert", "electra", "t5", "performer"};
  for (const auto& family : every_family()) {
    if (!chosen.contains(family.name)) continue;
    auto config = in_four_parts(run_of(family, base, marked), 3);
    config.train.batch_size = 16;
    config.train.parts = 8;
    write_config(config, runs, family.name);
  }
  auto mems = in_four_parts(base, 3);
  mems.train.parts = 8;
  mems.train.batch_size = 16;
  carry_mems(mems);
  write_config(mems, runs, "mems");
  check_processes(runs, {2, 4, 8}, "step-00000003");
}

TEST_CASE("parts that are added as they come give the same bytes again, others than in order, and the same losses",
          "[train][processes]") {
  TempDir dir;
  auto config = in_four_parts(tiny_run(dir, 3), 3);
  const std::string runs = dir / "runs";
  fs::create_directory(runs);
  write_config(config, runs, "in-order");
  config.train.deterministic = false;
  for (const auto* name : {"as-they-come", "again"}) write_config(config, runs, name);
  train_by(3, runs);
  const auto run = runs + "/as-they-come-3", in_order = runs + "/in-order-3";
  CHECK(differing_files(run, runs + "/again-3", "step-00000003") == "");
  CHECK_THAT(differing_files(run, in_order, "step-00000003"), Catch::Contains("weights.safetensors"));
  CHECK_THAT(read_file(run + "/log.txt"),
             Catch::Contains("train.deterministic is false: the weights depend on the number of processes"));
  const auto rows = metrics(run), expected = metrics(in_order);
  REQUIRE(rows.size() == expected.size());
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].contains("loss")) CHECK(rows[i]["loss"].get<double>() == Approx(expected[i]["loss"].get<double>()));
}

TEST_CASE("a run goes on at other numbers of processes to the bytes of one that was never stopped",
          "[train][processes][resume]") {
  TempDir dir;
  auto config = in_four_parts(tiny_run(dir, 6), 6);
  carry_mems(config);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  const Quiet silent;
  pretrain(config, {.run = dir / "whole"});
  const std::string runs = dir / "runs";
  fs::create_directory(runs);
  int64_t steps = 0;
  for (const int64_t size : {4, 3, 2}) {
    config.train.budget.steps = steps += 2;
    write_config(config, runs, "run");
    train_by(size, runs);
    if (size > 2) fs::rename(concat(runs, "/run-", size), concat(runs, "/run-", size - 1));
  }
  CHECK(differing_files(dir / "whole", runs + "/run-2", "step-00000006") == "");
}

TEST_CASE("a run that begins on several processes has as many parts, and no more can go on with it",
          "[train][processes]") {
  TempDir dir;
  auto config = in_four_parts(tiny_run(dir, 1), 1);
  config.train.parts = 1;
  const std::string runs = dir / "runs";
  fs::create_directory(runs);
  write_config(config, runs, "run");
  train_by(2, runs);
  CHECK_THAT(read_file(runs + "/run-2/run.yaml"), Catch::Contains("parts: 2"));
  fs::rename(runs + "/run-2", runs + "/run-3");
  for (const auto& end : Ranks("train", 3, {.argument = runs}).ends())
    CHECK_THAT(end.said, Catch::StartsWith("train.parts is 2, and 3 processes cannot each have a part of a step; "
                                           "start 2 at most"));
}

TEST_CASE("forward passes are divided into parts, or refused with sizes that can be", "[train][processes]") {
  RunConfig config;
  config.train.budget.steps = 1;
  const auto step = [&](int64_t batch_size, int64_t accumulation, int64_t parts) {
    config.train.batch_size = batch_size;
    config.train.accumulation = accumulation;
    config.train.parts = parts;
    const auto made = config_of_phase(config, 0).train;
    return std::pair(made.batch_size, made.accumulation);
  };
  CHECK(step(32, 1, 1) == std::pair<int64_t, int64_t>(32, 1));
  CHECK(step(32, 1, 4) == std::pair<int64_t, int64_t>(8, 4));
  CHECK(step(32, 2, 4) == std::pair<int64_t, int64_t>(16, 4));
  CHECK(step(30, 4, 6) == std::pair<int64_t, int64_t>(10, 12));
  CHECK(step(32, 6, 4) == std::pair<int64_t, int64_t>(32, 6));
  config.train.batch_size = 32;
  config.train.accumulation = 1;
  config.train.parts = 3;
  CHECK_THROWS_WITH(validate(config), Catch::Contains("train.parts 3 divide each forward pass by 3, and "
                                                      "train.batch_size is 32; set train.batch_size=30 or 33"));
}

namespace {

/// Processes of which the second tells of other weights.
class Disagreeing final : public Communicator {
 public:
  Disagreeing() : Communicator(0, 2, 0, 2) {}
  std::string name_of(int64_t rank) const override { return concat("rank ", rank, " on HOST"); }
  std::string network() const override { return ""; }
  void sum_slices(const Tensor&, const std::vector<Tensor>&, int64_t, const SliceBounds&) override {}
  void gather(const Tensor&, const SliceBounds&) override {}
  void broadcast(const Tensor&) override {}
  void move(const Tensor&, int64_t, int64_t) override {}
  std::vector<std::vector<double>> exchange(const std::vector<double>& own) override { return {own, {own[0] + 1}}; }
  std::string broadcast_text(const std::string& text) override { return text; }
  void fail_for_all(const std::string&, int) override {}
};

}  // namespace

TEST_CASE("a process with other weights than the first is named before anything is saved", "[train][processes]") {
  auto model = tiny_model<BertConfig>();
  model.vocab_size = 30;
  Network network(model, {default_objective<MlmConfig>()});
  FlatParameters flat(collect_params(network), at::kCPU);
  Disagreeing processes;
  CHECK_THROWS_WITH(Shares(processes, {.parts = 2}, flat).require_equal_weights(),
                    Catch::StartsWith("the weights of rank 1 on HOST are not those of rank 0 on HOST ("));
}

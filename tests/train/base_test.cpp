// What a run keeps of the network that it begins with: it costs nothing, and checkpoints name it.
#include <filesystem>
#include <set>

#include "core/json.h"
#include "core/tensor/safetensors.h"
#include "objectives/network.h"
#include "optimizers/optimizer.h"
#include "run/checkpoints/base.h"
#include "run/checkpoints/checksums.h"
#include "tests/support/families.h"
#include "tests/support/runs.h"

using namespace cloze;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

SafeTensors weights_at(const std::string& run, int64_t step) {
  char name[64];
  std::snprintf(name, sizeof name, "/step-%08ld/weights.safetensors", static_cast<long>(step));
  return SafeTensors::open(run + name);
}

/// The names of the parameters that freeze.layers keeps.
std::vector<std::string> kept_names(const RunConfig& config, int64_t layers) {
  auto model = config.model;
  backbone_of(model).vocab_size = 70;
  Network network(model, config.objectives);
  freeze_layers(collect_params(network), layers);
  std::vector<std::string> names;
  for (const auto& [name, param] : base_params(collect_params(network))) names.push_back(name);
  return names;
}

/// A run of two steps from `run`/base.
RunConfig continued(RunConfig config, const std::string& from) {
  config.init.from = from;
  config.train.budget.steps = 2;
  config.optimizer.max_grad_norm = 0;  // of norms the order of the parameters counts
  config.schedule.warmup = 0;
  return config;
}

/// One that keeps the embeddings and a layer, in `dir`/frozen.
struct Frozen {
  TempDir dir{};
  RunConfig config{};
  Frozen() {
    const auto base = tiny_run(dir, 2);
    pretrain(base, {.run = dir / "base"});
    config = continued(base, dir / "base");
    config.freeze.layers = 1;
    pretrain(config, {.run = dir / "frozen"});
  }
};

}  // namespace

TEST_CASE("what is kept costs nothing, and beside it every family is trained to the same bits", "[train][base]") {
  TempDir dir;
  auto base = tiny_run(dir, 1);
  const auto marked = prepare_marked(dir);
  for (const auto& family : every_family()) {
    INFO(family.name);
    auto config = run_of(family, base, marked);
    config.train.gradient_checkpointing = family.name.ends_with("t") || family.name == "lstm";
    const auto from = dir / (family.name + "/base");
    pretrain(config, {.run = from});
    const int64_t layers = family.name == "albert" ? 0 : 1;  // its layers share weights
    auto frozen = continued(config, from), zero = frozen;
    frozen.freeze.layers = layers;
    ParameterGroup still{zero.optimizer};
    still.learning_rate = still.weight_decay = 0;
    still.names = kept_names(config, layers);
    zero.optimizer.groups = {still};
    pretrain(frozen, {.run = from + "-frozen"});
    pretrain(zero, {.run = from + "-zero"});
    const auto own = weights_at(from + "-frozen", 2), all = weights_at(from + "-zero", 2);
    std::set<std::string> missing;
    for (const auto& name : all.names()) missing.insert(name);
    for (const auto& name : own.names()) {
      CHECK(at::equal(own.get(name), all.get(name)));
      missing.erase(name);
    }
    CHECK(missing == std::set<std::string>(still.names.begin(), still.names.end()));
    for (const auto& [name, param] : collect_params(*open_run(from + "-frozen").network))
      CHECK(at::equal(param.value(), all.get(name)));
  }
}

TEST_CASE("what is kept has no gradient and no moments", "[train][base]") {
  auto model = every_family()[0].model;
  backbone_of(model).vocab_size = 70;
  Network network(model, every_family()[0].objectives);
  const auto all = collect_params(network);
  freeze_layers(all, 1);
  FlatParameters flat(all, at::kCPU);
  int64_t trained = 0;
  for (const auto& [name, param] : own_params(all)) trained += param.value().numel();
  CHECK(flat.count() == trained);
  CHECK(flat.grads.numel() < trained + 16 * std::ssize(all));
  const Optimizer optimizer({}, flat);
  for (const auto& [name, moment] : optimizer.state()) CHECK_THAT(name, !Contains("backbone.stack.0."));
  for (const auto& [name, param] : base_params(all)) CHECK_FALSE(param.value().grad().defined());
}

TEST_CASE("a run finds its base where both were moved, and by its weights where its best checkpoint is another",
          "[train][base]") {
  Frozen run;
  auto longer = tiny_run(run.dir, 3);
  fs::create_directory(run.dir / "moved");
  fs::rename(run.dir / "base", run.dir / "moved/base");
  fs::rename(run.dir / "frozen", run.dir / "moved/frozen");
  CHECK_NOTHROW(open_run(run.dir / "moved/frozen"));
  fs::rename(run.dir / "moved/base/step-00000002", run.dir / "moved/base/step-00000001");
  CHECK_NOTHROW(open_run(run.dir / "moved/frozen"));
}

TEST_CASE("a base that is gone or has other weights is said", "[train][base]") {
  Frozen run;
  fs::rename(run.dir / "base", run.dir / "elsewhere");
  CHECK_THROWS_WITH(open_run(run.dir / "frozen"), Contains(run.dir / "frozen: keeps weights of ") &&
                                                      Contains("which is not there any more; restore it") &&
                                                      Contains(weights_fingerprint(run.dir / "elsewhere")));
  auto other = tiny_run(run.dir, 2);
  other.train.seed = 5;
  pretrain(other, {.run = run.dir / "base"});
  CHECK_THROWS_WITH(open_run(run.dir / "frozen"), Contains("which has others by now; restore it"));
}

TEST_CASE("a checkpoint that holds what is kept, too, as earlier versions wrote them, is opened without its base",
          "[train][base]") {
  Frozen run;
  const auto opened = open_run(run.dir / "frozen");
  auto state = opened.state;
  state.base = {};
  state.step = 3;
  save_checkpoint(run.dir / "frozen", state, collect_params(*opened.network), {});
  fs::remove_all(run.dir / "base");
  const auto again = open_run(run.dir / "frozen/step-00000003");
  const auto before = collect_params(*opened.network), now = collect_params(*again.network);
  for (size_t i = 0; i < now.size(); ++i) CHECK(at::equal(now[i].param.value(), before[i].param.value()));
}

TEST_CASE("what the other run does not have cannot be kept", "[train][base]") {
  Frozen run;
  auto config = run.config;
  as<BertConfig>(config.model)->type_vocab_size = 3;
  CHECK_THROWS_WITH(
      pretrain(config, {.run = run.dir / "drawn"}),
      Contains("backbone.embeddings.token_type is not trained, and ") && Contains("has only a part of it"));
}

TEST_CASE("a run that keeps layers and is killed resumes to the same bits", "[train][base][resume]") {
  Frozen run;
  auto config = run.config;
  config.train.budget.steps = 300;
  config.checkpoint.every = 20;
  check_killed_run(config, run.dir, "step-00000020", "step-00000300", {"weights.safetensors", "optimizer.safetensors"});
}

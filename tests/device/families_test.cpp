// Every family on the stand-in for a GPU, beside the processor.
#include "core/error.h"
#include "tests/support/families.h"
#include "tests/support/fake_cuda/counts.h"
#include "tests/support/runs.h"

using namespace cloze;

namespace {

/// What a step without a line of the log asks of the GPU.
struct StepCounts {
  int64_t operators, syncs;
};

/// At most, of each family of `every_family` in bf16: what was counted last. A change that needs fewer lowers them.
const std::map<std::string, StepCounts> step_limits{
    {"bert", {155, 2}},      {"spanbert", {169, 2}},    {"roberta", {127, 2}},    {"albert", {158, 2}},
    {"electra", {268, 2}},   {"distilbert", {117, 2}},  {"longformer", {230, 2}}, {"bigbird", {446, 2}},
    {"performer", {333, 2}}, {"linformer", {266, 2}},   {"distances", {220, 2}},  {"alibi", {149, 2}},
    {"keyed", {231, 2}},     {"modernbert", {175, 2}},  {"gpt2", {110, 2}},       {"gpt2-rotary", {114, 2}},
    {"t5", {330, 2}},        {"t5-untied", {330, 2}},   {"bart", {235, 2}},       {"mbart", {287, 2}},
    {"pegasus", {255, 2}},   {"transformer", {225, 2}}, {"xlnet", {219, 2}},      {"lstm", {384, 2}},
    {"mntp", {154, 2}},
};

/// With twelve layers, of encoder and decoder each: what is wanted.
const std::map<std::string, StepCounts> deep_limits{
    {"bert", {700, 2}}, {"electra", {1500, 2}}, {"longformer", {2000, 2}}, {"t5", {1500, 2}}, {"xlnet", {1500, 2}}};

/// Those of tests/support, and a decoder whose rows are made bidirectional by a prefix.
std::vector<FamilyCase> every_case() {
  auto all = every_family();
  const auto decoder = std::ranges::find(all, "gpt2", &FamilyCase::name)->model;
  all.push_back({"mntp", decoder, {default_objective<MntpConfig>()}});
  return all;
}

/// Three steps whose log has a line of the first alone.
RunConfig gpu_base(const TempDir& dir) {
  auto base = tiny_run(dir, 3);
  base.checkpoint.log_every = 100;
  base.schedule.warmup = 0;
  std::get<AdamW>(base.optimizer.rule).epsilon = 1e-3;  // gradients that are zero up to rounding must not make steps
  base.optimizer.learning_rate = 1e-3;
  base.train.dropout_masks = DropoutMasks::exact;
  return base;
}

/// The counts of one of the last two steps of a run of three.
StepCounts counts_of_step(RunConfig config, const std::string& run) {
  fake_cuda::reset_counts();
  pretrain(config, {.run = run});
  const auto three = fake_cuda::counts();
  CHECK(three.mixed == fake_cuda::CountsByName{});
  CHECK(three.unordered == fake_cuda::CountsByName{});
  config.train.budget.steps = 1;
  fake_cuda::reset_counts();
  pretrain(config, {.run = run + "-one"});
  const auto one = fake_cuda::counts();
  return {(fake_cuda::total(three.operators) - fake_cuda::total(one.operators)) / 2,
          (fake_cuda::total(three.syncs) - fake_cuda::total(one.syncs)) / 2};
}

/// Holds the losses of a run, in training and held-out, and its gradient norms to those of another.
void check_metrics(const std::string& run, const std::string& expected, double loss_error, double norm_error) {
  const auto rows = metrics(run), wanted = metrics(expected);
  REQUIRE(rows.size() == wanted.size());
  const auto check = [&](size_t row, const char* key, double error) {
    if (!wanted[row].contains(key)) return 0;
    CHECK(rows[row].at(key).get<double>() == Approx(wanted[row].at(key).get<double>()).epsilon(error));
    return 1;
  };
  int checked = 0;
  for (size_t row = 0; row < wanted.size(); ++row)
    checked +=
        check(row, "loss", loss_error) + check(row, "held_out_loss", loss_error) + check(row, "grad_norm", norm_error);
  CHECK(checked >= 3);
}

/// No dropout of attention, whose masks a GPU draws by itself.
void keep_attention(ModelConfig& model) {
  const auto keep = [](auto& own) {
    if constexpr (requires { own.attention_probs_dropout_prob; }) own.attention_probs_dropout_prob = 0;
  };
  std::visit(keep, *model);
}

}  // namespace

TEST_CASE("every family has the losses of the CPU on a GPU", "[device]") {
  TempDir dir;
  auto base = gpu_base(dir);
  base.train.precision = Precision::fp32;
  const auto marked = prepare_marked(dir);
  for (const auto& family : every_case()) {
    INFO(family.name);
    auto config = run_of(family, base, marked);
    const auto on_cpu = dir / (family.name + "-cpu"), on_gpu = dir / (family.name + "-gpu");
    pretrain(config, {.run = on_cpu});
    config.train.device = "cuda";
    pretrain(config, {.run = on_gpu});
    check_metrics(on_gpu, on_cpu, 1e-5, 1e-4);
  }
}

TEST_CASE("every family has the losses of the CPU on a GPU in bf16, which adds in one order and seldom waits",
          "[device]") {
  TempDir dir;
  auto base = gpu_base(dir);
  base.train.precision = Precision::bf16;
  base.train.dropout_masks = DropoutMasks::fast;
  const auto marked = prepare_marked(dir);
  for (const auto& family : every_case()) {
    INFO(family.name);
    auto config = run_of(family, base, marked);
    keep_attention(config.model);
    pretrain(config, {.run = dir / (family.name + "-cpu")});
    config.train.device = "cuda";
    const auto counted = counts_of_step(config, dir / (family.name + "-gpu"));
    CHECK(counted.operators <= step_limits.at(family.name).operators);
    CHECK(counted.syncs <= step_limits.at(family.name).syncs);
    check_metrics(dir / (family.name + "-gpu"), dir / (family.name + "-cpu"), 5e-3, 0.1);
  }
}

TEST_CASE("what is trained beside matrices that stay has the losses of the CPU on a GPU", "[device][adaptation]") {
  TempDir dir;
  auto base = gpu_base(dir);
  base.train.precision = Precision::fp32;
  const auto marked = prepare_marked(dir);
  const auto families = every_family();
  for (const std::string name : {"bert", "gpt2-rotary", "t5", "bart", "xlnet"}) {
    INFO(name);
    auto config = run_of(*std::ranges::find(families, name, &FamilyCase::name), base, marked);
    const auto from = dir / name;
    pretrain(config, {.run = from});
    config.init.from = from;
    config.optimizer.learning_rate = 1e-2;
    for (const AdaptationConfig& kind :
         {AdaptationConfig(LoraAdaptation{.dropout = 0.2, .targets = {"query", "value", "intermediate", "output"}}),
          AdaptationConfig(BitfitAdaptation{})}) {
      if (name == "t5" && std::holds_alternative<BitfitAdaptation>(kind)) continue;  // it has no biases
      config.adaptation.kind = kind;
      const auto run = from + "-" + kind_in(kind);
      config.train.device = "cpu";
      pretrain(config, {.run = run + "-cpu"});
      config.train.device = "cuda";
      pretrain(config, {.run = run + "-gpu"});
      check_metrics(run + "-gpu", run + "-cpu", 1e-5, 1e-4);
    }
  }
}

TEST_CASE("what a step of twelve layers asks of a GPU is bounded", "[device]") {
  TempDir dir;
  auto base = gpu_base(dir);
  base.train.precision = Precision::bf16;
  base.train.device = "cuda";
  base.train.dropout_masks = DropoutMasks::fast;
  const auto marked = prepare_marked(dir);
  for (const auto& family : every_case()) {
    const auto limit = deep_limits.find(family.name);
    if (limit == deep_limits.end()) continue;
    INFO(family.name);
    auto config = run_of(family, base, marked);
    dynamic_cast<TransformerConfig&>(backbone_of(config.model)).num_hidden_layers = 12;
    const auto counted = counts_of_step(config, dir / family.name);
    CHECK(counted.operators <= limit->second.operators);
    CHECK(counted.syncs <= limit->second.syncs);
  }
}

TEST_CASE("a position of padding that is read is refused before a GPU computes", "[device]") {
  auto model = every_family().front().model;
  backbone_of(model).vocab_size = 9;
  Network network(model, {default_objective<MlmConfig>()});
  Batch batch;
  batch.input_ids = at::ones({2, 4}, at::kLong);
  batch.attention_mask = at::tensor(std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 0}).view({2, 4}).to(at::kBool);
  batch.positions = at::tensor(std::vector<int64_t>{1, 7}, at::kLong);
  batch.labels = at::ones({2}, at::kLong);
  batch.on_host = std::make_shared<const Batch>(batch);
  batch.unpadded = std::make_shared<const UnpaddedRows>(unpad_rows(batch.attention_mask)->to(at::Device("cuda:0")));
  CHECK_THROWS_AS(network.losses(batch, 0), ShapeError);
}

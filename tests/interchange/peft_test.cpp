// Adapters of peft: out and in again, and what is refused.
#include "interchange/peft.h"

#include <fstream>

#include "core/file.h"
#include "core/json.h"
#include "core/tensor/safetensors.h"
#include "run/checkpoints/checksums.h"
#include "tests/support/close_to.h"
#include "tests/support/families.h"
#include "tests/support/runs.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

/// A run of a family, and one that trains factors beside it, in `dir`/NAME and `dir`/NAME-lora.
void train_adapter(const TempDir& dir, const std::string& name, const LoraAdaptation& lora) {
  static const auto marked = [] {
    static TempDir kept;
    tiny_run(kept, 1);
    return prepare_marked(kept);
  }();
  const auto families = every_family();
  const auto& family = *std::ranges::find(families, name, &FamilyCase::name);
  auto config = run_of(family, tiny_run(dir, 1), marked);
  pretrain(config, {.run = dir / name});
  config.init.from = dir / name;
  config.adaptation.kind = lora;
  config.optimizer.learning_rate = 0.1;
  config.schedule.warmup = 0;
  config.train.budget.steps = 3;
  pretrain(config, {.run = dir / (name + "-lora")});
}

json config_in(const std::string& folder) { return parse_json(read_text(folder + "/adapter_config.json")); }

void write_config(const std::string& folder, const json& config) {
  std::ofstream(folder + "/adapter_config.json") << json_text(config);
}

}  // namespace

TEST_CASE("an adapter that goes out to peft comes in again with the same weights", "[interchange][adaptation]") {
  TempDir dir;
  for (const std::string name : {"bert", "gpt2", "t5", "modernbert", "bart"}) {
    INFO(name);
    train_adapter(dir, name, {.rank = 3, .alpha = 6, .targets = {"query", "value", "intermediate"}});
    const auto run = dir / (name + "-lora"), folder = dir / (name + "-peft");
    export_peft(run, folder);
    const auto tensors = SafeTensors::open(folder + "/adapter_model.safetensors");
    CHECK(tensors.metadata().at("cloze_base") == weights_fingerprint(dir / name));
    CHECK(config_in(folder).at("fan_in_fan_out").get<bool>() == (name == "gpt2"));
    const auto report = import_peft(folder, dir / name, dir / (name + "-again"));
    CHECK(report.ignored.empty());
    const auto before = collect_params(*open_run(run).network),
               now = collect_params(*open_run(dir / (name + "-again")).network),
               base = collect_params(*open_run(dir / name).network);
    REQUIRE(now.size() == before.size());
    double moved = 0;
    for (size_t i = 0; i < now.size(); ++i) {
      INFO(now[i].name);
      CHECK(error_of(now[i].param.value(), before[i].param.value()) < 1e-6);
      moved = std::max(moved, error_of(now[i].param.value(), base[i].param.value()));
    }
    CHECK(moved > 1e-2);
  }
}

TEST_CASE("the factors of queries and of values become one product of a fused module", "[interchange][adaptation]") {
  TempDir dir;
  train_adapter(dir, "gpt2", {.rank = 3, .alpha = 6, .rank_stabilized = true});
  export_peft(dir / "gpt2-lora", dir / "peft");
  const auto config = config_in(dir / "peft");
  CHECK(config.at("r") == 3);
  CHECK(config.at("target_modules").at(0) == "transformer.h.0.attn.c_attn");
  CHECK(config.at("rank_pattern").at("transformer.h.0.attn.c_attn") == 6);
  CHECK(config.at("alpha_pattern").at("transformer.h.0.attn.c_attn").get<double>() == Approx(6 * std::sqrt(2)));
  const auto tensors = SafeTensors::open(dir / "peft/adapter_model.safetensors");
  const auto b = tensors.get("base_model.model.transformer.h.0.attn.c_attn.lora_B.weight");
  CHECK(b.sizes() == at::IntArrayRef({192, 6}));
  CHECK(b.narrow(0, 64, 64).count_nonzero().item<int64_t>() == 0);  // the keys
}

TEST_CASE("adapters of another base, and those that are not computed here, are refused", "[interchange][adaptation]") {
  TempDir dir;
  train_adapter(dir, "bert", {});
  const auto folder = dir / "peft";
  export_peft(dir / "bert-lora", folder);
  auto other = tiny_run(dir, 1);
  other.train.seed = 9;
  pretrain(other, {.run = dir / "other"});
  CHECK_THROWS_WITH(import_peft(folder, dir / "other", dir / "x"),
                    Contains("was trained beside weights with the XXH3 " + weights_fingerprint(dir / "bert")) &&
                        Contains("has others (") && Contains("name the run that it is of with --base"));
  CHECK_THROWS_WITH(import_peft(dir / "bert", dir / "bert", dir / "x"), Contains("has no adapter_config.json"));
  CHECK_THROWS_WITH(export_peft(dir / "bert", dir / "x"), Contains("was trained with adaptation.kind full"));
  CHECK_THROWS_WITH(export_peft(dir / "bert-lora", folder), Contains("exists; name another folder"));
  const auto config = config_in(folder);
  const auto refused = [&](const char* key, const json& value, const char* sentence) {
    auto changed = config;
    changed[key] = value;
    write_config(folder, changed);
    CHECK_THROWS_WITH(import_peft(folder, dir / "bert", dir / "x"), Contains(sentence));
  };
  refused("peft_type", "IA3", "peft_type is IA3, and LORA is what is read");
  refused("use_dora", true, "use_dora is true, which is not computed here");
  refused("bias", "all", "bias is trained, which is not read");
  refused("task_type", "SEQ_CLS", "its tensors have no head");
  refused("lora_alpha", "much", "lora_alpha is \"much\", which peft does not write");
}

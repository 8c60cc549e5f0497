#include <algorithm>

#include "core/tensor/safetensors.h"
#include "models/families/families.h"
#include "tests/support/runs.h"
#include "train/stepper.h"
#include "run/checkpoints/init.h"
#include "tests/support/objective.h"

using namespace cloze;
using nlohmann::json;

TEST_CASE("an encoder-decoder for pairs is initialized from one that was trained on span corruption", "[train][init]") {
  TempDir dir;
  auto config = tiny_run(dir, 3);
  PrepareOptions options;
  options.inputs = {dir / "text.txt"}, options.tokenizer = dir / "vocab.txt", options.out = dir / "marked",
  options.format = TextFormat::lines, options.held_out = 0.1, options.threads = 1, options.sentinels = 40;
  prepare(options);
  std::string pairs;
  for (int i = 0; i < 40; ++i)
    pairs += std::string("w") + static_cast<char>('a' + i % 16) + " wa\tw" + static_cast<char>('a' + i % 7) + "\n";
  options.inputs = {dir.write("pairs.tsv", pairs)}, options.out = dir / "pairs", options.format = TextFormat::pairs,
  options.held_out = 0.2;
  prepare(options);
  T5Config model;
  model.hidden_size = 32, model.num_hidden_layers = 1, model.num_attention_heads = 2, model.intermediate_size = 64,
  model.d_kv = 16;
  config.model = model, config.objectives = {default_objective<SpanCorruptionConfig>()},
  config.data.tokens = dir / "marked";
  pretrain(config, {.run = dir / "spans"});
  config.objectives = {default_objective<PairsConfig>()}, config.data.tokens = dir / "pairs",
  config.init.from = dir / "spans", config.optimizer.learning_rate = 0;
  pretrain(config, {.run = dir / "pairs-run"});
  const auto report = json::parse(read_file(dir / "pairs-run/init.json"));
  CHECK(report["fresh"].empty());
  CHECK(report["unused"].empty());
  const auto before = open_run(dir / "spans"), after = open_run(dir / "pairs-run");
  const auto old = collect_params(*before.network), now = collect_params(*after.network);
  for (size_t i = 0; i < old.size(); ++i)
    CHECK(at::equal(old[i].param.value(), now[i].param.value()));  // a learning rate of 0 changes nothing

  auto encoder = before.config.model;  // alone, as tags are read from
  transformer_of(encoder).architecture = Architecture::encoder;
  Network alone(encoder, Objectives{});
  const auto of_encoder = init_from(dir / "spans", alone, before.tokenizer, {}, {});
  CHECK(of_encoder.fresh.empty());
  for (const auto& [name, param] : collect_params(alone)) {
    const auto whole = name.starts_with("backbone.stack.") ? "backbone.encoder." + name.substr(15) : name;
    const auto found = std::find_if(old.begin(), old.end(), [&](const auto& one) { return one.name == whole; });
    REQUIRE(found != old.end());
    CHECK(at::equal(param.value(), found->param.value()));
  }
}

TEST_CASE(
    "a Longformer and a Performer are initialized from a trained RoBERTa: position embeddings repeat, global "
    "projections equal the local ones",
    "[train][init]") {
  TempDir dir;
  auto config = tiny_run(dir, 150);
  RobertaConfig roberta;
  static_cast<StackConfig&>(roberta) = transformer_of(config.model);
  roberta.max_position_embeddings = 33, roberta.pad_token_id = 0;
  config.model = roberta, config.objectives = {default_objective<MlmConfig>()};
  config.evaluation.sequences = 64;
  const auto trained = pretrain(config, {.run = dir / "roberta"});
  const auto source = SafeTensors::open(find_checkpoint(dir / "roberta") + "/weights.safetensors");

  config.train.budget.steps = 1, config.optimizer.learning_rate = 0, config.init.from = dir / "roberta";
  LongformerConfig longformer;
  static_cast<StackConfig&>(longformer) = roberta;
  longformer.max_position_embeddings = 1 + 70, longformer.pad_token_id = 0,
  longformer.attention = WindowAttention{.attention_window = {64}, .global_tokens = GlobalTokens::none};
  config.model = longformer;
  const auto moved = pretrain(config, {.run = dir / "longformer"});
  CHECK(moved.held_out_loss ==
        Approx(trained.held_out_loss).epsilon(1e-4));  // a window as wide as the text is full attention
  const auto target = SafeTensors::open(find_checkpoint(dir / "longformer") + "/weights.safetensors");
  const auto positions = target.get("backbone.embeddings.position"), old = source.get("backbone.embeddings.position");
  REQUIRE(old.size(0) == 33);
  for (int64_t row = 0; row < 71; ++row) CHECK(at::equal(positions[row], row == 0 ? old[0] : old[1 + (row - 1) % 32]));
  const auto qkv = source.get("backbone.stack.0.attention.qkv.weight");
  CHECK(at::equal(target.get("backbone.stack.0.attention.query_global.weight"), qkv.narrow(0, 0, 32)));
  CHECK(at::equal(target.get("backbone.stack.0.attention.key_value_global.weight"), qkv.narrow(0, 32, 64)));
  const auto report = json::parse(read_file(dir / "longformer/init.json"));
  CHECK(report["from_local"].size() == 4);
  CHECK(report["tiled"] == json{"backbone.embeddings.position"});
  CHECK(report["fresh"].empty());
  CHECK(report["unused"].empty());
  CHECK(report["other_options"].empty());

  PerformerConfig performer;
  static_cast<TransformerConfig&>(performer) = roberta;
  performer.attention = PerformerAttention{.nb_features = 512};
  config.model = performer, config.objectives = {objective("{kind: mlm, unit: word}")};
  const auto estimated = pretrain(config, {.run = dir / "performer"});
  CHECK(estimated.held_out_loss <
        0.5 * trained.unigram_loss +
            0.5 * trained.held_out_loss);  // its random features approximate the same attention
  const auto of_performer = json::parse(read_file(dir / "performer/init.json"));
  CHECK(of_performer["fresh"] == json{"backbone.stack.0.attention.features"});
  CHECK(of_performer["other_options"] == json{"objectives.0.unit: token -> word"});

  config.model = longformer, backbone_of(config.model).hidden_size = 16;
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "narrow"}),
                    Catch::Contains("no block of its roberta (hidden_size 32) fits this longformer (hidden_size 16); "
                                    "name a run of the same width"));
  CHECK_FALSE(std::filesystem::exists(dir / "narrow"));
}

TEST_CASE("the discriminator's first step uses the weights copied from the generator, in bf16 too", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 4);
  backbone_of(config.model).vocab_size = 21,
  backbone_of(config.model).hidden_dropout_prob = transformer_of(config.model).attention_probs_dropout_prob = 0;
  config.objectives = {objective("{kind: rtd, generator_steps: 2, generator_hidden_size: 1, tie: none}")};
  Network network(config.model, config.objectives);
  initialize(collect_params(network), 0.3, false, Rng(3));
  Stepper stepper(config, network);
  auto batch =
      Collator(TokenStore(config.data.tokens, "train"), config.objectives, config.data, Rng(1), "train").batch(0, 8);
  batch.replaced = batch.input_ids.remainder(2);  // fixed, so that both steps get the same batch
  const double first = stepper.step({batch}, 2, 0).loss, second = stepper.step({batch}, 3, 0).loss;
  CHECK(first == second);  // a learning rate of 0 changes nothing
}

TEST_CASE("a run that was killed before its first checkpoint restarts from the same initial weights",
          "[train][init][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 3);
  const auto given = dir / "given", whole = dir / "whole", killed = dir / "killed";
  pretrain(config, {.run = given});
  auto later = config;
  later.init.from = given;
  later.train.seed = 5;
  pretrain(later, {.run = whole});
  const auto kill_early = [&](const char* left_out) {
    std::filesystem::remove_all(killed);
    std::filesystem::create_directories(killed);
    for (const auto& entry : std::filesystem::directory_iterator(whole)) {
      const auto name = entry.path().filename().string();
      const bool is_later = name.rfind("step-", 0) == 0 || name == "latest" || name == "best" || name == "summary.json";
      if (!is_later && name != left_out)
        std::filesystem::copy(entry.path(), dir / ("killed/" + name), std::filesystem::copy_options::recursive);
    }
  };
  const std::string last = "/step-00000003/weights.safetensors";
  kill_early("init.json");
  pretrain(later, {.run = killed, .resume = true});
  CHECK(same_files(whole + last, killed + last));
  // The source run continues meanwhile: the restart still uses the weights that were copied.
  config.train.budget.steps = 6;
  pretrain(config, {.run = given, .resume = true});
  REQUIRE(open_run(given).checkpoint == given + "/step-00000006");
  kill_early("");
  pretrain(later, {.run = killed, .resume = true});
  CHECK(same_files(whole + last, killed + last));
  CHECK(metrics(whole) == metrics(killed));
  CHECK(same_files(whole + "/init.json", killed + "/init.json"));
  kill_early("");
  std::filesystem::remove_all(given + "/step-00000003");
  CHECK_THROWS_WITH(pretrain(later, {.run = killed, .resume = true}),
                    Catch::Contains("killed: has no checkpoint of its own, and ") &&
                        Catch::Contains("given/step-00000003, from which it was initialized, is missing; restore it, "
                                        "or start a new run in another folder"));
}

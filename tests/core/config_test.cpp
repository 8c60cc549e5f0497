#include "core/config/config.h"

#include <filesystem>
#include <tuple>

#include "core/config/leaf_overrides.h"
#include "core/config/named_config.h"
#include "core/text.h"
#include "models/attention/kinds.h"
#include "models/families/bert.h"
#include "objectives/denoising/denoising.h"
#include "objectives/gap_sentences/gap_sentences.h"
#include "objectives/mntp/mntp.h"
#include "objectives/plm/plm.h"
#include "objectives/rtd/rtd.h"
#include "objectives/span_corruption/span_corruption.h"
#include "objectives/nsp_sop/nsp_sop.h"
#include "run/config/load_config.h"
#include "tests/support/catch.h"
#include "tests/support/table.h"
#include "tests/support/temp_dir.h"
#include "core/log.h"
#include "core/print.h"
#include "run/config/config.h"

using namespace cloze;

namespace {

/// The message of a config that must be refused.
std::string refused(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    decode<RunConfig>(ConfigTree::parse(yaml, "run.yaml", overrides));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

RunConfig accepted(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return decode<RunConfig>(ConfigTree::parse(yaml, "run.yaml", overrides));
}

/// The presets that a struct describes, and nothing else of it.
struct PresetsOf {
  Presets presets{};
  template <class S>
  void like(S&, const char*, const Presets& described) {
    presets = described;
  }
  template <class... Parts>
  void operator()(const Parts&...) {}
  template <class... Parts>
  void parts(const Parts&...) {}
  template <class... Parts>
  void kind(const Parts&...) {}
  template <class T, class... Parts>
  void formerly(const Parts&...) {}
  void refuse(const char*, const std::string&) {}
};

/// Holds each preset of a struct to the same values in a file, whose mistakes throw.
template <class S>
void check_presets() {
  PresetsOf described;
  S any{};
  describe(described, any);
  REQUIRE_FALSE(described.presets.empty());
  for (const auto& [name, values] : described.presets) {
    INFO(name);
    std::string yaml;
    for (const auto& [key, value] : values) yaml += std::string(key) + ": " + value + "\n";
    auto of_file = decode<S>(ConfigTree::parse(yaml, "preset.yaml"));
    of_file.like = name;
    CHECK(to_yaml(preset<S>(name)) == to_yaml(of_file));
  }
}

}  // namespace

TEST_CASE("a config that cannot be is refused with the place, the key and what was meant", "[core][config]") {
  for (const auto& row : table_of_tests("core/bad_configs.tsv")) {
    INFO(row.at(0) << " --set " << row.at(1));
    check_is(refused(row.at(0), row.at(1).empty() ? std::vector<std::string>{} : separated(row.at(1), " & ")),
             row.at(2));
  }
}

TEST_CASE("sizes beyond any model are refused with the key and the value", "[core][config]") {
  for (const std::string kind :
       {"bert", "albert", "longformer", "bigbird", "performer", "modernbert", "t5", "bart", "xlnet"}) {
    const auto model = accepted("model: {kind: " + kind + "}\nobjectives: []\n");
    for (const auto& entry : entries(model)) {
      const bool is_size = entry.path.starts_with("model.") && entry.type == "whole number" &&
                           entry.key != "feature_redraw_interval";  // steps
      if (!is_size) continue;
      INFO(kind << ": " << entry.path);
      CHECK_THAT(refused(to_yaml(model), {entry.path + "=4611686018427387904"}),
                 Catch::Contains("'" + entry.path + "' is 4611686018427387904, must be in"));
    }
  }
}

TEST_CASE("invalid and too large numbers are refused", "[core][config]") {
  CHECK_THAT(refused("train: {batch_size: 2.1k}"), Catch::EndsWith("must be a whole number, not '2.1k'; write 2100"));
  CHECK_THAT(refused("train: {batch_size: 1e3}"), Catch::EndsWith("must be a whole number, not '1e3'; write 1000"));
}

TEST_CASE("a choice accepts its names only, and is documented by them", "[core][config]") {
  CHECK(transformer_of(accepted("model: {kind: bert, norm_place: pre}").model).norm_place == NormPlacement::pre);
  const auto text = document(accepted("model: {kind: bert, norm_kind: rms}"));
  CHECK_THAT(text,
             Catch::Contains("# the norm: layer = layer norm; rms = RMS norm, without mean and bias (layer, rms)\n"
                             "  norm_kind: rms\n"));
}

TEST_CASE("a list of numbers is one number, a list, or the text of numbers that earlier versions wrote",
          "[core][config]") {
  const auto windows = [](const std::string& written) {
    const auto config =
        accepted("model: {kind: longformer, attention: {kind: window, attention_window: " + written + "}}");
    return std::get<WindowAttention>(*transformer_of(config.model).attention).attention_window;
  };
  CHECK(windows("32") == std::vector<int64_t>{32});
  CHECK(windows("[32, 64]") == std::vector<int64_t>{32, 64});
  CHECK(windows("\"32, 64\"") == std::vector<int64_t>{32, 64});
  const auto layers = [](const std::string& written) {
    const auto config =
        accepted("model: {kind: modernbert, attention: {kind: alternating, global_layers: " + written + "}}");
    const auto again = accepted(to_yaml(config));
    const auto of = [](const RunConfig& c) {
      return std::get<AlternatingAttention>(*transformer_of(c.model).attention).global_layers;
    };
    CHECK(of(config) == of(again));
    return of(config);
  };
  CHECK(layers("[]").empty());
  CHECK(layers("[0, 5]") == std::vector<int64_t>{0, 5});
  CHECK(layers("5") == std::vector<int64_t>{5});
  const auto again =
      accepted(to_yaml(accepted("model: {kind: longformer, attention: {kind: window, attention_window: "
                                "[32, 64]}}")));
  CHECK(std::get<WindowAttention>(*transformer_of(again.model).attention).attention_window ==
        std::vector<int64_t>{32, 64});
  const auto listed = entries(again);
  const auto window =
      std::find_if(listed.begin(), listed.end(), [](const auto& entry) { return entry.key == "attention_window"; });
  REQUIRE(window != listed.end());
  CHECK(window->type == "whole numbers");
}

TEST_CASE("flags of earlier versions choose the architecture, and messages about unknown keys do not list them",
          "[core][config]") {
  const auto architecture = [](const std::string& model) {
    return backbone_of(accepted("model: {" + model + "}").model).architecture;
  };
  CHECK(architecture("kind: bert") == Architecture::encoder);
  CHECK(architecture("kind: bert, is_decoder: true") == Architecture::decoder);
  CHECK(architecture("kind: gpt2, is_decoder: false") == Architecture::encoder);
  CHECK(architecture("kind: bart, is_encoder_decoder: true, is_decoder: false") == Architecture::encoder_decoder);
  CHECK(architecture("kind: bart, is_decoder: true, is_encoder_decoder: false") == Architecture::decoder);
  CHECK(architecture("kind: t5, is_encoder_decoder: false") == Architecture::encoder);
  CHECK(architecture("kind: xlnet, is_decoder: false") == Architecture::two_stream);
  CHECK_THAT(refused("model: {kind: bert, is_decodr: true}"), !Catch::Contains("is_decoder"));
}

TEST_CASE("hostile files are refused in a sentence", "[core][config]") {
  CHECK(refused(std::string(5000, '[')) == "run.yaml:1:65: brackets are nested deeper than 64; flatten them");
  std::string bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\n";
  for (char c = 'b'; c <= 'h'; ++c)
    bomb += std::string(1, c) + ": &" + c + " [" + [&] {
      std::string all;
      for (int i = 0; i < 10; ++i) all += std::string(i ? "," : "") + "*" + static_cast<char>(c - 1);
      return all;
    }() + "]\n";
  CHECK(refused(bomb) == "run.yaml: more than 100000 values once aliases are followed; write fewer of them");
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(refused(deep).find("values are nested deeper than 64; flatten them") != std::string::npos);
  CHECK(refused(std::string("a: \x01")) == "run.yaml:1:4: a control character; this does not look like a YAML file");
  CHECK(refused("model:\n\thidden_size: 3\n").find("run.yaml:2:") == 0);
  CHECK(refused("- a\n") == "run.yaml:1:1: 'the file' must be a map of keys, not a list");
  CHECK(refused("model: {hidden_size: ") != "accepted");
}

TEST_CASE("an empty file is a config of defaults", "[core][config]") {
  CHECK(to_yaml(accepted("")) == to_yaml(RunConfig{}));
}

TEST_CASE("YAML output decodes to the same config and contains every default", "[core][config]") {
  auto config = accepted(
      "like: google-bert\nmodel: {kind: bert, hidden_size: 96, layer_norm_eps: 1e-7}\nobjectives: [{kind: nsp, weight: "
      "0.1}, {kind: mlm, like: huggingface}]\n");
  config.data.tokens = "folder with \"quotes\" \\ and: colon";
  const auto text = to_yaml(config);
  const auto again = decode<RunConfig>(ConfigTree::parse(text, "again.yaml"));
  CHECK(to_yaml(again) == text);
  CHECK(again.data.tokens == config.data.tokens);
  CHECK(text.find("weight: 0.1\n") != std::string::npos);  // shortest form, not 0.10000000000000001
  CHECK(decode<RunConfig>(ConfigTree::parse(to_yaml(accepted("objectives: []")), "again.yaml")).objectives.empty());
}

TEST_CASE("a preset applies to every part that has it, and explicit keys win", "[core][config]") {
  const auto config =
      accepted("like: google-bert\noptimizer: {epsilon: 1e-7}\nobjectives: [{kind: mlm, like: huggingface}]\n");
  CHECK_FALSE(std::get<AdamW>(config.optimizer.rule).bias_correction);
  CHECK(std::get<LinearSchedule>(config.schedule.shape).decay_from_start);
  CHECK(std::get<AdamW>(config.optimizer.rule).epsilon == 1e-7);
  CHECK(as<MlmConfig>(config.objectives[0])->count == CountRule::bernoulli);
  CHECK(deviations(config) == std::vector<std::string>{"optimizer.epsilon is 1e-07, google-bert has 1e-06"});
}

TEST_CASE("an option of another kind of optimizer or schedule is refused with the kinds that have it",
          "[core][config]") {
  CHECK(refused("optimizer: {kind: adafactor, beta3: 0.5}").find("unknown key 'optimizer.beta3'") != std::string::npos);
}

TEST_CASE("options of a kind that an override or another file replaces go with it", "[core][config]") {
  const std::string wsd = "schedule: {shape: wsd, warmup: 20, decay: 0.3}\n";
  const auto constant = accepted(wsd, {"schedule.shape=constant"}).schedule;
  CHECK(part_in<ConstantSchedule>(constant.shape));
  CHECK(constant.warmup == 20);
  TempDir dir;
  dir.write("base.yaml", wsd);
  const auto read = [&](const std::string& text) { return ConfigTree::load(dir.write("top.yaml", text)); };
  const auto linear = decode<RunConfig>(read("base: base.yaml\nschedule: {shape: linear}\n")).schedule;
  CHECK(part_in<LinearSchedule>(linear.shape));
  CHECK_THROWS_WITH(decode<RunConfig>(read("base: base.yaml\nschedule: {shape: linear, decay: 0.1}\n")),
                    Catch::Contains("'schedule.decay' is an option of wsd and wsd_s, and 'schedule.shape' is linear"));
}

TEST_CASE("what kinds of optimizer or schedule share stays as a preset has it where another kind is chosen",
          "[core][config]") {
  const auto lamb = accepted("like: huggingface\noptimizer: {kind: lamb}").optimizer;
  CHECK(std::get<Lamb>(lamb.rule).epsilon == 1e-8);
  const auto cosine = accepted("like: electra\nschedule: {shape: cosine}").schedule;
  CHECK(std::get<CosineSchedule>(cosine.shape).multiplies_warmup());
  const auto wsd = accepted("schedule: {like: xlnet, shape: wsd}").schedule;
  CHECK(std::get<WsdSchedule>(wsd.shape).end_factor == 1e-3);
  CHECK(std::get<WsdSchedule>(wsd.shape).decay == 0.2);
  const auto adamw = accepted("like: t5\noptimizer: {kind: adamw}").optimizer;
  CHECK(std::get<AdamW>(adamw.rule).epsilon == AdamW{}.epsilon);
}

TEST_CASE("a copy of a config has a model, objectives and attention of its own", "[core][config]") {
  const auto config = accepted("model: {kind: longformer, hidden_size: 48}");
  auto copy = config;
  backbone_of(copy.model).hidden_size = 96;
  std::get<WindowAttention>(*transformer_of(copy.model).attention).attention_window = {8};
  as<MlmConfig>(copy.objectives[0])->mlm_probability = 0.5;
  CHECK(to_yaml(config) == to_yaml(accepted("model: {kind: longformer, hidden_size: 48}")));
  CHECK(to_yaml(copy) != to_yaml(config));
  copy = config;
  CHECK(to_yaml(copy) == to_yaml(config));
  const auto moved = std::move(copy);
  CHECK(to_yaml(moved) == to_yaml(config));
}

TEST_CASE("a preset at the root sets schedule and optimizer as published, and parts without it are named",
          "[core][config]") {
  for (const std::string name : {"albert", "electra", "spanbert"}) {
    const auto config = accepted("like: " + name);
    INFO(name);
    CHECK(config.schedule.like == name);
    const auto& linear = std::get<LinearSchedule>(config.schedule.shape);
    CHECK(linear.decay_from_start);  // from step 0; that of Hugging Face from the end of the warm-up
    CHECK(linear.decay_in_warmup == (name == "electra"));
    CHECK(config.optimizer.like == name);
    CHECK(kind_of(config.model) == "bert");
    CHECK(deviations(config).empty());
  }
  const auto spanbert = accepted("like: spanbert").optimizer;
  const auto& adam = std::get<AdamW>(spanbert.rule);
  CHECK((spanbert.decay_norm_and_bias && adam.epsilon_hat && adam.bias_correction));
  CHECK(adam.epsilon == 1e-8);
  CHECK(std::get<AdamW>(accepted("like: fairseq-roberta").optimizer.rule).epsilon_hat);
  const auto xlnet = accepted("like: xlnet\nmodel: {kind: xlnet}\nobjectives: [{kind: plm}]");
  CHECK_FALSE(std::get<AdamW>(xlnet.optimizer.rule).bias_correction);
  CHECK(xlnet.optimizer.decay_score_biases);
  CHECK(deviations(xlnet).empty());
  CHECK(deviations(accepted("model: {kind: bert, like: huggingface, position_embeddings: rotary, rope_theta: 500}"))
            .empty());
  CHECK(deviations(accepted("like: bart\nmodel: {kind: bart}\nobjectives: [{kind: denoising}]")) ==
        std::vector<std::string>{"optimizer has no preset bart and keeps its own defaults",
                                 "schedule has no preset bart and keeps its own defaults"});
}

TEST_CASE("a preset gives what its values give in a file", "[core][config]") {
  check_presets<OptimizerConfig>();
  check_presets<ScheduleConfig>();
  check_presets<Masking>();
  check_presets<BertConfig>();
  check_presets<DenoisingConfig>();
  check_presets<GapSentencesConfig>();
  check_presets<PlmConfig>();
  check_presets<SpanCorruptionConfig>();
}

TEST_CASE("mntp masks as the preset gpt-bert, and the generator of rtd as electra", "[core][config]") {
  auto gpt_bert = preset<Masking>("gpt-bert");
  gpt_bert.like = "";
  gpt_bert.initial_mlm_probability = 0.3;
  CHECK(to_yaml(static_cast<Masking>(MntpConfig{})) == to_yaml(gpt_bert));
  CHECK(to_yaml(static_cast<Masking>(RtdConfig{}.mlm)) == to_yaml(preset<Masking>("electra")));
}

TEST_CASE("overrides are decoded like the file, and errors name them", "[core][config]") {
  const auto config = accepted("objectives: [{kind: mlm}, {kind: nsp}]\nmodel: {kind: bert}",
                               {"objectives.1.weight=0.5", "model.hidden_size=64", "train.budget={steps: 7}"});
  CHECK(as<NspConfig>(config.objectives[1])->weight == 0.5);
  CHECK(config.train.budget.steps == 7);
}

TEST_CASE("an override with a map is one for each value in it, the kind first", "[core][config]") {
  CHECK(leaf_overrides({"data={max_seq_length: 32}", "train.seed=3", "optimizer={beta1: 0.5, kind: adamw}"}) ==
        std::vector<std::string>{"data.max_seq_length=32", "train.seed=3", "optimizer.kind=adamw",
                                 "optimizer.beta1=0.5"});
  CHECK(leaf_overrides({"train={seeds: {masking: 3}}", "a=[{b: 1}]", "data={}", "data"}) ==
        std::vector<std::string>{"train.seeds.masking=3", "a=[{b: 1}]", "data={}", "data"});
  CHECK(leaf_overrides({"task={labels: {a.b: yes, c: no}}"}) ==
        std::vector<std::string>{"task.labels={a.b: yes, c: no}"});
}

TEST_CASE("a base file is extended, a cycle is refused", "[core][config]") {
  TempDir dir;
  dir.write("base.yaml", "model: {kind: bert, hidden_size: 64, num_hidden_layers: 2}\n");
  const auto top = dir.write("top.yaml", "base: base.yaml\nmodel: {num_hidden_layers: 3}\n");
  const auto config = decode<RunConfig>(ConfigTree::load(top));
  CHECK(as<BertConfig>(config.model)->hidden_size == 64);
  CHECK(as<BertConfig>(config.model)->num_hidden_layers == 3);
  dir.write("a.yaml", "base: b.yaml\n");
  const auto loop = dir.write("b.yaml", "base: a.yaml\n");
  CHECK_THROWS_WITH(ConfigTree::load(loop), Catch::Contains("extends itself; remove one of the `base:` lines"));
  for (int i = 0; i < 40; ++i)
    dir.write("long" + std::to_string(i) + ".yaml",
              i < 39 ? "base: long" + std::to_string(i + 1) + ".yaml\n" : "train: {seed: 3}\n");
  CHECK_THROWS_WITH(ConfigTree::load(dir / "long0.yaml"),
                    Catch::EndsWith("long15.yaml:1:7: base file 'long16.yaml' ends a chain of more than 16 files that "
                                    "extend one another; merge some of them"));
  CHECK(ConfigTree::load(dir / "long24.yaml").find("train.seed")->text == "3");  // 16 files
  CHECK_THROWS_WITH(ConfigTree::load(dir.write("c.yaml", "base: none.yaml\n")),
                    Catch::Contains("base file 'none.yaml' was not found (looked for ") &&
                        Catch::EndsWith("); name a file by its path from here, or a config that ships: bert/tiny"));
  CHECK_THROWS_WITH(ConfigTree::load(dir / "absent.yaml"), Catch::Contains("no such file; name a YAML config"));
}

TEST_CASE("a config file without a value is refused as empty, with overrides and as a base, too", "[core][config]") {
  TempDir dir;
  for (const std::string nothing : {"", "\n", "~\n", "# train: {seed: 3}\n", "---\n"}) {
    INFO(nothing);
    const auto empty = dir.write("empty.yaml", nothing);
    const auto why = empty + ": is empty; write a config into it, or name another (configs/ has some)";
    CHECK_THROWS_WITH(ConfigTree::load(empty), why);
    CHECK_THROWS_WITH(ConfigTree::load(empty, {"train.seed=3"}), why);
    CHECK_THROWS_WITH(ConfigTree::load(dir.write("top.yaml", "base: empty.yaml\n")), why);
  }
  CHECK_NOTHROW(ConfigTree::load(dir.write("defaults.yaml", "{}\n")));
}

TEST_CASE("explain tells where a value came from and which values it replaced", "[core][config]") {
  TempDir dir;
  dir.write("base.yaml", "train: {seed: 3}\n");
  const auto top = dir.write("top.yaml", "base: base.yaml\nlike: google-bert\ntrain: {seed: 4}\n");
  const auto tree = ConfigTree::load(top, {"train.seed=5"});
  const auto text = explain<RunConfig>(tree, "train.seed");
  CHECK_THAT(text, Catch::Contains("train.seed = 5") && Catch::Contains("set by   --set train.seed=5") &&
                       Catch::Contains("instead of 4 (" + top + ":3:15)") &&
                       Catch::Contains("instead of 3 (" + dir / "base.yaml" + ":1:15)") &&
                       Catch::Contains("default  1"));
  CHECK_THAT(explain<RunConfig>(tree, "optimizer.bias_correction"),
             Catch::Contains("set by   preset 'google-bert' (" + top + ":2:7)"));
  CHECK_THAT(explain<RunConfig>(tree, "train.batch_size"), Catch::Contains("set by   default"));
  CHECK_THROWS_WITH(explain<RunConfig>(tree, "train.sed"), "unknown key 'train.sed'; did you mean 'train.seed'?");
  CHECK_THROWS_WITH(explain<RunConfig>(tree, "nothing.like.it"),
                    "unknown key 'nothing.like.it'; cloze config lists those known");
}

TEST_CASE("an element of a list can be overridden on the command line even if no file has the list", "[config]") {
  const auto config = decode<RunConfig>(ConfigTree::parse(
      "model: {kind: bert}\n", "run.yaml", {"objectives.1.weight=3", "objectives.0.mlm_probability=0.2"}));
  REQUIRE(config.objectives.size() == 2);
  CHECK(as<NspConfig>(config.objectives[1])->weight == 3);
  CHECK(as<MlmConfig>(config.objectives[0])->mlm_probability == 0.2);
  const auto changed =
      decode<RunConfig>(ConfigTree::parse("model: {kind: bert}\n", "run.yaml", {"objectives.1.kind=sop"}));
  CHECK(as<SopConfig>(changed.objectives[1]));
  CHECK_THROWS_WITH(
      decode<RunConfig>(ConfigTree::parse("model: {kind: bert}\n", "run.yaml", {"objectives.7.weight=3"})),
      "--set objectives.7.weight=3: '7' must be the number of an element, 0 to 1");
  for (const std::string yaml : {"", "train: {phases: []}"})
    CHECK(refused(yaml, {"train.phases.0.from=0.7"}) ==
          "--set train.phases.0.from=0.7: '0' would be an element of an empty list; give the whole list");
}

TEST_CASE("a part of a mixture starts as a copy of the mlm, changed by its own preset, then by its own keys",
          "[core][config]") {
  const std::string yaml =
      "objectives:\n"
      "  - kind: mlm\n"
      "    like: huggingface\n"
      "    mlm_probability: 0.2\n"
      "    unit: word\n"
      "    mixture:\n"
      "      - {}\n"
      "      - {share: 3, like: spanbert}\n"
      "      - {like: electra, mask_prob: 0.7}\n";
  const auto config = accepted(yaml);
  const auto& mlm = *as<MlmConfig>(config.objectives[0]);
  REQUIRE(mlm.mixture.size() == 3);
  const auto& [same, spans, electra] = std::tie(mlm.mixture[0], mlm.mixture[1], mlm.mixture[2]);
  CHECK((same.unit == MaskingUnit::word && same.count == CountRule::bernoulli && same.mlm_probability == 0.2 &&
         same.share == 1));
  CHECK((spans.unit == MaskingUnit::span && spans.count == CountRule::ceil &&
         spans.random_from == RandomFrom::unigram && spans.mlm_probability == 0.2 && spans.share == 3));
  CHECK((electra.unit == MaskingUnit::token && electra.mask_prob == 0.7 && electra.random_prob == 0 &&
         electra.mlm_probability == 0.2));
  const auto parts = mlm.maskings();
  CHECK((parts[0].share == 0.2 && parts[1].share == 0.6 && parts[2].share == 0.2));
  CHECK(deviations(config) == std::vector<std::string>{"objectives.0.unit is word, huggingface has token",
                                                       "objectives.0.mixture.0.unit is word, huggingface has token",
                                                       "objectives.0.mixture.2.mask_prob is 0.7, electra has 0.85"});
  const auto text = to_yaml(config);
  CHECK(to_yaml(decode<RunConfig>(ConfigTree::parse(text, "again.yaml"))) == text);
  const auto changed = accepted(yaml, {"objectives.0.mixture.1.max_span_length=5", "objectives.0.mlm_probability=0.3"});
  CHECK(as<MlmConfig>(changed.objectives[0])->mixture[1].max_span_length == 5);
  CHECK(as<MlmConfig>(changed.objectives[0])->mixture[1].mlm_probability == 0.3);
  const auto tree = ConfigTree::parse(yaml, "run.yaml");
  CHECK_THAT(explain<RunConfig>(tree, "objectives.0.mixture.1.mlm_probability"),
             Catch::Contains("= 0.2") && Catch::Contains("set by   objectives.0.mlm_probability, which it inherits"));
  CHECK_THAT(explain<RunConfig>(tree, "objectives.0.mixture.1.unit"),
             Catch::Contains("= span") && Catch::Contains("set by   preset 'spanbert' (run.yaml:8:26)"));
  CHECK_THAT(explain<RunConfig>(tree, "objectives.0.mixture.1.share"), Catch::Contains("set by   run.yaml:8:17"));
  CHECK_THAT(explain<RunConfig>(tree, "objectives.0.mixture.0.share"), Catch::Contains("set by   default"));
}

TEST_CASE("the generator's masking may be a mixture, and a preset of the run reaches its parts", "[core][config]") {
  const auto config = accepted(
      "like: electra\nobjectives: [{kind: rtd, mlm: {mixture: [{share: 0.5, unit: word}, {share: 0.5, like: "
      "albert}]}}]\n");
  const auto& mlm = as<RtdConfig>(config.objectives[0])->mlm;
  CHECK((mlm.mixture[0].like == "electra" && mlm.mixture[0].mask_prob == 0.85 &&
         mlm.mixture[0].unit == MaskingUnit::word));
  CHECK((mlm.mixture[1].mask_prob == 0.8 && mlm.mixture[1].unit == MaskingUnit::ngram));
  CHECK(accepted("objectives: [{kind: mlm, mixture: []}]").objectives.size() == 1);
}

TEST_CASE("a mistyped word finds the most similar one, transposed letters included", "[core][config]") {
  CHECK(nearest("widht", {"width", "height"}) == "width");
  CHECK(nearest("zzzzz", {"width", "height"}).empty());
  CHECK(nearest("fp16", {"fp32", "bf16"}).empty());  // two of four letters differ
}

TEST_CASE("of many mistakes the first are reported, and how many more there are", "[core][config]") {
  std::string elements;
  for (int i = 0; i < 4000; ++i) elements += "  - {kind: mlm, bogus: 4}\n";
  const auto told = refused("objectives:\n" + elements);
  CHECK(std::count(told.begin(), told.end(), '\n') == 50);
  CHECK_THAT(told, Catch::Contains("unknown key 'objectives.0.bogus'") && Catch::EndsWith("\nand 3950 more mistakes"));
}

TEST_CASE("hostile configs are refused with a short sentence, at once", "[core][config]") {
  TempDir dir;
  const auto message = [](const auto& load) -> std::string {
    try {
      load();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto word = dir.write("word.yaml", "hello\n");
  CHECK(message([&] { ConfigTree::load(word, {"train.batch_size=2"}); }) ==
        word + ":1:1: 'the file' must be a map of keys, not 'hello'");
  CHECK(message([&] { ConfigTree::load(dir.write("list.yaml", "- a\n"), {"a=2"}); }).ends_with("not a list"));
  for (int level = 0; level < 12; ++level) {  // each file names the next ten times
    std::string bases;
    for (int i = 0; i < 10; ++i) bases += (i ? ", " : "") + std::string("b") + std::to_string(level + 1) + ".yaml";
    dir.write("b" + std::to_string(level) + ".yaml", level < 11 ? "base: [" + bases + "]\n" : "a: 1\n");
  }
  CHECK_THAT(message([&] { ConfigTree::load(dir / "b0.yaml"); }),
             Catch::Contains("more than 64 base files are read; name each of them once"));
  std::string keys;
  for (int i = 0; i < 60'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  CHECK_THAT(message([&] { ConfigTree::parse(keys, "many.yaml"); }),
             Catch::Contains("many.yaml:1:1: 60000 keys are too many for a map (at most 10000)"));
  std::string dots = "a";
  for (int i = 0; i < 60'000; ++i) dots += ".a";
  const auto deep = message([&] { ConfigTree::parse("a: 1\n", "x.yaml", {dots + "=1"}); });
  CHECK_THAT(deep, Catch::Contains("its key is nested deeper than 64; no config has such a key"));
  CHECK(deep.size() < 300);
  CHECK_THAT(message([&] { ConfigTree::load(dir.write("brackets.yaml", std::string(30 << 20, '['))); }),
             Catch::Contains("brackets.yaml"));
}

TEST_CASE("a second YAML document, and what follows the first value, are refused", "[core][config]") {
  CHECK_THAT(refused("model: {kind: bert}\n---\n]"), Catch::StartsWith("run.yaml:3:1: not valid YAML"));
}

TEST_CASE("brackets in quotations and comments nest nothing", "[core][config]") {
  const std::string brackets(100, '[');
  for (const auto& text : {"data: {tokens: \"" + brackets + "\"}", "data: {tokens: \"\\\"" + brackets + "\"}",
                           "data: {tokens: 'it''s " + brackets + "'}", "# " + brackets + "\ndata: {tokens: x}"}) {
    INFO(text);
    CHECK(refused(text) == "accepted");
  }
  for (const auto& text : {"data: {tokens: 'x'}\ntrain: " + brackets, "# it's\ntrain: " + brackets,
                           "data: {tokens: it's}\ntrain: " + brackets, "data: {tokens: '''x'}\ntrain: " + brackets})
    CHECK_THAT(refused(text), Catch::EndsWith("brackets are nested deeper than 64; flatten them"));
}

TEST_CASE("a value that a message repeats is short and stays in its line", "[core][config]") {
  std::string key;
  for (int i = 0; i < 100; ++i) key += "ab\\n";
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += key;
  for (const auto& text :
       {"train: {ema_decay: \"" + lines + "\"}", "train: {batch_size: \"" + lines + "\"}",
        "optimizer: {bias_correction: \"" + lines + "\"}", "model: {kind: bert, hidden_act: \"" + lines + "\"}",
        "train: {\"" + key + "\": 1}", "objectives: {\"" + key + "\": 1}", "base: \"" + lines + "\""}) {
    const auto message = refused(text);
    INFO(message);
    CHECK(message.size() < 1500);
    CHECK(message.find('\n') == std::string::npos);
    CHECK_THAT(message, Catch::Contains("ab\\nab\\n"));
  }
  CHECK_THAT(refused("model: {kind: bert, hidden_act: \"a\\0b\"}"),
             Catch::Contains("'model.hidden_act' is 'a\\x00b', must be one of "));
  CHECK_THAT(refused("base: " + std::string(900'000, 'x')),
             Catch::Contains("' was not found (no file has such a name)"));
  CHECK(refused("base: " + std::string(900'000, 'x')).size() < 300);
}

TEST_CASE("what is shown has no control characters but ends of lines, tabs and the colours of Cloze", "[config]") {
  CHECK(printable("a\tb\nc\rd") == "a\tb\nc\\rd");
  CHECK(printable("\033[31mred\033[0m \033[8mhidden \033]0;title\007 \033[2J") ==
        "\033[31mred\033[0m \\x1b[8mhidden \\x1b]0;title\\x07 \\x1b[2J");
  CHECK(printable("\xc2\x9b"
                  "31m caf\xe9 na\xc3\xafve") ==
        "\\xc2\\x9b"
        "31m caf\\xe9 na\xc3\xafve");
  TempDir dir;
  set_log_file(dir / "log.txt");
  log_info("data", "a\033[2Jb");
  log_result("data", "c\rd");
  set_log_file("");
  CHECK_THAT(read_file(dir / "log.txt"), Catch::Contains("a\\x1b[2Jb") && Catch::Contains("c\\rd"));
}

TEST_CASE("control characters of a message are visible, and none ends it", "[core][config]") {
  CHECK(readable(std::string("a\0b\x1b[31m", 8) + "\tc\r\nd\x7f") == "a\\x00b\\x1b[31m\\tc\\r\nd\\x7f");
  CHECK(std::string(ConfigError(std::string("a\0b", 3)).what()) == "a?b");
  CHECK(shortened("a\nb") == "a\\nb");
}

TEST_CASE("bytes of a message that are not UTF-8 are visible, and characters stay", "[core][config]") {
  CHECK(readable("caf\xe9 na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "caf\\xe9 na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(readable("\xc2\x9b\x33m") == "\\xc2\\x9b\x33m");  // U+009B begins a colour, as ESC [ does
  CHECK(readable("\xe2\x82") == "\\xe2\\x82");
  CHECK(readable("\xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80") == "\\xc0\\xaf \\xed\\xa0\\x80 \\xf5\\x80\\x80\\x80");
  CHECK_THAT(refused("train: {caf\xe9: 1}"), Catch::Contains("unknown key 'train.caf\\xe9'"));
}

TEST_CASE("a message is cut where its words are long, and keeps the end of a quotation", "[core][config]") {
  const std::string path(900, 'p'), value(5000, 'v');
  CHECK(readable(path + ": no such file; check the name\nand more") ==
        path + ": no such file; check the name\nand more");
  CHECK(readable("'" + value + "', must be a number") == "'" + value.substr(0, 99) + "...', must be a number");
  const auto many = readable([] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "one ";
    return text;
  }());
  CHECK(many.size() < 10'010);
  CHECK_THAT(many, Catch::EndsWith("..."));
}

TEST_CASE("a message cuts long values, between characters", "[core][config]") {
  CHECK(shortened("short") == "short");
  CHECK(shortened(std::string(900'000, 'x')) == std::string(100, 'x') + "...");
  std::string umlauts = "x";
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xa4";
  CHECK(shortened(umlauts) == umlauts.substr(0, 99) + "...");
  CHECK(nearest(std::string(900'000, 'x'), {"x"}).empty());
}

TEST_CASE("a tab that indents a line is refused where it stands", "[config]") {
  const auto refused_tab = [](const std::string& text) {
    try {
      ConfigTree::parse(text, "x.yaml");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string mend = ": a tab indents this line, and YAML is indented by spaces; replace it by spaces";
  CHECK(refused_tab("a:\n\tb: 1\n") == "x.yaml:2:1" + mend);
  CHECK(refused_tab("a:\n  b: 1\n  \tc: 2\nd: 3\n") == "x.yaml:3:3" + mend);
  CHECK(refused_tab("a: {b: 1\n") != "x.yaml:1:1" + mend);
  CHECK(refused_tab("a:\t1\n") == "");
}

TEST_CASE("white space that is no space is named, and stays in quotes", "[core][config]") {
  const auto refused_space = [](const std::string& text) {
    try {
      ConfigTree::parse(text, "x.yaml");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string mend =
      ": an invisible character that YAML takes for a letter; replace it by a space, or put the text in quotes";
  CHECK(refused_space("a:\n\u00A0\u00A0b: 1\n") == "x.yaml:2:1" + mend);
  CHECK(refused_space("a:\n  b:\u00A01\n") == "x.yaml:2:5" + mend);
  CHECK(refused_space("a:\n \u3000b: 1\n") == "x.yaml:2:2" + mend);
  CHECK(refused_space("a: \u2028\"b\"\n") == "x.yaml:1:4" + mend);
  CHECK(refused_space("\uFEFFa: \u200B{b: 1}\n") == "x.yaml:1:4" + mend);
  CHECK(refused_space("a:\n  -\u00A0b: 1\n") == "x.yaml:2:4" + mend);
  CHECK(refused_space("a: 100\u00A0\r\n") == "x.yaml:1:7" + mend);
  CHECK(refused_space("a: 100\u00A0# b\n") == "x.yaml:1:7" + mend);
  CHECK(refused_space("a: [{b:\u00A0c}]\n") == "x.yaml:1:8" + mend);
  CHECK(refused_space("a: {b: 1,\n    c: 2,\u00A0d: 3}\n") == "x.yaml:2:10" + mend);
  CHECK(refused_space("a: [b\u00A0]\n") == "x.yaml:1:6" + mend);
  CHECK(refused_space("\uFEFFa: \"x:\u00A0y\"\nb: [\"\u3000z\"]\n# c:\u00A0d\n") == "");
  CHECK(refused_space("a: is it so:\u00A0yes\n") == "x.yaml:1:13" + mend);
  CHECK_THROWS_WITH(ConfigTree::parse("a: {b: 1}\n", "x.yaml", {"a.b=2\u00A0"}), Catch::EndsWith(mend));
}

TEST_CASE("a config in UTF-16 is told so, and one whose lines end as on an old Macintosh is read", "[core][config]") {
  CHECK(refused({"\xFF\xFE"
                 "a\0:\0",
                 6}) == "run.yaml: is UTF-16; save it as UTF-8");
  CHECK(refused({"\xFE\xFF\0a\0:", 6}) == "run.yaml: is UTF-16; save it as UTF-8");
  const TempDir dir;
  const auto tree = ConfigTree::load(dir.write("old.yaml", "a:\r  b: 1\rc: 2\r"));
  CHECK(tree.find("a.b")->text == "1");
  CHECK(tree.find("c")->text == "2");
}

TEST_CASE("a ready task is found by its name, and no file of somebody's own is taken for it", "[core][config]") {
  for (const std::string name : {"sst2", "sst2.yaml", "tasks/sst2", "configs/tasks/sst2.yaml"})
    CHECK(std::filesystem::path(task_of_name(name)).filename() == "sst2.yaml");
  for (const std::string name : {"mine/tasks/sst2.yaml", "../tasks/sst2", "/mine/tasks/sst2", "mine/sst2", "sst3"})
    CHECK(task_of_name(name).empty());
}

TEST_CASE("the sentence of a limit has numbers as configs have them, and a part by its kind") {
  Constraints constraints;
  const AttentionKind attention = WindowAttention{};
  constraints.forbid(true, "a rate of ", 2e6, ", not ", 0.1 + 0.2, ", of ", attention, " and ", int64_t{3});
  constraints.forbid(false, "nothing");
  CHECK((constraints.broken() ==
         std::vector<std::string>{"a rate of 2000000, not 0.30000000000000004, of window and 3"}));
}

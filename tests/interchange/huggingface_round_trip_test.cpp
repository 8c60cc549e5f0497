#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/log.h"
#include "data/store/token_store.h"
#include "inference/generation/fill.h"
#include "inference/generation/generate.h"
#include "models/families/electra.h"
#include "objectives/clm/clm.h"
#include "objectives/rtd/rtd.h"
#include "run/checkpoints/init.h"
#include "tests/interchange/cases.h"
#include "tests/support/tiny.h"
#include "tests/support/trained.h"
#include "train/pretrain.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// Every key that came in goes out with its value, and no id besides; weights that differ decide what is tied.
void check_config(const nlohmann::json& came, const nlohmann::json& out) {
  for (const auto& [key, value] : came.items()) {
    INFO(key);
    const bool is_beyond = key.ends_with("_token_id") && value.is_number() && value >= came["vocab_size"];
    if (key == "dtype" || key == "torch_dtype" || key == "tie_word_embeddings") continue;
    CHECK(out.value(key, nlohmann::json("absent")) == (is_beyond ? nlohmann::json() : value));
  }
  for (const auto& [key, value] : out.items()) {
    INFO(key);
    CHECK((came.contains(key) || !key.ends_with("_id")));
  }
  CHECK(out["dtype"] == "float32");
}

/// What an import and an export make of the config.json of a parity case with these changes; null removes a key.
nlohmann::json config_back(const TempDir& dir, const std::string& name, const nlohmann::json& changes) {
  for (const std::string folder : {"hf", "run", "again"}) fs::remove_all(dir / folder);
  fs::copy(SOURCE_DIR "/tests/parity/" + name, dir / "hf");
  auto config = nlohmann::json::parse(read_file(dir / "hf/config.json"));
  config.merge_patch(changes);
  dir.write("hf/config.json", config.dump());
  if (name == "bart") dir.write("hf/generation_config.json", R"({"num_beams": 4, "max_length": 60})");
  import_huggingface(dir / "hf", dir / "run");
  export_huggingface(dir / "run", dir / "again");
  return nlohmann::json::parse(read_file(dir / "again/config.json"));
}

}  // namespace

TEST_CASE("the class, the model type and the keys that came in go out, with those that Cloze does not use",
          "[interchange]") {
  TempDir dir;
  const auto camembert =
      config_back(dir, "roberta", {{"model_type", "camembert"}, {"architectures", {"CamembertForMaskedLM"}}});
  CHECK(camembert["model_type"] == "camembert");
  CHECK(camembert["architectures"] == nlohmann::json::array({"CamembertForMaskedLM"}));
  // transformers 5 has both: T5's class scales its states unless the file says that it does not.
  const auto t5 = config_back(dir, "t5", {{"scale_decoder_outputs", false}, {"tie_word_embeddings", true}});
  CHECK(t5["model_type"] == "t5");
  CHECK(t5["architectures"] == nlohmann::json::array({"T5ForConditionalGeneration"}));
  CHECK(t5["scale_decoder_outputs"] == false);
  CHECK(t5["tie_word_embeddings"] == true);
  const auto modernbert = config_back(dir, "modernbert", {{"classifier_pooling", "mean"}, {"own", {{"x", 1}}}});
  CHECK(modernbert["classifier_pooling"] == "mean");
  CHECK(modernbert["own"] == nlohmann::json{{"x", 1}});
  config_back(dir, "bart", nlohmann::json::object());
  CHECK(nlohmann::json::parse(read_file(dir / "again/generation_config.json")) ==
        nlohmann::json{{"num_beams", 4}, {"max_length", 60}});
  set_log_file(dir / "log.txt");
  CHECK_FALSE(config_back(dir, "bert", {{"auto_map", {{"AutoModel", "own.Model"}}}}).contains("auto_map"));
  set_log_file("");
  CHECK_THAT(read_file(dir / "log.txt"), Catch::Contains("auto_map names code that does not come along"));
}

TEST_CASE("a config.json without model_type is read by its class, or as a BERT with a warning", "[interchange]") {
  TempDir dir;
  set_log_file(dir / "log.txt");
  const auto roberta = config_back(dir, "roberta", {{"model_type", nullptr}});
  CHECK(roberta["model_type"] == "roberta");
  CHECK_THAT(
      read_file(dir / "log.txt"),
      Catch::Contains("hf/config.json: has no model_type, and is read as that of a model of the type 'roberta'"));
  const auto bert = config_back(dir, "bert", {{"model_type", nullptr}, {"architectures", nullptr}});
  set_log_file("");
  CHECK(bert["architectures"] == nlohmann::json::array({"BertForPreTraining"}));
  CHECK_THAT(read_file(dir / "log.txt"), Catch::Contains("of the type 'bert'; if it is another one, write its"));
  CHECK_THROWS_WITH(config_back(dir, "bert", {{"model_type", nullptr}, {"architectures", {"FunnelModel"}}}),
                    Catch::Contains("has no model_type, and 'FunnelModel' is no class that this version imports"));
}

TEST_CASE("the refusal of a class says how the model without its head is imported, which then works", "[interchange]") {
  TempDir dir;
  CHECK_THROWS_WITH(config_back(dir, "bert", {{"architectures", {"BertForNextSentencePrediction"}}}),
                    Catch::Contains("architecture 'BertForNextSentencePrediction' cannot be imported; of bert, ") &&
                        Catch::Contains("write \"architectures\": [\"BertModel\"] into the file"));
  CHECK(config_back(dir, "bert", {{"architectures", {"BertModel"}}})["architectures"][0] == "BertModel");
  const auto report = import_huggingface(dir / "hf", dir / "twice");
  CHECK(contains(report.ignored, "cls.predictions.bias"));
}

TEST_CASE("a run that begins from an imported model is exported with what came in, as it is trained now",
          "[interchange]") {
  TempDir dir;
  export_huggingface(trained(), dir / "hf");
  auto came = nlohmann::json::parse(read_file(dir / "hf/config.json"));
  came["classifier_dropout"] = 0.25;
  dir.write("hf/config.json", came.dump());
  fs::remove(dir / "hf/cloze_export.json");
  import_huggingface(dir / "hf", dir / "back");
  const auto back = open_run(dir / "back");
  auto config = tiny_run(dir, 1);
  config.model = back.config.model;
  backbone_of(config.model).hidden_dropout_prob = 0.3;
  config.objectives = {MlmConfig{}};
  config.init.from = dir / "back";
  pretrain(config, {.run = dir / "on"});
  export_huggingface(dir / "on", dir / "on-hf");
  const auto out = nlohmann::json::parse(read_file(dir / "on-hf/config.json"));
  CHECK(out["classifier_dropout"] == 0.25);
  CHECK(out["hidden_dropout_prob"] == 0.3);
  CHECK(out["architectures"] == nlohmann::json::array({"BertForMaskedLM"}));
}

TEST_CASE("an imported model is exported with all its tensors, and computes the same", "[interchange][parity]") {
  TempDir dir;
  // Cross-attention of a decoder without encoder, and tables that the class has but does not use.
  const auto is_dropped = [](const std::string& name) {
    return name.find("encoder_attn") != std::string::npos || name == "bert.embeddings.position_embeddings.weight" ||
           name == "model.shared.weight";
  };
  for (const auto& entry : fs::directory_iterator(SOURCE_DIR "/tests/parity")) {
    if (!entry.is_directory()) continue;
    const auto folder = entry.path().string(), name = entry.path().filename().string();
    INFO(name);
    import_huggingface(folder, dir / name);
    export_huggingface(dir / name, dir / (name + "-out"));
    check_config(nlohmann::json::parse(read_file(folder + "/config.json")),
                 nlohmann::json::parse(read_file(dir / (name + "-out/config.json"))));
    for (const auto* file : {"inputs.safetensors", "expected.safetensors", "generation.json"})
      if (fs::exists(folder + "/" + file)) fs::copy(folder + "/" + file, dir / (name + "-out/" + file));
    check_case(dir / (name + "-out"));
    if (!fs::exists(folder + "/model.safetensors")) continue;
    const auto exported = SafeTensors::open(dir / (name + "-out/model.safetensors"));
    const bool part = name.ends_with("-causal") || name == "bart-tables";
    for (const auto& tensor : SafeTensors::open(folder + "/model.safetensors").names()) {
      INFO(tensor);
      CHECK((exported.contains(tensor) || (part && is_dropped(tensor))));
      if (name.starts_with("modernbert"))
        CHECK(at::equal(exported.get(tensor), SafeTensors::open(folder + "/model.safetensors").get(tensor)));
    }
  }
}

TEST_CASE("every family is exported to TorchScript and Hugging Face, and imported again unchanged", "[interchange]") {
  TempDir dir;
  for (const std::string name :
       {"roberta", "albert", "electra-generator", "electra-discriminator", "distilbert", "longformer", "modernbert",
        "modernbert-biases", "modernbert-layers", "xlnet-plain", "xlnet-clamp-untied"}) {
    INFO(name);
    import_huggingface(SOURCE_DIR "/tests/parity/" + name, dir / name);
    const auto receipt = export_torchscript(dir / name, dir / (name + ".pt"), "float32", BINARY_DIR "/cloze");
    CHECK(receipt.passed);
    CHECK(receipt.largest_error.size() >= 2);
    export_huggingface(dir / name, dir / (name + "-hf"));
    import_huggingface(dir / (name + "-hf"), dir / (name + "-back"));
    const auto a = collect_params(*open_run(dir / name).network),
               b = collect_params(*open_run(dir / (name + "-back")).network);
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) CHECK(at::equal(a[i].param.value(), b[i].param.value()));
  }
}

TEST_CASE("an export to Hugging Face, imported again, is the same model", "[interchange]") {
  TempDir dir;
  export_huggingface(trained(), dir / "hf");
  CHECK(fs::exists(dir / "hf/config.json"));
  CHECK(fs::exists(dir / "hf/vocab.txt"));
  const auto report = import_huggingface(dir / "hf", dir / "back");
  CHECK(report.architecture == "BertForPreTraining");
  CHECK(report.ignored.empty());
  CHECK(report.fresh.empty());
  const auto a = open_run(trained()), b = open_run(dir / "back");
  const auto pa = collect_params(*a.network), pb = collect_params(*b.network);
  REQUIRE(pa.size() == pb.size());
  for (size_t i = 0; i < pa.size(); ++i) CHECK(at::equal(pa[i].param.value(), pb[i].param.value()));
  CHECK(a.tokenizer.fingerprint() == b.tokenizer.fingerprint());
  CHECK_THROWS_WITH(import_huggingface(dir / "hf", dir / "back"), Catch::Contains("exists; name another --out"));
}

TEST_CASE("an export with a flipped bit is not imported, unless its receipt is removed", "[interchange]") {
  TempDir dir;
  export_huggingface(trained(), dir / "hf");
  const auto receipt = dir / "hf/cloze_export.json";
  int number = 0;
  for (const std::string name :
       {"model.safetensors", "config.json", "tokenizer.json", "vocab.txt", "cloze_export.json"}) {
    INFO(name);
    const auto whole = read_file(dir / "hf/" + name);
    for (const size_t at : {whole.size() / 3, whole.size() / 2, whole.size() - 2}) {
      auto damaged = whole;
      damaged[at] ^= 1;
      dir.write("hf/" + name, damaged);
      CHECK_THROWS_WITH(import_huggingface(dir / "hf", dir / ("refused-" + std::to_string(number++))),
                        Catch::StartsWith(dir / "hf: " + name + " ") && Catch::EndsWith("remove " + receipt));
    }
    dir.write("hf/" + name, whole);
  }
  dir.write("hf/README.md", "a card that is written by hand\n");
  CHECK_NOTHROW(import_huggingface(dir / "hf", dir / "card"));
  // Somebody who trained the model further in transformers.
  auto damaged = read_file(dir / "hf/model.safetensors");
  damaged[damaged.size() - 2] ^= 1;
  dir.write("hf/model.safetensors", damaged);
  fs::remove(receipt);
  CHECK_NOTHROW(import_huggingface(dir / "hf", dir / "further"));
}

TEST_CASE("a resume of a model that was imported and not trained is refused with the command that trains it",
          "[interchange][continue]") {
  TempDir dir;
  export_huggingface(trained(), dir / "hf");
  import_huggingface(dir / "hf", dir / "run");
  auto config = open_run(dir / "run").config;
  config.data.tokens = open_run(trained()).config.data.tokens;
  config.train.budget.steps = 2;
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run", .resume = true}),
                    Catch::Contains("was imported and not trained") &&
                        Catch::Contains("/run.yaml --set init.from=" + (dir / "run") + " --set data.tokens="));
}

TEST_CASE("the generator of a run with replaced token detection is exported as a masked language model",
          "[interchange]") {
  TempDir dir;
  auto config = tiny_run(dir, 3);
  auto model = tiny_model<ElectraConfig>();
  model.embedding_size = 24;
  RtdConfig rtd;
  rtd.generator_hidden_size = 0.5;
  config.model = model;
  config.objectives = {rtd};
  pretrain(config, {.run = dir / "run"});
  export_huggingface(dir / "run", dir / "generator", "generator");
  CHECK(import_huggingface(dir / "generator", dir / "back").architecture == "ElectraForMaskedLM");
  auto run = open_run(dir / "run");
  take_generator(run);
  at::NoGradGuard no_grad;
  const auto ids = at::arange(12, at::kLong).view({2, 6});
  CHECK(at::equal(run.network->outputs({.input_ids = ids}).back().second,
                  open_run(dir / "back").network->outputs({.input_ids = ids}).back().second));
  export_huggingface(dir / "run", dir / "discriminator");
  CHECK(import_huggingface(dir / "discriminator", dir / "back-d").architecture == "ElectraForPreTraining");
  CHECK(fill(open_run(dir / "run"), "wa [MASK] wc", 3)[0].size() == 3);
}

TEST_CASE("a discriminator and a generator in two folders are imported as one run, which can be trained further",
          "[interchange]") {
  TempDir dir;
  for (const std::string tie : {"all", "tables", "none"}) {
    INFO(tie);
    auto config = tiny_run(dir, 2);
    ElectraConfig model;
    model.embedding_size = 24;
    model.hidden_size = 32;
    model.num_hidden_layers = 2;
    model.num_attention_heads = 4;
    model.intermediate_size = 64;
    model.max_position_embeddings = 32;
    RtdConfig rtd;
    rtd.generator_hidden_size = 0.25;
    rtd.generator_layers = 0.5;
    rtd.tie = choice_of<EmbeddingTie>(tie);
    config.model = model;
    config.objectives = {rtd};
    const auto run = dir / tie;
    pretrain(config, {.run = run});
    export_huggingface(run, run + "-d");
    export_huggingface(run, run + "-g", "generator");
    const auto report = import_huggingface(run + "-d", run + "-back", run + "-g");
    CHECK(report.fresh.empty());
    CHECK(report.ignored.empty());
    const auto back = open_run(run + "-back");
    CHECK(as<RtdConfig>(back.config.objectives[0])->tie == choice_of<EmbeddingTie>(tie));
    const auto network = open_run(run).network;
    const auto a = collect_params(*network), b = collect_params(*back.network);
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      INFO(a[i].name);
      CHECK(a[i].name == b[i].name);
      CHECK(at::equal(a[i].param.value(), b[i].param.value()));
    }
    // It is exported unchanged, and a new run starts from it with all weights.
    export_huggingface(run + "-back", run + "-g2", "generator");
    CHECK(read_file(run + "-g2/model.safetensors") == read_file(run + "-g/model.safetensors"));
    auto further = config;
    further.model = back.config.model;
    further.objectives = back.config.objectives;
    Network fresh(further.model, further.objectives);
    const auto started = init_from(run + "-back", fresh, back.tokenizer);
    CHECK(started.copied.size() == a.size());
    CHECK(started.fresh.empty());
    further.init.from = run + "-back";
    pretrain(further, {.run = run + "-on"});
    CHECK(fs::exists(run + "-on/latest"));
    if (tie == "all") {
      CHECK_THROWS_WITH(import_huggingface(run + "-d", dir / "x", run + "-d"),
                        Catch::Contains("needs an ElectraForMaskedLM as generator of an ElectraForPreTraining, these "
                                        "are ElectraForPreTraining and ElectraForPreTraining"));
      CHECK_THROWS_WITH(
          import_huggingface(run + "-d", dir / "x", SOURCE_DIR "/tests/parity/roberta"),
          Catch::Contains("its model is roberta, that of the discriminator is electra; give a generator"));
      CHECK_THROWS_WITH(import_huggingface(SOURCE_DIR "/tests/parity/electra-discriminator", dir / "x", run + "-g"),
                        Catch::Contains("; the two cannot be one run"));
    }
  }
}

TEST_CASE("an exported tokenizer adds the special tokens of its model", "[interchange]") {
  TempDir dir;
  const auto config = tiny_run(dir, 1);
  const TokenStore store(config.data.tokens, "train");
  for (const auto& [family, wanted] : {std::pair<std::string, std::string>{"bert", "[CLS] A [SEP] "},
                                       {"gpt2", "A "},
                                       {"t5", "A [UNK] "},
                                       {"bart", "[CLS] A [CLS] "},
                                       {"xlnet-plain", "A [SEP] [CLS] "}}) {
    INFO(family);
    import_huggingface(SOURCE_DIR "/tests/parity/" + family, dir / family);  // their end tokens are ids 1 and 2
    store.tokenizer().save(dir / (family + "/tokenizer"));
    export_huggingface(dir / family, dir / (family + ".hf"), "");
    const auto exported = nlohmann::json::parse(read_file(dir / (family + ".hf/tokenizer.json")));
    std::string found;
    for (const auto& part : exported["post_processor"]["single"])
      for (const auto& [type, token] : part.items()) found += token["id"].get<std::string>() + " ";
    CHECK(found == wanted);
  }
}

TEST_CASE("start and end ids imported without a tokenizer are exported again", "[interchange]") {
  TempDir dir;
  const auto out_again = [&](const std::string& family, const nlohmann::json& ids) {
    for (const std::string folder : {"hf", "run", "again"}) fs::remove_all(dir / folder);
    fs::copy(SOURCE_DIR "/tests/parity/" + family, dir / "hf");
    auto config = nlohmann::json::parse(read_file(dir / "hf/config.json"));
    config.erase("bos_token_id");
    config.erase("eos_token_id");
    config.update(ids);
    dir.write("hf/config.json", config.dump());
    import_huggingface(dir / "hf", dir / "run");
    export_huggingface(dir / "run", dir / "again");
    const auto out = nlohmann::json::parse(read_file(dir / "again/config.json"));
    return nlohmann::json{{"bos_token_id", out.value("bos_token_id", nlohmann::json())},
                          {"eos_token_id", out.value("eos_token_id", nlohmann::json())}};
  };
  const nlohmann::json ids{{"bos_token_id", 7}, {"eos_token_id", 9}};
  for (const std::string family : {"bert", "roberta", "albert", "electra-discriminator", "distilbert", "longformer",
                                   "bigbird", "modernbert", "xlnet-uni", "bart"}) {
    INFO(family);
    CHECK(out_again(family, ids) == ids);
  }
  const auto both = [](const nlohmann::json& bos, const nlohmann::json& eos) {
    return nlohmann::json{{"bos_token_id", bos}, {"eos_token_id", eos}};
  };
  for (const std::string family : {"roberta", "bigbird", "longformer", "modernbert", "albert", "xlnet-uni"}) {
    INFO(family);
    CHECK(out_again(family, both(nullptr, nullptr)) == both(nullptr, nullptr));
  }
  // Absent ids stay absent, and those beyond a reduced vocabulary are none.
  CHECK(out_again("bert", nlohmann::json::object()) == both(nullptr, nullptr));
  CHECK(out_again("albert", nlohmann::json::object()) == both(nullptr, nullptr));
  CHECK(out_again("albert", {{"bos_token_id", 1000000}, {"eos_token_id", 3}}) == both(nullptr, 3));
}

TEST_CASE("ids that only a tokenizer knows are exported with it, and as null without it", "[interchange]") {
  TempDir dir;
  const auto config = tiny_run(dir, 1);
  const TokenStore store(config.data.tokens, "train");
  const auto special = store.tokenizer().special();
  REQUIRE(special.sep >= 0);
  for (const std::string family : {"modernbert", "bigbird", "longformer", "gpt2"})
    for (const bool has_tokenizer : {false, true}) {
      INFO(family << has_tokenizer);
      const auto run = dir / (family + (has_tokenizer ? "-with" : "-without"));
      import_huggingface(SOURCE_DIR "/tests/parity/" + family, run);
      if (has_tokenizer) store.tokenizer().save(run + "/tokenizer");
      fs::remove_all(run + "/huggingface");  // as in a run that was not imported
      export_huggingface(run, run + ".hf");
      const auto out = nlohmann::json::parse(read_file(run + ".hf/config.json"));
      const auto id = [&](int64_t known) { return has_tokenizer ? nlohmann::json(known) : nlohmann::json(); };
      if (family == "gpt2") {
        CHECK(out.at("pad_token_id") == id(special.pad));
        continue;
      }
      CHECK(out.at("sep_token_id") == id(special.sep));
      if (family == "modernbert") CHECK(out.at("cls_token_id") == id(special.cls));
    }
}

TEST_CASE("the padding id of a GPT-2 is exported as it was imported", "[interchange]") {
  TempDir dir;
  import_huggingface(edited(dir, "gpt2", "config.json", "\"pad_token_id\": null", "\"pad_token_id\": 7"), dir / "run");
  export_huggingface(dir / "run", dir / "again");
  CHECK(nlohmann::json::parse(read_file(dir / "again/config.json")).at("pad_token_id") == 7);
}

TEST_CASE("a decoder of an encoder family is exported as the class with its head, or refused", "[interchange]") {
  TempDir dir;
  for (const bool transform : {true, false}) {
    auto config = tiny_run(dir, 3);
    backbone_of(config.model).architecture = Architecture::decoder;
    config.data.short_seq_prob = 0;
    ClmConfig clm;
    clm.transform = transform;
    config.objectives = {clm};
    const auto run = dir / (transform ? "run" : "plain");
    pretrain(config, {.run = run});
    if (!transform) {
      CHECK_THROWS_WITH(export_huggingface(run, dir / "none"),
                        "a language modeling head without a transform has no class at Hugging Face for bert; "
                        "train with `kind: clm, transform: true`, or export to torchscript");
      CHECK_FALSE(fs::exists(dir / "none"));
      continue;
    }
    export_huggingface(run, dir / "hf");
    CHECK(import_huggingface(dir / "hf", dir / "back").architecture == "BertLMHeadModel");
    const auto a = open_run(run), b = open_run(dir / "back");
    CHECK(backbone_of(b.config.model).eos_token_id == a.tokenizer.special().sep);
    at::NoGradGuard no_grad;
    const auto ids = at::arange(5, 15, at::kLong).view({2, 5});
    CHECK(at::equal(a.network->outputs({.input_ids = ids}).back().second,
                    b.network->outputs({.input_ids = ids}).back().second));
    const Prompt prompt{.prefix = {5, 6, 7}};
    CHECK(generate_ids(*a.network, {prompt}, {.max_new_tokens = 5})[0][0].ids ==
          generate_ids(*b.network, {prompt}, {.max_new_tokens = 5})[0][0].ids);
  }
}

TEST_CASE("a T5 with a tied head and unscaled states is exported as mT5", "[interchange]") {
  TempDir dir;
  import_huggingface(SOURCE_DIR "/tests/parity/mt5", dir / "mt5");
  export_huggingface(dir / "mt5", dir / "mt5-hf");
  CHECK_THAT(read_file(dir / "mt5-hf/config.json"),
             Catch::Contains("MT5ForConditionalGeneration") && Catch::Contains("\"model_type\": \"mt5\""));
  import_huggingface(dir / "mt5-hf", dir / "mt5-back");
  CHECK_FALSE(backbone_of(open_run(dir / "mt5-back").config.model).scale_decoder_outputs);
}

TEST_CASE("the pooling of a folder of sentence-transformers goes out with it, and a module with weights takes all away",
          "[interchange]") {
  TempDir dir;
  const auto import_with = [&](const std::string& module) {
    for (const auto* folder : {"hf", "run", "out"}) fs::remove_all(dir / folder);
    fs::copy(SOURCE_DIR "/tests/parity/bert", dir / "hf");
    const nlohmann::json own{
        {"idx", 0}, {"name", "0"}, {"path", ""}, {"type", "sentence_transformers.models.Transformer"}},
        more{{"idx", 1}, {"name", "1"}, {"path", "1_M"}, {"type", "sentence_transformers.models." + module}};
    dir.write("hf/modules.json", nlohmann::json{own, more}.dump());
    dir.write("hf/1_M/config.json", R"({"word_embedding_dimension": 8, "pooling_mode_cls_token": true, "secret": 1})");
    dir.write("hf/sentence_bert_config.json", R"({"max_seq_length": 12})");
    set_log_file(dir / "log.txt");
    import_huggingface(dir / "hf", dir / "run");
    export_huggingface(dir / "run", dir / "out");
    set_log_file("");
    return nlohmann::json::parse(read_file(dir / "hf/modules.json"));
  };
  const auto modules = import_with("Pooling");
  CHECK(modules == nlohmann::json::parse(read_file(dir / "out/modules.json")));
  CHECK(nlohmann::json::parse(read_file(dir / "out/1_M/config.json")) ==
        nlohmann::json{{"word_embedding_dimension", 8}, {"pooling_mode_cls_token", true}});
  CHECK(nlohmann::json::parse(read_file(dir / "out/sentence_bert_config.json"))["max_seq_length"] == 12);
  // The receipt knows the file in the folder; another one there is not removed.
  CHECK_NOTHROW(export_huggingface(dir / "run", dir / "out", "", /*replace=*/true));
  dir.write("out/1_M/mine.txt", "notes");
  CHECK_THROWS_WITH(export_huggingface(dir / "run", dir / "out", "", /*replace=*/true),
                    Catch::Contains("holds 1_M/mine.txt"));
  dir.write("out/1_M/config.json", "{}");
  CHECK_THROWS_WITH(import_huggingface(dir / "out", dir / "again"), Catch::Contains("1_M/config.json differs in size"));
  import_with("Dense");
  CHECK_FALSE(fs::exists(dir / "out/modules.json"));
  CHECK_THAT(
      read_file(dir / "log.txt"),
      Catch::Contains("modules.json: Cloze does not keep the module Dense of sentence-transformers, so that exports "
                      "have none of its modules, the pooling included"));
  dir.write("hf/modules.json", R"([{"path": "../secret", "type": "x.Pooling"}])");
  CHECK_THROWS_WITH(import_huggingface(dir / "hf", dir / "other"),
                    Catch::Contains("the folder of a module is '../secret'"));
}

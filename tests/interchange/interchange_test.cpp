#include "interchange/interchange.h"

#include <torch/csrc/jit/serialization/import.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "core/log.h"
#include "core/tensor/safetensors.h"
#include "data/token_store.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/tiny.h"
#include "tests/support/trained.h"
#include "generation/fill.h"
#include "generation/generate.h"
#include "run/init.h"
#include "train/pretrain.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

void check_case(const std::string& folder) {
  const auto rows = verify_parity(folder);
  CHECK(rows.size() >
        (folder.find("t5-encoder") != std::string::npos ? 4 : 20));  // an encoder without decoder has no loss
  for (const auto& row : rows) {
    INFO(folder << " " << row.name << " error " << row.error << " " << row.note);
    CHECK(row.passed);
  }
}

}  // namespace

TEST_CASE("hidden states, logits, loss and every gradient equal those of transformers", "[interchange][parity]") {
  // All names are listed, so that a missing case is noticed.
  const std::set<std::string> cases{"albert",
                                    "bart",
                                    "bart-causal",
                                    "bart-masked",
                                    "bart-tables",
                                    "bert",
                                    "bert-causal",
                                    "bigbird",
                                    "distilbert",
                                    "electra-discriminator",
                                    "electra-generator",
                                    "gpt2",
                                    "longformer",
                                    "mbart",
                                    "mbart-forced",
                                    "mish-one-segment",
                                    "modernbert",
                                    "modernbert-biases",
                                    "modernbert-far",
                                    "modernbert-layers",
                                    "mt5",
                                    "pegasus",
                                    "pegasus-causal",
                                    "relative-key",
                                    "relative-key-query",
                                    "roberta",
                                    "roberta-causal",
                                    "silu-untied",
                                    "t5",
                                    "t5-encoder",
                                    "xlnet-backward",
                                    "xlnet-clamp-untied",
                                    "xlnet-memory",
                                    "xlnet-plain",
                                    "xlnet-uni"};
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(SOURCE_DIR "/tests/parity"))
    if (entry.is_directory()) there.insert(entry.path().filename().string());
  CHECK(there == cases);
  for (const auto& name : there) check_case(SOURCE_DIR "/tests/parity/" + name);
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

TEST_CASE("the tolerance of outputs is relative to their largest entry", "[interchange][parity]") {
  TempDir dir;
  fs::copy(SOURCE_DIR "/tests/parity/bert", dir / "bert");
  const auto stored = SafeTensors::open(dir / "bert/expected.safetensors");
  const auto verdict = [&](const char* name, double shift) {
    std::vector<NamedTensor> changed;
    for (const auto& key : stored.names())
      changed.push_back({key, key == name ? stored.get(key) + shift : stored.get(key).clone()});
    save_safetensors(dir / "bert/expected.safetensors", changed);
    for (const auto& row : verify_parity(dir / "bert"))
      if (row.name == name) return row.passed;
    return false;
  };
  const auto largest = [&](const char* name) { return stored.get(name).abs().max().item<double>(); };
  REQUIRE(largest("prediction_logits") > 2);
  REQUIRE(largest("attentions.0") < 1);
  CHECK(verdict("prediction_logits", 0.7e-5 * largest("prediction_logits")));
  CHECK_FALSE(verdict("prediction_logits", 1.3e-5 * largest("prediction_logits")));
  CHECK(verdict("attentions.0", 0.7e-5));
  CHECK_FALSE(verdict("attentions.0", 1.3e-5));
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

TEST_CASE("the generator of a run with replaced token detection is exported as a masked language model",
          "[interchange]") {
  TempDir dir;
  auto config = tiny_run(dir, 3);
  ElectraConfig model;
  model.embedding_size = 24;
  model.hidden_size = 32;
  model.num_hidden_layers = 1;
  model.num_attention_heads = 2;
  model.intermediate_size = 64;
  model.max_position_embeddings = 32;
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
    CHECK(std::get<RtdConfig>(back.config.objectives[0]).tie == choice_of<EmbeddingTie>(tie));
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

TEST_CASE("a damaged case fails, and the tensor is named", "[interchange][parity]") {
  TempDir dir;
  fs::copy(SOURCE_DIR "/tests/parity/bert", dir / "bert");
  const auto weights = SafeTensors::open(dir / "bert/model.safetensors");
  std::vector<NamedTensor> changed;
  for (const auto& name : weights.names())
    changed.push_back(
        {name, name == "bert.encoder.layer.1.output.dense.bias" ? weights.get(name) * 2 : weights.get(name).clone()});
  save_safetensors(dir / "bert/model.safetensors", changed);
  std::string failed;
  for (const auto& row : verify_parity(dir / "bert"))
    if (!row.passed) failed += row.name + " ";
  CHECK_THAT(failed, Catch::Contains("hidden_states.2") && Catch::Contains("loss"));
  CHECK_THAT(failed, !Catch::Contains("hidden_states.1 "));
}

TEST_CASE("inputs of a case that the model cannot take are refused with a clear message", "[interchange][parity]") {
  TempDir dir;
  const auto with = [&](const std::string& file, const std::string& name, const Tensor& tensor) {
    const auto folder = dir / "case";
    fs::remove_all(folder);
    fs::copy(SOURCE_DIR "/tests/parity/bart", folder);
    const auto stored = SafeTensors::open(folder + "/" + file);
    std::vector<NamedTensor> tensors;
    for (const auto& key : stored.names())
      if (key != name) tensors.push_back({key, stored.get(key).clone()});
    if (tensor.defined()) tensors.push_back({name, tensor});
    save_safetensors(folder + "/" + file, tensors);
    return folder;
  };
  const auto ids = SafeTensors::open(SOURCE_DIR "/tests/parity/bart/inputs.safetensors").get("input_ids").clone();
  const auto refused = [&](const std::string& name, const Tensor& tensor, const std::string& sentence,
                           const std::string& file = "inputs.safetensors") {
    CHECK_THROWS_WITH(verify_parity(with(file, name, tensor)),
                      Catch::Contains(file + ": ") && Catch::Contains(sentence));
  };
  refused("input_ids", ids + 5000, "input_ids contains 50");
  refused("input_ids", ids - 5000, "but the model has ids from 0 to ");
  refused("input_ids", ids[0], "; ids are [batch, length]");
  refused("input_ids", ids.to(at::kFloat) + 0.5, "input_ids contains fractions");
  refused("input_ids", ids.repeat({1, 40}), " tokens long, but the model accepts at most ");
  refused("input_ids", Tensor(), "has no input_ids");
  refused("attention_mask", at::ones({ids.size(0), 2}, at::kLong), "attention_mask has shape [");
  refused("labels", at::full({ids.size(0), 3}, 7000, at::kLong), "labels contains 7000");
  refused("labels", at::full({ids.size(0) + 1, 3}, 7, at::kLong), "labels has ");
  refused("labels", Tensor(), "has neither labels nor decoder_input_ids");
  refused("loss", at::ones({3}), "loss has 3 elements; it must be a scalar", "expected.safetensors");
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

TEST_CASE("weights in shards, with old names and without the model's prefix, are read", "[interchange]") {
  TempDir dir;
  export_huggingface(trained(), dir / "hf");
  const auto whole = SafeTensors::open(dir / "hf/model.safetensors");
  std::vector<NamedTensor> first, second;
  nlohmann::json index;
  for (auto name : whole.names()) {
    if (name.rfind("cls.", 0) == 0) continue;
    auto old = name.substr(5);
    for (const auto& [now, before] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, std::pair{"LayerNorm.bias", "LayerNorm.beta"}})
      if (const auto at = old.find(now); at != std::string::npos) old.replace(at, std::string(now).size(), before);
    auto& shard = first.size() <= second.size() ? first : second;
    index["weight_map"][old] = &shard == &first ? "model-1.safetensors" : "model-2.safetensors";
    shard.push_back({old, whole.get(name).clone()});
  }
  second.push_back({"embeddings.position_ids", at::arange(32).view({1, 32})});
  index["weight_map"]["embeddings.position_ids"] = "model-2.safetensors";
  fs::remove(dir / "hf/model.safetensors");
  save_safetensors(dir / "hf/model-1.safetensors", first);
  save_safetensors(dir / "hf/model-2.safetensors", second);
  std::ofstream(dir / "hf/model.safetensors.index.json") << index;
  auto config = nlohmann::json::parse(read_file(dir / "hf/config.json"));
  config["architectures"] = {"BertForMaskedLM"};
  std::ofstream(dir / "hf/config.json") << config;
  const auto report = import_huggingface(dir / "hf", dir / "run");
  CHECK(report.fresh.size() == 5);  // the prediction head is newly initialized, and reported
  CHECK(report.ignored == std::vector<std::string>{"bert.pooler.dense.bias", "bert.pooler.dense.weight"});
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

TEST_CASE("a base model is imported without a head, whether config.json names its class or not", "[interchange]") {
  TempDir dir;
  at::NoGradGuard no_grad;
  const auto hidden = [](const std::string& run) {
    const auto opened = open_run(run);
    const auto ids = at::arange(10, at::kLong).view({2, 5}).add(3);
    for (const auto& [name, tensor] : opened.network->outputs(
             {.input_ids = ids,
              .decoder_input_ids = backbone_of(opened.config.model).is_encoder_decoder() ? ids + 20 : Tensor()}))
      if (name == "last_hidden_state") return tensor;
    return Tensor();
  };
  struct Case {
    const char *folder, *prefix, *bare, *whole;
    bool tied;
  };
  for (const auto& c : {Case{"gpt2", "transformer.", "GPT2Model", "GPT2LMHeadModel", true},
                        Case{"modernbert", "model.", "ModernBertModel", "ModernBertForMaskedLM", true},
                        Case{"bart", "model.", "BartModel", "BartForConditionalGeneration", true},
                        Case{"t5", "", "T5Model", "T5ForConditionalGeneration", false}}) {
    INFO(c.bare);
    const auto folder = SOURCE_DIR "/tests/parity/" + std::string(c.folder), made = dir / c.folder;
    auto config = nlohmann::json::parse(read_file(folder + "/config.json"));
    config["tie_word_embeddings"] = c.tied;
    const auto stored = SafeTensors::open(folder + "/model.safetensors");
    std::vector<NamedTensor> whole, bare;
    for (const auto& name : stored.names()) {
      whole.push_back({name, stored.get(name).clone()});
      if (name.starts_with(c.prefix))
        bare.push_back({name.substr(std::string(c.prefix).size()), stored.get(name).clone()});
    }
    if (!c.tied) whole.push_back({"lm_head.weight", stored.get("shared.weight") * 2});
    const auto imported = [&](const std::string& name, const char* architecture,
                              const std::vector<NamedTensor>& tensors) {
      config.erase("architectures");
      if (architecture) config["architectures"] = {architecture};
      dir.write(name + "/config.json", config.dump());
      save_safetensors(dir / (name + "/model.safetensors"), tensors);
      const auto report = import_huggingface(dir / name, made + name);
      CHECK(report.ignored.empty());
      CHECK(report.fresh.empty());
      return report.architecture;
    };
    CHECK(imported("whole", nullptr, whole) == c.whole);
    CHECK(imported("named", c.bare, bare) == c.bare);
    CHECK(imported("inferred", nullptr, bare) == c.bare);
    for (const auto* name : {"named", "inferred"}) {
      CHECK(open_run(made + name).network->objectives.empty());
      CHECK(at::equal(hidden(made + name), hidden(made + "whole")));
    }
    export_huggingface(made + "inferred", made + "again");
    const auto again = SafeTensors::open(made + "again/model.safetensors");
    for (const auto& [name, tensor] : bare) CHECK(at::equal(again.get(name), tensor));
    if (!backbone_of(open_run(made + "inferred").config.model).is_generative()) continue;
    CHECK_THROWS_WITH(
        generate_ids(*open_run(made + "inferred").network, {{.source = {3, 4}, .prefix = {3}}}, {.max_new_tokens = 2}),
        Catch::Contains("this model was not trained to generate text; train it with clm, span_corruption"));
  }
}

TEST_CASE("folders that cannot be imported are refused with a clear message", "[interchange]") {
  TempDir dir;
  const auto attempt = [&](const std::string& config, bool weights) {
    fs::remove_all(dir / "hf");
    dir.write("hf/config.json", config);
    if (weights) save_safetensors(dir / "hf/model.safetensors", {{"bert.x", at::ones({1})}});
    try {
      import_huggingface(dir / "hf", dir / "out");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(attempt("{", true), Catch::Contains("config.json: is not a JSON object"));
  CHECK_THAT(attempt("{\"pad_token_id\": " + std::string(200000, '[') + std::string(200000, ']') + "}", true),
             Catch::Contains("config.json: is not a JSON object (line 1, column 81: nested deeper than 64 lists"));
  CHECK_THAT(attempt("{\"model_type\": \"xlm\"}", true),
             Catch::Contains(
                 "model_type is 'xlm'; this version imports bert, roberta, xlm-roberta, camembert, albert, electra"));
  CHECK_THAT(attempt("{\"model_type\": \"bert\"}", false), Catch::Contains("has no model.safetensors"));
  CHECK_THAT(attempt("{\"hidden_size\": \"wide\"}", true),
             Catch::Contains("'hidden_size' is \"wide\", which has the wrong type"));
  CHECK_THAT(attempt("{\"hidden_act\": \"gleu\"}", true),
             Catch::Contains("hidden_act is 'gleu', which is unknown; did you mean 'gelu'?"));
  CHECK_THAT(attempt("{\"architectures\": [\"BertForTokenClassification\"]}", true),
             Catch::Contains("architecture 'BertForTokenClassification' cannot be imported"));
  CHECK_THAT(attempt("{\"num_hidden_layers\": 1}", true),
             Catch::Contains("the weights have no tensor 'bert.embeddings.word_embeddings.weight'"));
  dir.write("hf/pytorch_model.bin", "x");
  fs::remove(dir / "hf/model.safetensors");
  CHECK_THROWS_WITH(
      import_huggingface(dir / "hf", dir / "out"),
      Catch::Contains("pytorch_model.bin: is not in the format that torch.save writes since version 1.6"));
  dir.write("hf/pytorch_model.bin", "PK, and no more");
  CHECK_THROWS_WITH(import_huggingface(dir / "hf", dir / "out"),
                    Catch::Contains("pytorch_model.bin: cannot be read ("));
}

TEST_CASE("an impossible size in config.json is refused with its key and value", "[interchange]") {
  TempDir dir;
  const auto answer = [&](const std::string& family, const std::string& key, const nlohmann::json& value) {
    fs::remove_all(dir / "hf");
    fs::remove_all(dir / "run");
    fs::copy(SOURCE_DIR "/tests/parity/" + family, dir / "hf");
    auto config = nlohmann::json::parse(read_file(dir / "hf/config.json"));
    config[key] = value;
    dir.write("hf/config.json", config.dump());
    try {
      import_huggingface(dir / "hf", dir / "run");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("imported");
  };
  int sizes = 0;
  for (const std::string family : {"bert", "bigbird", "t5", "xlnet-uni"}) {
    const auto config = nlohmann::json::parse(read_file(SOURCE_DIR "/tests/parity/" + family + "/config.json"));
    for (const auto& [key, value] : config.items()) {
      if (!value.is_number_integer()) continue;
      INFO(family << ": " << key);
      for (const auto& size : {nlohmann::json(int64_t{1} << 62), nlohmann::json(1e300), nlohmann::json(-1e12)}) {
        const auto said = answer(family, key, size);
        const bool refused = said.find("config.json: '" + key + "' is " + size.dump() +
                                       ", which is beyond any model") != std::string::npos;
        CHECK((refused || said == "imported"));  // keys that are ignored
        sizes += refused;
      }
      // A plausible size that does not fit these weights: refused, or without effect.
      answer(family, key, 1 << 27);
    }
  }
  CHECK(sizes > 3 * 4 * 5);
  CHECK_THAT(answer("bert", "vocab_size", 1 << 23), Catch::Contains("parameters, but the weights have"));
  CHECK_THAT(answer("bert", "hidden_size", 1 << 20),
             Catch::Contains("'model.hidden_size' is 1048576, must be in [1, 262144]"));
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
    nlohmann::json found;
    for (const auto* key : {"bos_token_id", "eos_token_id"})
      if (out.contains(key)) found[key] = out[key];
    return found;
  };
  const nlohmann::json ids{{"bos_token_id", 7}, {"eos_token_id", 9}};
  for (const std::string family : {"bert", "roberta", "albert", "electra-discriminator", "distilbert", "longformer",
                                   "bigbird", "modernbert", "xlnet-uni", "bart"}) {
    INFO(family);
    CHECK(out_again(family, ids) == ids);
  }
  CHECK(out_again("bert", nlohmann::json::object()).is_null());
  CHECK(out_again("albert", {{"bos_token_id", 1000000}}).is_null());  // beyond a reduced vocabulary
}

TEST_CASE("weights that are not finite floating-point numbers are refused with the name of the tensor",
          "[interchange]") {
  TempDir dir;
  const auto refused = [&](const std::string& tensor, const std::function<Tensor(Tensor)>& change,
                           const std::string& sentence) {
    fs::remove_all(dir / "hf");
    fs::copy(SOURCE_DIR "/tests/parity/roberta", dir / "hf");
    const auto stored = SafeTensors::open(SOURCE_DIR "/tests/parity/roberta/model.safetensors");
    std::vector<NamedTensor> tensors;
    for (const auto& name : stored.names())
      tensors.push_back({name, name == tensor ? change(stored.get(name).clone()) : stored.get(name).clone()});
    save_safetensors(dir / "hf/model.safetensors", tensors);
    CHECK_THROWS_WITH(import_huggingface(dir / "hf", dir / "run"), "tensor '" + tensor + "' has " + sentence);
    CHECK_FALSE(fs::exists(dir / "run"));
  };
  const std::string one = "roberta.encoder.layer.1.output.dense.weight",
                    table = "roberta.embeddings.word_embeddings.weight";
  const std::string mend = "; download the file again, or use an earlier checkpoint";
  const auto with = [](double value, int64_t count) {
    return [=](Tensor t) {
      t.flatten().slice(0, 7, 7 + count).fill_(value);
      return t;
    };
  };
  refused(one, with(NAN, 1), "1 non-finite value, first nan" + mend);
  refused(one, with(INFINITY, 3), "3 non-finite values, first inf" + mend);
  refused(table, with(-INFINITY, 2), "2 non-finite values, first -inf" + mend);
  refused(
      one, [](Tensor t) { return t.mul(100).to(at::kChar); },
      "type Char, but weights must be floating-point; dequantize it, or download the file again");
  refused(
      table, [](Tensor t) { return t.to(at::kLong); },
      "type Long, but weights must be floating-point; dequantize it, or download the file again");
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

namespace {

/// A copy of a parity case whose weights have one more tensor, which differs from `like`.
std::string with_tensor(const TempDir& dir, const std::string& name, const std::string& tensor,
                        const std::string& like) {
  const auto folder = dir / (name + "-changed");
  fs::remove_all(folder);
  fs::copy(SOURCE_DIR "/tests/parity/" + name, folder);
  const auto stored = SafeTensors::open(folder + "/model.safetensors");
  std::vector<NamedTensor> tensors;
  for (const auto& key : stored.names()) tensors.push_back({key, stored.get(key).clone()});
  tensors.push_back({tensor, stored.get(like) + 1});
  save_safetensors(folder + "/model.safetensors", tensors);
  return folder;
}

/// A copy of a parity case, in `dir / "edited"`, with another text in one of its files.
std::string edited(const TempDir& dir, const std::string& name, const std::string& file, const std::string& from,
                   const std::string& to) {
  const auto folder = dir / "edited";
  fs::remove_all(folder);
  fs::copy(SOURCE_DIR "/tests/parity/" + name, folder);
  auto text = read_file(folder + "/" + file);
  REQUIRE(text.find(from) != std::string::npos);
  std::ofstream(folder + "/" + file) << text.replace(text.find(from), from.size(), to);
  return folder;
}

}  // namespace

TEST_CASE("tables that differ are imported untied, whatever config.json says", "[interchange]") {
  TempDir dir;
  import_huggingface(with_tensor(dir, "bart", "model.encoder.embed_tokens.weight", "model.shared.weight"),
                     dir / "tables");
  CHECK_FALSE(shares_embeddings(open_run(dir / "tables").config.model));
  CHECK(backbone_of(open_run(dir / "tables").config.model).tie_word_embeddings);  // head and decoder share a table
  // Tables that differ are not tied, whatever config.json says.
  import_huggingface(
      with_tensor(dir, "bert", "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
      dir / "head");
  CHECK_FALSE(backbone_of(open_run(dir / "head").config.model).tie_word_embeddings);
  // The class of T5 always says "tied"; a separate head takes precedence.
  import_huggingface(with_tensor(dir, "t5", "lm_head.weight", "shared.weight"), dir / "untied");
  CHECK_FALSE(backbone_of(open_run(dir / "untied").config.model).tie_word_embeddings);
}

TEST_CASE("ids outside the vocabulary, sizes of zero, values of another type and lists of ids are refused",
          "[interchange]") {
  TempDir dir;
  CHECK_THROWS_WITH(import_huggingface(edited(dir, "bart", "config.json", "\"decoder_start_token_id\": 2",
                                              "\"decoder_start_token_id\": 5000"),
                                       dir / "x"),
                    Catch::Contains("decoder_start_token_id is 5000, but the vocabulary has"));
  CHECK_THROWS_WITH(import_huggingface(edited(dir, "mt5", "config.json", "\"relative_attention_num_buckets\": 32",
                                              "\"relative_attention_num_buckets\": 0"),
                                       dir / "x"),
                    Catch::Contains("as run.yaml") && Catch::Contains("must be in [2, 1048576]"));
  CHECK_THROWS_WITH(verify_parity(edited(dir, "mt5", "generation.json", "\"num_beams\": 4", "\"num_beams\": \"x\"")),
                    Catch::Contains("'num_beams' is \"x\", which has the wrong type"));
  CHECK_THROWS_WITH(verify_parity(edited(dir, "mt5", "generation.json", "{", "{\"early_stopping\": \"nevr\",")),
                    Catch::Contains("early_stopping is 'nevr', which is unknown; did you mean 'never'?"));
  CHECK_THROWS_WITH(
      import_huggingface(edited(dir, "gpt2", "config.json", "\"eos_token_id\": 3", "\"eos_token_id\": [3, 4]"),
                         dir / "x"),
      Catch::Contains("'eos_token_id' is [3,4], but Cloze supports one id; give that one"));
}

TEST_CASE("ignored settings and inputs of a parity case are reported", "[interchange]") {
  TempDir dir;
  // Ignored settings and inputs are reported; the result depends on the numbers alone.
  const auto log_of = [&](const std::string& folder) {
    set_log_file(dir / "log.txt");
    verify_parity(folder);
    set_log_file("");
    return read_file(dir / "log.txt");
  };
  CHECK_THAT(log_of(edited(dir, "mt5", "generation.json", "\"num_beams\": 4", "\"num_baems\": 4")),
             Catch::Contains("'num_baems' is ignored; did you mean 'num_beams'?"));
  const auto folder = edited(dir, "gpt2", "config.json", "{", "{");
  const auto inputs = SafeTensors::open(folder + "/inputs.safetensors");
  std::vector<NamedTensor> more;
  for (const auto& key : inputs.names()) more.push_back({key, inputs.get(key).clone()});
  more.push_back({"position_ids", inputs.get("input_ids").clone()});
  save_safetensors(folder + "/inputs.safetensors", more);
  CHECK_THAT(log_of(folder), Catch::Contains("'position_ids' is ignored for gpt2"));
}

TEST_CASE("forced ids of generation_config.json take precedence over config.json", "[interchange]") {
  TempDir dir;
  std::ofstream(edited(dir, "bart", "config.json", "{", "{") + "/generation_config.json")
      << R"({"forced_bos_token_id": 7, "forced_eos_token_id": 2})";
  import_huggingface(dir / "edited", dir / "forced");
  const auto model = decoding_ids_of(open_run(dir / "forced").config.model);
  CHECK(model.forced_bos_token_id == 7);
  CHECK(model.forced_eos_token_id == 2);
  CHECK(export_torchscript(dir / "forced", dir / "forced.pt", "float32", BINARY_DIR "/cloze")
            .passed);  // generates the same text as the run
  const auto text = torch::jit::load(dir / "forced.pt")
                        .get_method("generate")({at::arange(3, 9, at::kLong).unsqueeze(0), c10::IValue(), 5, 2})
                        .toTensor();
  CHECK(text[0][1].item<int64_t>() == 7);
  CHECK(text[0][-1].item<int64_t>() == 2);
}

TEST_CASE("other ids of config.json take precedence over generation_config.json, which fills absent ones",
          "[interchange]") {
  TempDir dir;
  // For other ids config.json takes precedence, with a warning; an id missing there is read from
  // generation_config.json.
  std::ofstream(edited(dir, "bart", "config.json", "\"eos_token_id\": 2", "\"eos_token_id\": null") +
                "/generation_config.json")
      << R"({"eos_token_id": [9], "decoder_start_token_id": 11})";
  set_log_file(dir / "filled.txt");
  import_huggingface(dir / "edited", dir / "filled");
  set_log_file("");
  CHECK(backbone_of(open_run(dir / "filled").config.model).eos_token_id == 9);
  CHECK(decoding_ids_of(open_run(dir / "filled").config.model).decoder_start_token_id == 2);
  CHECK_THAT(
      read_file(dir / "filled.txt"),
      Catch::Contains("generation_config.json: 'decoder_start_token_id' is 11, but 2 in config.json, which is used"));
}

TEST_CASE("absent keys take the default of the class, and a T5 with a tied head is exported as mT5", "[interchange]") {
  TempDir dir;
  // Absent keys take the default of the class; a decoder without a start token starts with bos_token_id.
  import_huggingface(edited(dir, "mbart", "config.json", "\"scale_embedding\": true,", ""), dir / "silent");
  CHECK_FALSE(backbone_of(open_run(dir / "silent").config.model).scale_embedding);
  CHECK(decoding_ids_of(open_run(dir / "silent").config.model).decoder_start_token_id == 0);
  import_huggingface(edited(dir, "gpt2", "config.json", "\"eos_token_id\": 3", "\"eos_token_id\": null"),
                     dir / "endless");
  CHECK(backbone_of(open_run(dir / "endless").config.model).eos_token_id == -1);
  // A T5 with a tied head and unscaled states is exported as mT5.
  import_huggingface(SOURCE_DIR "/tests/parity/mt5", dir / "mt5");
  export_huggingface(dir / "mt5", dir / "mt5-hf");
  CHECK_THAT(read_file(dir / "mt5-hf/config.json"),
             Catch::Contains("MT5ForConditionalGeneration") && Catch::Contains("\"model_type\": \"mt5\""));
  import_huggingface(dir / "mt5-hf", dir / "mt5-back");
  CHECK_FALSE(backbone_of(open_run(dir / "mt5-back").config.model).scale_decoder_outputs);
}

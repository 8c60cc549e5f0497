#include <torch/csrc/jit/serialization/import.h>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "inference/generation/generate.h"
#include "tests/interchange/cases.h"
#include "tests/support/logged.h"
#include "tests/support/trained.h"

using namespace cloze;
namespace fs = std::filesystem;

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
  fs::remove(dir / "hf/cloze_export.json");
  const auto report = import_huggingface(dir / "hf", dir / "run");
  CHECK(report.fresh.size() == 5);  // the prediction head is newly initialized, and reported
  CHECK(report.ignored == std::vector<std::string>{"bert.pooler.dense.bias", "bert.pooler.dense.weight"});
}

namespace {

const std::string key_weight = "bert.encoder.layer.0.attention.self.key.weight",
                  bert_weights = SOURCE_DIR "/tests/parity/bert/model.safetensors";

/// The parity case bert in `dir / "hf"` with other weights.
std::string bert_with(const TempDir& dir, const std::vector<NamedTensor>& tensors) {
  fs::remove_all(dir / "hf");
  fs::copy(SOURCE_DIR "/tests/parity/bert", dir / "hf");
  save_safetensors(dir / "hf/model.safetensors", tensors);
  return dir / "hf";
}

}  // namespace

TEST_CASE("of query, key and value the message names the one that is absent, or that has another shape",
          "[interchange]") {
  TempDir dir;
  const auto stored = SafeTensors::open(bert_weights);
  for (const std::string part : {"query", "key", "value"})
    for (const std::string kind : {"weight", "bias"}) {
      const auto name = "bert.encoder.layer.1.attention.self." + part + "." + kind;
      std::vector<NamedTensor> without, shorter;
      for (const auto& one : stored.names()) {
        const auto tensor = stored.get(one).clone();
        if (one != name) without.push_back({one, tensor});
        shorter.push_back({one, one == name ? tensor.slice(-1, 1).contiguous() : tensor});
      }
      CHECK_THROWS_WITH(import_huggingface(bert_with(dir, without), dir / "run"),
                        "the weights have no tensor '" + name + "'; they do not belong to this config.json");
      CHECK_THROWS_WITH(import_huggingface(bert_with(dir, shorter), dir / "run"),
                        Catch::Contains("tensor '" + name + "' has shape ") &&
                            Catch::Contains(kind == "bias" ? "[31], but config.json needs [32] for"
                                                           : "[32, 31], but config.json needs [32, 32] for"));
    }
}

TEST_CASE("an index of shards is refused where it names no file for a tensor, or a file without a tensor of the model",
          "[interchange]") {
  TempDir dir;
  std::vector<NamedTensor> most;
  nlohmann::json map;
  const auto stored = SafeTensors::open(bert_weights);
  for (const auto& name : stored.names()) {
    map[name] = name == key_weight ? "model-2.safetensors" : "model-1.safetensors";
    if (name != key_weight) most.push_back({name, stored.get(name).clone()});
  }
  const auto imported = [&](const std::vector<NamedTensor>& rest, const nlohmann::json& weight_map) {
    fs::remove_all(dir / "run");
    bert_with(dir, most);
    fs::rename(dir / "hf/model.safetensors", dir / "hf/model-1.safetensors");
    save_safetensors(dir / "hf/model-2.safetensors", rest);
    dir.write("hf/model.safetensors.index.json", nlohmann::json{{"weight_map", weight_map}}.dump());
    fs::remove(dir / "log.txt");
    set_log_file(dir / "log.txt");
    std::string answer = "imported";
    try {
      import_huggingface(dir / "hf", dir / "run");
    } catch (const Error& e) {
      answer = e.what();
    }
    set_log_file("");
    return answer;
  };
  const std::vector<NamedTensor> key{{key_weight, stored.get(key_weight).clone()}}, other{{"x", at::ones({1})}};
  const auto index = dir / "hf/model.safetensors.index.json";
  const auto with = [&](const std::string& name, const nlohmann::json& file) {
    auto changed = map;
    changed[name] = file;
    return changed;
  };
  CHECK(imported(key, map) == "imported");
  CHECK(imported(key, with(key_weight, 5)) ==
        index + ": weight_map has 5 for '" + key_weight + "', must be the name of a file; the file is damaged");
  CHECK(imported(other, map) == index + ": names tensor '" + key_weight +
                                    "' in model-2.safetensors, which does not hold it; download both again");
  // A head would be new otherwise.
  const std::string dense = "cls.predictions.transform.dense.weight";
  const auto all = most;
  std::erase_if(most, [&](const auto& one) { return one.name == dense; });
  CHECK(imported(key, map) ==
        index + ": names tensor '" + dense + "' in model-1.safetensors, which does not hold it; download both again");
  most = all;
  // Checkpoints that safetensors converted name tied tables that they do not hold.
  CHECK(imported(key, with("cls.predictions.decoder.weight", "model-1.safetensors")) == "imported");
  CHECK_THAT(read_file(dir / "log.txt"),
             Catch::Contains(index + ": names tensor 'cls.predictions.decoder.weight' in model-1.safetensors, which "
                                     "does not hold it; the model is imported without it"));
  auto wrong = with(key_weight, "model-1.safetensors");
  wrong["x"] = "model-2.safetensors";
  CHECK(imported({key[0], other[0]}, wrong) == "imported");
  CHECK_THAT(read_file(dir / "log.txt"),
             Catch::Contains("' in model-1.safetensors, which does not hold it; another file does"));
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
  CHECK_THAT(attempt("{\"architectures\": [\"BertForNextSentencePrediction\"]}", true),
             Catch::Contains("architecture 'BertForNextSentencePrediction' cannot be imported"));
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
  CHECK_THROWS_WITH(
      import_huggingface(edited(dir, "gpt2", "config.json", "\"eos_token_id\": 3", "\"eos_token_id\": [3, 4]"),
                         dir / "x"),
      Catch::Contains("'eos_token_id' is [3,4], but Cloze supports one id; give that one"));
}

TEST_CASE("weights that Git LFS has not fetched are named as its pointers", "[interchange]") {
  TempDir dir;
  const auto folder = bert_with(dir, {});
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  for (const std::string name : {"model.safetensors", "pytorch_model.bin"}) {
    fs::remove(folder + "/model.safetensors");
    dir.write("hf/" + name, pointer);
    CHECK_THROWS_WITH(
        import_huggingface(folder, dir / "run"),
        Catch::Contains(name + ": is a pointer of Git LFS; get the file that it stands for: git lfs pull"));
  }
}

TEST_CASE("a generation_config.json that is a link to another file publishes its own keys alone", "[interchange]") {
  TempDir dir;
  const auto folder = edited(dir, "bart", "config.json", "{", "{");
  fs::create_symlink(dir.write("elsewhere.json", R"({"num_beams": 4, "password": "secret"})"),
                     folder + "/generation_config.json");
  const auto log = logged(dir, [&] { import_huggingface(folder, dir / "run"); });
  CHECK_THAT(log,
             Catch::Contains("generation_config.json: has keys that it does not know, which are left out: password"));
  export_huggingface(dir / "run", dir / "out");
  CHECK(read_file(dir / "out/generation_config.json") == "{\n  \"num_beams\": 4\n}\n");
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

TEST_CASE("absent keys take the default of the class", "[interchange]") {
  TempDir dir;
  // Absent keys take the default of the class; a decoder without a start token starts with bos_token_id.
  import_huggingface(edited(dir, "mbart", "config.json", "\"scale_embedding\": true,", ""), dir / "silent");
  CHECK_FALSE(backbone_of(open_run(dir / "silent").config.model).scale_embedding);
  CHECK(decoding_ids_of(open_run(dir / "silent").config.model).decoder_start_token_id == 0);
  import_huggingface(edited(dir, "gpt2", "config.json", "\"eos_token_id\": 3", "\"eos_token_id\": null"),
                     dir / "endless");
  CHECK(backbone_of(open_run(dir / "endless").config.model).eos_token_id == -1);
}

TEST_CASE("an XLNet with bi_data is imported with a warning, and verify parity, which reads as it says, has none",
          "[interchange]") {
  TempDir dir;
  const auto import_of = [&](const std::string& name) {
    return logged(dir, [&] { import_huggingface(SOURCE_DIR "/tests/parity/" + name, dir / name); });
  };
  const std::string warning =
      "/config.json: bi_data is true: outputs differ from those of transformers, which reads the second half of every "
      "batch backwards in evaluation too";
  CHECK_THAT(import_of("xlnet-backward"), Catch::Contains("warning: ") && Catch::Contains(warning));
  CHECK_THAT(import_of("xlnet-plain"), !Catch::Contains("bi_data"));
  CHECK_THAT(logged(dir, [] { verify_parity(SOURCE_DIR "/tests/parity/xlnet-backward"); }),
             !Catch::Contains("bi_data"));
}

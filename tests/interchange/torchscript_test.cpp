// TorchScript files, which run without Cloze.
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/spelling.h"
#include "core/tensor/ops.h"
#include "core/tensor/safetensors.h"
#include "models/attention/kinds.h"
#include "models/families/gpt2.h"
#include "models/families/t5.h"
#include "objectives/clm/clm.h"
#include "objectives/mntp/mntp.h"
#include "objectives/span_corruption/span_corruption.h"
#include "tests/interchange/cases.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/trained.h"
#include "inference/generation/generate.h"
#include "interchange/interchange.h"
#include "run/records/made_by.h"

using namespace cloze;
namespace fs = std::filesystem;

TEST_CASE(
    "a TorchScript file runs at other shapes in a new process, in both precisions, and contains config, provenance "
    "and tokenizer",
    "[interchange][torchscript]") {
  TempDir dir;
  fs::copy(trained(), dir / "run", fs::copy_options::recursive);
  fs::create_symlink(dir.write("elsewhere.txt", "of the user"), dir / "run/tokenizer/elsewhere.txt");
  for (const std::string dtype : {"float32", "bfloat16"}) {
    const auto receipt = export_torchscript(dir / "run", dir / (dtype + ".pt"), dtype, BINARY_DIR "/cloze");
    CHECK(receipt.passed);
    CHECK(receipt.shapes.size() == 3);
    CHECK(receipt.largest_error.size() == 4);
    const auto facts = nlohmann::json::parse(read_file(dir / (dtype + ".pt.receipt.json")));
    CHECK(facts["provenance"]["tokenizer"] == open_run(trained()).tokenizer.fingerprint());
    const double cost = facts.value("/largest_difference_from_float32/prediction_logits"_json_pointer, 0.0);
    CHECK((cost > 1e-4) == (dtype == "bfloat16"));
    CHECK(cost < 0.2);
  }
  const auto content = read_file(dir / "float32.pt");
  for (const auto* name : {"extra/config.json", "extra/run.yaml", "extra/provenance.json", "extra/tokenizer/vocab.txt"})
    CHECK(content.find(name) != std::string::npos);
  CHECK(content.find("extra/tokenizer/elsewhere.txt") == std::string::npos);  // a link, whose file is not published
  // A tied table is stored once.
  const auto run = open_run(trained());
  int64_t parameters = 0;
  for (const auto& p : collect_params(*run.network)) parameters += p.param.value().numel();
  CHECK(static_cast<int64_t>(content.size()) < 4 * parameters + 60000);
}

TEST_CASE("encode and incremental decode of an exported file match the network on the whole text",
          "[interchange][torchscript]") {
  TempDir dir;
  at::NoGradGuard no_grad;
  for (const std::string name : {"t5", "mt5", "bart", "bart-masked", "mbart", "mbart-forced",
                                 "pegasus"}) {  // export also compares generate, with forced ids
    INFO(name);
    import_huggingface(SOURCE_DIR "/tests/parity/" + name, dir / name);
    CHECK(export_torchscript(dir / name, dir / (name + "-bf16.pt"), "bfloat16", BINARY_DIR "/cloze").passed);
    export_torchscript(dir / name, dir / (name + ".pt"), "float32", BINARY_DIR "/cloze");
    auto file = torch::jit::load(dir / (name + ".pt"));
    const auto run = open_run(dir / name);
    const PlainScope as_the_file_computes;
    const auto ids = at::arange(21, at::kLong).mul(7).remainder(90).add(3).view({3, 7}),
               target_ids = at::arange(15, at::kLong).mul(11).remainder(90).add(3).view({3, 5});
    auto mask = at::ones({3, 7}, at::kBool);
    mask[1].narrow(0, 4, 3).fill_(false);
    const auto states = file.get_method("encode")({ids, mask}).toTensor();
    CHECK(error_of(states, run.network->backbone->encode({.input_ids = ids, .attention_mask = mask}).states) < 1e-6);
    Tensor logits;  // [3, 5, V]
    for (const auto& [output, tensor] :
         run.network->outputs({.input_ids = ids, .attention_mask = mask, .decoder_input_ids = target_ids}))
      if (output == "logits") logits = tensor;
    c10::IValue past;
    for (const auto& [begin, end] :
         {std::pair{0, 3}, std::pair{3, 4}, std::pair{4, 5}}) {  // three tokens, then one by one with the cache
      const auto step = file.get_method("decode")({target_ids.slice(1, begin, end), states, mask, past}).toTuple();
      CHECK(error_of(step->elements()[0].toTensor(), logits.select(1, end - 1)) < 1e-5);
      past = step->elements()[1];
    }
  }
}

TEST_CASE(
    "a decoder is exported in bfloat16, and an mBART without decoder ids gets its text with the last token moved to "
    "the front",
    "[interchange][torchscript]") {
  TempDir dir;
  at::NoGradGuard no_grad;
  import_huggingface(SOURCE_DIR "/tests/parity/gpt2", dir / "gpt2");
  CHECK(export_torchscript(dir / "gpt2", dir / "gpt2.pt", "bfloat16", BINARY_DIR "/cloze").passed);
  import_huggingface(SOURCE_DIR "/tests/parity/mbart", dir / "mbart");
  export_torchscript(dir / "mbart", dir / "mbart.pt", "float32", BINARY_DIR "/cloze");
  auto file = torch::jit::load(dir / "mbart.pt");
  const auto pad = backbone_of(open_run(dir / "mbart").config.model).pad_token_id;
  const auto ids = at::tensor(std::vector<int64_t>{10, 11, 12, 13, 20, 21, pad, pad}, at::kLong).view({2, 4}),
             read = at::tensor(std::vector<int64_t>{13, 10, 11, 12, 21, 20, 21, pad}, at::kLong).view({2, 4});
  const auto logits = [&](std::vector<c10::IValue> in) {
    return file.forward(std::move(in)).toGenericDict().at("logits").toTensor();
  };
  CHECK(at::equal(logits({ids, ids.ne(pad)}), logits({ids, ids.ne(pad), read})));
}

TEST_CASE("an exported file refuses texts that are too long and invalid searches with a clear message",
          "[interchange][torchscript]") {
  TempDir dir;
  at::NoGradGuard no_grad;
  const auto ids = [](int64_t length) { return at::arange(length, at::kLong).remainder(90).add(3).unsqueeze(0); };
  for (const std::string name : {"bart", "gpt2", "t5", "bert"}) {
    INFO(name);
    import_huggingface(SOURCE_DIR "/tests/parity/" + name, dir / name);
    export_torchscript(dir / name, dir / (name + ".pt"), "float32", BINARY_DIR "/cloze");
    auto file = torch::jit::load(dir / (name + ".pt"));
    const int64_t longest = backbone_of(open_run(dir / name).config.model).max_input_length();
    if (name == "t5") {  // no position table
      CHECK_NOTHROW(file.forward({ids(700)}));
      CHECK_NOTHROW(file.get_method("generate")({ids(700), c10::IValue(), 3, 2}));
    } else {
      CHECK_NOTHROW(file.forward({ids(longest)}));
      CHECK_THROWS_WITH(
          file.forward({ids(longest + 1)}),
          Catch::Contains(concat("this model accepts at most ", longest, " tokens: a text is too long; shorten it")));
    }
    if (name == "bert") continue;
    const auto generate = [&](int64_t length, int64_t tokens, int64_t beams) {
      torch::jit::Stack arguments{ids(length), c10::IValue()};
      arguments.insert(arguments.end(), {tokens, beams});
      return file.get_method("generate")(arguments);
    };
    CHECK_THROWS_WITH(generate(4, 3, 0), Catch::Contains("num_beams must be at least 1"));
    CHECK_THROWS_WITH(generate(4, 0, 1), Catch::Contains("max_new_tokens must be at least 1"));
    if (name == "bart") {
      CHECK_NOTHROW(generate(longest, longest - 1, 1));
      CHECK_THROWS_WITH(generate(4, longest, 1), Catch::Contains("max_new_tokens is too large; lower it"));
      CHECK_THROWS_WITH(generate(longest + 1, 3, 1), Catch::Contains("a text is too long; shorten it"));
      const auto states = file.get_method("encode")({ids(4)}).toTensor();
      CHECK_THROWS_WITH(file.get_method("decode")({ids(longest + 1), states}),
                        Catch::Contains("a text is too long; shorten it"));
    }
    if (name == "gpt2") {
      CHECK_NOTHROW(generate(longest - 3, 3, 2));
      CHECK_THROWS_WITH(
          generate(longest - 3, 4, 2),
          Catch::Contains("the text with max_new_tokens is too long; shorten it, or lower max_new_tokens"));
    }
  }
}

TEST_CASE("an exported file generates the ids of transformers, for padded texts and with every rule",
          "[interchange][torchscript][generate]") {
  TempDir dir;
  at::NoGradGuard no_grad;
  const auto tensor = [](const nlohmann::json& rows) {
    std::vector<Tensor> list;
    for (const auto& row : rows) list.push_back(at::tensor(row.get<std::vector<int64_t>>(), at::kLong));
    return at::stack(list);
  };
  int searches = 0;
  const auto cases = nlohmann::json::parse(read_file(SOURCE_DIR "/tests/interchange/generated_ids.json"));
  for (const auto& [name, expected] : cases.items()) {
    import_huggingface(SOURCE_DIR "/tests/parity/" + name, dir / name);
    export_torchscript(dir / name, dir / (name + ".pt"), "float32", BINARY_DIR "/cloze");
    auto file = torch::jit::load(dir / (name + ".pt"));
    for (const auto& search : expected["searches"]) {
      INFO(name << " " << search.dump());
      const torch::jit::Stack arguments{tensor(expected["input_ids"]),
                                        tensor(expected["attention_mask"]),
                                        expected["max_new_tokens"].get<int64_t>(),
                                        search["num_beams"].get<int64_t>(),
                                        search.value("length_penalty", 1.0),
                                        search.value("early_stopping", false),
                                        search.value("no_repeat_ngram_size", int64_t{0}),
                                        search.value("repetition_penalty", 1.0),
                                        search.value("min_length", int64_t{0}),
                                        search.value("min_new_tokens", int64_t{0})};
      const auto found = file.get_method("generate")(arguments).toTensor(), wanted = tensor(search["ids"]);
      CHECK(at::equal(found, wanted));
      ++searches;
    }
    const auto ids = tensor(expected["input_ids"]);
    const auto generate = [&](int64_t ngram, double penalty, int64_t shortest) {
      return file.get_method("generate")({ids, c10::IValue(), 4, 1, 1.0, false, ngram, penalty, 0, shortest});
    };
    CHECK_THROWS_WITH(generate(-1, 1, 0), Catch::Contains("no_repeat_ngram_size must be at least 0"));
    CHECK_THROWS_WITH(generate(0, 0, 0), Catch::Contains("repetition_penalty must be above 0"));
    CHECK_THROWS_WITH(generate(0, 1, 5), Catch::Contains("min_new_tokens must be from 0 to max_new_tokens"));
    if (name == "gpt2")
      CHECK_THROWS_WITH(file.get_method("generate")({ids, tensor(expected["attention_mask"]).flip(1)}),
                        Catch::Contains("prompts of different lengths must be padded on the left"));
  }
  CHECK(searches == 32);
}

TEST_CASE("networks without a head are exported to TorchScript with the hidden states of those with one",
          "[interchange][torchscript]") {
  TempDir dir;
  at::NoGradGuard no_grad;
  struct Case {
    std::string folder, prefix, bare;
  };
  for (const auto& [name, prefix, bare] :
       {Case{"gpt2", "transformer.", "GPT2Model"}, Case{"t5", "", "T5Model"}, Case{"bart", "model.", "BartModel"}}) {
    INFO(name);
    const auto folder = SOURCE_DIR "/tests/parity/" + name;
    auto config = nlohmann::json::parse(read_file(folder + "/config.json"));
    config["architectures"] = {bare};
    dir.write(name + "-bare/config.json", config.dump());
    const auto stored = SafeTensors::open(folder + "/model.safetensors");
    std::vector<NamedTensor> tensors;
    for (const auto& key : stored.names())
      if (key.starts_with(prefix)) tensors.push_back({key.substr(prefix.size()), stored.get(key).clone()});
    save_safetensors(dir / (name + "-bare/model.safetensors"), tensors);
    import_huggingface(dir / (name + "-bare"), dir / (name + "-run"));
    import_huggingface(folder, dir / name);
    for (const auto& run : {name + "-run", name})
      CHECK(export_torchscript(dir / run, dir / (run + ".pt"), "float32", BINARY_DIR "/cloze").passed);
    auto without = torch::jit::load(dir / (name + "-run.pt")), with = torch::jit::load(dir / (name + ".pt"));
    const auto ids = at::arange(14, at::kLong).mul(5).add(3).view({2, 7}),
               mask = at::arange(7, at::kLong).lt(5).unsqueeze(0).expand({2, 7}).contiguous();
    const auto found = without.forward({ids, mask}).toGenericDict(), wanted = with.forward({ids, mask}).toGenericDict();
    CHECK_FALSE(found.contains("logits"));
    CHECK(at::equal(found.at("last_hidden_state").toTensor(), wanted.at("last_hidden_state").toTensor()));
    CHECK_FALSE(without.find_method("generate").has_value());
    CHECK(with.find_method("generate").has_value());
    if (name == "gpt2") continue;
    CHECK(at::equal(without.get_method("encode")({ids, mask}).toTensor(),
                    with.get_method("encode")({ids, mask}).toTensor()));
  }
}

namespace {

/// A family at its smallest.
template <class Model>
Model small_model() {
  Model model;
  model.hidden_size = 32;
  model.num_hidden_layers = 1;
  model.num_attention_heads = 2;
  model.intermediate_size = 64;
  model.max_position_embeddings = 32;
  return model;
}

}  // namespace

TEST_CASE("a T5 with an untied head and scaled states is exported to TorchScript", "[interchange][torchscript]") {
  TempDir dir;
  auto base = tiny_run(dir, 1);
  auto t5 = small_model<T5Config>();
  t5.d_kv = 16;
  t5.tie_word_embeddings = false;
  base.model = t5;
  SpanCorruptionConfig rest_of_text;  // needs no sentinels
  rest_of_text.corruption = Corruption::prefix_lm;
  base.objectives = {rest_of_text};
  base.data.short_seq_prob = 0;
  pretrain(base, {.run = dir / "t5"});
  CHECK(export_torchscript(dir / "t5", dir / "t5.pt", "float32", BINARY_DIR "/cloze").passed);
  auto file = torch::jit::load(dir / "t5.pt");
  CHECK(file.find_method("generate").has_value());
  // Hugging Face scales states if config.json ties the tables; tables that differ stay separate.
  export_huggingface(dir / "t5", dir / "hf");
  import_huggingface(dir / "hf", dir / "back");
  const auto back = open_run(dir / "back");
  const auto& t5_back = backbone_of(back.config.model);
  CHECK(t5_back.scale_decoder_outputs);
  CHECK_FALSE(t5_back.tie_word_embeddings);
  const auto before = open_run(dir / "t5");
  const auto a = collect_params(*before.network), b = collect_params(*back.network);
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(at::equal(a[i].param.value(), b[i].param.value()));
}

TEST_CASE("a GPT-2 with rotary positions is exported to TorchScript, and has no class at Hugging Face",
          "[interchange][torchscript]") {
  TempDir dir;
  auto base = tiny_run(dir, 1);
  base.data.short_seq_prob = 0;
  auto rotary = small_model<Gpt2Config>();
  rotary.positions = Rotary{};
  base.model = rotary;
  base.objectives = {ClmConfig{}};
  pretrain(base, {.run = dir / "rotary"});
  const auto receipt = export_torchscript(dir / "rotary", dir / "rotary.pt", "float32", BINARY_DIR "/cloze");
  CHECK(receipt.passed);
  CHECK(torch::jit::load(dir / "rotary.pt").find_method("generate").has_value());
  CHECK_THROWS_WITH(export_huggingface(dir / "rotary", dir / "none"),
                    Catch::Contains("model.position_embeddings rotary has no class at Hugging Face for gpt2"));
}

TEST_CASE("a GPT-2 with random features is exported to TorchScript without generate, for it has no cache",
          "[interchange][torchscript]") {
  TempDir dir;
  auto base = tiny_run(dir, 1);
  base.data.short_seq_prob = 0;
  auto gpt2 = small_model<Gpt2Config>();
  gpt2.attention = PerformerAttention{.nb_features = 16};
  base.model = gpt2;
  base.objectives = {ClmConfig{}};
  pretrain(base, {.run = dir / "performer"});
  CHECK(export_torchscript(dir / "performer", dir / "performer.pt", "float32", BINARY_DIR "/cloze").passed);
  auto causal = torch::jit::load(dir / "performer.pt");
  CHECK_FALSE(causal.find_method("generate").has_value());
  at::NoGradGuard no_grad;
  const auto ids = at::arange(12, at::kLong).add(5).view({1, 12});
  auto other = ids.clone();
  other.select(1, 11).fill_(6);  // the last token does not change earlier logits
  const auto logits = [&](const Tensor& in) {
    return causal.forward({in}).toGenericDict().at("logits").toTensor().narrow(1, 0, 11);
  };
  CHECK(error_of(logits(ids), logits(other)) < 1e-6);
}

TEST_CASE("an export overwrites nothing without --force, and never a folder that is not a model", "[interchange]") {
  TempDir dir;
  import_huggingface(SOURCE_DIR "/tests/parity/bert", dir / "bert");
  const auto to_file = [&](bool replace) {
    return export_torchscript(dir / "bert", dir / "m.pt", "float32", BINARY_DIR "/cloze", "", replace);
  };
  dir.write("m.pt", "mine");
  dir.write("m.pt.tmp-4194001/module", "left by a process that was killed when it had moved m.pt");
  CHECK_THROWS_WITH(to_file(false),
                    Catch::Contains("m.pt: already exists; name another file, or overwrite it with --force"));
  CHECK(read_file(dir / "m.pt") == "mine");
  CHECK(!fs::exists(dir / "m.pt.tmp-4194001"));
  dir.write("m.pt.tmp-4194000/module", "left by a killed process");
  CHECK(to_file(true).passed);
  CHECK(read_file(dir / "m.pt").size() > 10000);
  const auto to_folder = [&](const std::string& out, bool replace) {
    export_huggingface(dir / "bert", out, "", replace);
  };
  to_folder(dir / "hf/", false);  // also with a trailing slash
  dir.write("hf/notes.txt", "mine");
  dir.write("hf.tmp-4194001/config.json", "replaced by a process that was killed before it removed it");
  CHECK_THROWS_WITH(to_folder(dir / "hf", false),
                    Catch::Contains("hf: already exists; name another folder, or overwrite it with --force"));
  CHECK(fs::exists(dir / "hf/notes.txt"));
  CHECK(!fs::exists(dir / "hf.tmp-4194001"));
  dir.write("hf.tmp-4194000/model.safetensors", "left by a killed process");
  CHECK_THROWS_WITH(to_folder(dir / "hf", true),
                    Catch::Contains("hf: holds notes.txt, which no export wrote and --force would remove; move it"));
  CHECK(read_file(dir / "hf/notes.txt") == "mine");
  fs::remove(dir / "hf/notes.txt");
  to_folder(dir / "hf", true);
  CHECK(fs::exists(dir / "hf/model.safetensors"));
  dir.write("letters/to-her.txt", "mine");
  CHECK_THROWS_WITH(to_folder(dir / "letters", true),
                    Catch::Contains("letters: exists and is not a model folder; name another --out"));
  CHECK(read_file(dir / "letters/to-her.txt") == "mine");
  for (const auto& entry : fs::directory_iterator(dir.path))
    CHECK_THAT(entry.path().filename().string(), !Catch::Contains(".tmp-"));
}

TEST_CASE("an exported prefix LM takes the prefix lengths of its rows, and Hugging Face has no class for it",
          "[interchange][torchscript]") {
  TempDir dir;
  at::NoGradGuard no_grad;
  import_huggingface(SOURCE_DIR "/tests/parity/gpt2", dir / "gpt2");
  auto yaml = read_file(dir / "gpt2/run.yaml");
  const auto at_key = yaml.find("prefix_lm: false");
  REQUIRE(at_key != std::string::npos);
  dir.write("gpt2/run.yaml", yaml.replace(at_key, 16, "prefix_lm: true"));
  record_made_by(dir / "gpt2", {.config = yaml});
  CHECK(export_torchscript(dir / "gpt2", dir / "gpt2.pt", "float32", BINARY_DIR "/cloze").passed);
  auto file = torch::jit::load(dir / "gpt2.pt");
  const auto run = open_run(dir / "gpt2");
  const PlainScope as_the_file_computes;
  const auto ids = at::arange(21, at::kLong).mul(7).remainder(90).add(3).view({3, 7});
  std::vector<Tensor> tensors;
  for (const auto& prefix : {at::tensor({int64_t{0}, int64_t{3}, int64_t{7}}, at::kLong), Tensor()}) {
    tensors.push_back(file.forward({ids, c10::IValue(), prefix.defined() ? c10::IValue(prefix) : c10::IValue()})
                          .toGenericDict()
                          .at("logits")
                          .toTensor());
    CHECK(error_of(tensors.back(), run.network->outputs({.input_ids = ids, .prefix = prefix}).back().second) < 1e-6);
  }
  CHECK(error_of(tensors[0][0], tensors[1][0]) < 1e-6);
  CHECK(error_of(tensors[0][1], tensors[1][1]) > 1e-3);
  CHECK_THROWS_WITH(
      export_huggingface(dir / "gpt2", dir / "hf", ""),
      Catch::Contains("model.prefix_lm true has no class at Hugging Face for gpt2; export to torchscript"));
}

TEST_CASE("perm_mask and target_mapping of an exported XLNet set the permutation and targets of the network",
          "[interchange][torchscript]") {
  TempDir dir;
  at::NoGradGuard no_grad;
  import_huggingface(SOURCE_DIR "/tests/parity/xlnet-plain", dir / "xlnet");
  export_torchscript(dir / "xlnet", dir / "xlnet.pt", "float32", BINARY_DIR "/cloze");
  auto file = torch::jit::load(dir / "xlnet.pt");
  const auto run = open_run(dir / "xlnet");
  const PlainScope as_the_file_computes;
  const auto ids = at::arange(21, at::kLong).mul(7).remainder(90).add(3).view({3, 7}), types = ids.remainder(2),
             positions = at::tensor({0, 3, 6, 5, 1, 2, 4, -1, -1}, at::kLong).view({3, 3});
  auto mask = at::ones({3, 7}, at::kBool);
  mask[2].narrow(0, 5, 2).fill_(false);
  const auto visible = at::arange(147, at::kLong).mul(5).remainder(11).lt(6).view({3, 7, 7});
  auto mapping = at::zeros({3, 3, 7});
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t n = 0; n < 3; ++n)
      if (const auto position = positions[b][n].item<int64_t>(); position >= 0) mapping[b][n][position] = 1;
  for (const bool targets : {false, true}) {
    const auto answer = file.forward({ids, mask, types, visible.logical_not().to(at::kFloat),
                                      targets ? c10::IValue(mapping) : c10::IValue()})
                            .toGenericDict();
    const auto wanted = run.network->outputs({.input_ids = ids,
                                              .attention_mask = mask,
                                              .token_type_ids = types,
                                              .visible = visible,
                                              .target_positions = targets ? positions : Tensor()});
    REQUIRE(answer.size() == wanted.size());
    for (const auto& [name, tensor] : wanted) {
      INFO(name);
      CHECK(tensor.size(1) == (targets ? 3 : 7));
      CHECK(error_of(answer.at(name).toTensor(), tensor) < 1e-6);
    }
  }
}

TEST_CASE(
    "every option of the stack is exported to TorchScript for any shape, and to Hugging Face only if a class computes "
    "the same",
    "[interchange][torchscript]") {
  TempDir dir;
  const auto base = tiny_run(dir, 1);
  struct Choice {
    const char* name;
    std::function<void(TransformerConfig&)> change;
    const char* refusal;
  };
  const std::vector<Choice> choices{
      {"pre",
       [](auto& c) {
         c.norm_place = NormPlacement::pre;
         c.norm_kind = NormKind::rms;
         c.feed_forward = FeedForward::gated;
       },
       "model.norm_place pre has no class at Hugging Face for bert; export to torchscript"},
      {"relative", [](auto& c) { c.positions = {PositionTable::learned, ShawVectors{4}}; },
       "model.relative_positions 4 has no class"},
      {"performer", [](auto& c) { c.attention = PerformerAttention{.nb_features = 16}; },
       "model.attention of kind performer has no class"},
      {"causal",
       [](auto& c) {
         c.attention = PerformerAttention{.nb_features = 16};
         c.architecture = Architecture::decoder;
       },
       "model.attention of kind performer has no class"},
      {"linformer", [](auto& c) { c.attention = LinformerAttention{}; },
       "model.attention of kind linformer has no class"},
      {"bigbird", [](auto& c) { c.attention = BigBirdAttention{.block_size = 3, .num_random_blocks = 1}; },
       "model.attention of kind bigbird has no class"},
      {"window",
       [](auto& c) {
         c.attention = WindowAttention{.attention_window = {4}, .attention_dilation = {2}, .dilated_heads = 1};
       },
       "model.attention of kind window has no class"}};
  for (const auto& [name, change, refusal] : choices) {
    INFO(name);
    auto config = base;
    change(transformer_of(config.model));
    pretrain(config, {.run = dir / name});
    const auto receipt =
        export_torchscript(dir / name, dir / (std::string(name) + ".pt"),
                           std::string(name) == "performer" ? "bfloat16" : "float32", BINARY_DIR "/cloze");
    CHECK(receipt.passed);
    CHECK_THROWS_WITH(export_huggingface(dir / name, dir / "hf", ""), Catch::Contains(refusal));
  }
}

TEST_CASE("an exported file refuses invalid inputs with a clear message", "[interchange][torchscript]") {
  TempDir dir;
  import_huggingface(SOURCE_DIR "/tests/parity/bart", dir / "bart");
  export_torchscript(dir / "bart", dir / "bart.pt", "float32", BINARY_DIR "/cloze");
  auto file = torch::jit::load(dir / "bart.pt");
  at::NoGradGuard no_grad;
  const auto ids = at::arange(3, 9, at::kLong).view({2, 3});
  const auto states = file.get_method("encode")({ids}).toTensor();
  const auto ranges = Catch::Contains("ids of this model are from 0 to ");
  CHECK_THROWS_WITH(file.forward({ids + 5000}), ranges);
  CHECK_THROWS_WITH(file.forward({ids, c10::IValue(), ids - 100}), ranges);
  CHECK_THROWS_WITH(file.forward({ids[0]}), Catch::Contains("ids are [batch, length]"));
  CHECK_THROWS_WITH(file.forward({ids, at::ones({2, 2})}),
                    Catch::Contains("attention_mask must have the shape of input_ids"));
  CHECK_THROWS_WITH(file.get_method("generate")({ids + 5000}), ranges);
  CHECK_THROWS_WITH(file.get_method("decode")({ids, states.slice(0, 0, 1)}),
                    Catch::Contains("memory must be the output of encode for these rows"));
  CHECK_THROWS_WITH(file.get_method("decode")({ids, states, c10::IValue(), at::zeros({1, 2, 0, 4})}),
                    Catch::Contains("past must be the cache that decode returned for these rows"));
}

TEST_CASE("an exported hybrid is causal without a prefix and bidirectional with one, and generates",
          "[interchange][torchscript][mntp]") {
  TempDir dir;
  auto base = tiny_run(dir, 2);
  const auto small = [](auto model) {
    model.architecture = Architecture::decoder;
    model.hidden_size = 32;
    model.num_hidden_layers = 2;
    model.num_attention_heads = 2;
    model.intermediate_size = 48;
    model.max_position_embeddings = 40;
    return model;
  };
  MntpConfig mntp;
  mntp.causal_share = 0.5;
  mntp.transform = true;
  base.objectives = {mntp};
  at::NoGradGuard no_grad;
  const auto ids = at::arange(21, at::kLong).mul(7).remainder(16).add(5).view({3, 7});
  for (const ModelConfig& model : {ModelConfig(small(Gpt2Config{})), ModelConfig(small(BertConfig{}))}) {
    const auto kind = kind_of(model);
    INFO(kind);
    base.model = model;
    pretrain(base, {.run = dir / kind});
    CHECK(export_torchscript(dir / kind, dir / (kind + ".pt"), "float32", BINARY_DIR "/cloze").passed);
    auto file = torch::jit::load(dir / (kind + ".pt"));
    CHECK(file.find_method("generate").has_value());
    const auto run = open_run(dir / kind);
    const PlainScope as_the_file_computes;
    for (const auto& prefix : {at::tensor({int64_t{0}, int64_t{3}, int64_t{7}}, at::kLong), Tensor()}) {
      const auto found = file.forward({ids, c10::IValue(), prefix.defined() ? c10::IValue(prefix) : c10::IValue()})
                             .toGenericDict()
                             .at("logits")
                             .toTensor();
      CHECK(error_of(found, run.network->outputs({.input_ids = ids, .prefix = prefix}).back().second) < 1e-6);
    }
    CHECK(export_torchscript(dir / kind, dir / (kind + "-bf16.pt"), "bfloat16", BINARY_DIR "/cloze").passed);
  }
  // Hugging Face's class is that of clm.
  export_huggingface(dir / "bert", dir / "hf", "");
  import_huggingface(dir / "hf", dir / "back");
  const auto back = open_run(dir / "back"), run = open_run(dir / "bert");
  CHECK(as<ClmConfig>(back.config.objectives[0])->transform);
  CHECK(error_of(back.network->outputs({.input_ids = ids}).back().second,
                 run.network->outputs({.input_ids = ids}).back().second) < 1e-6);
  auto encoder = tiny_run(dir, 1);
  encoder.objectives = {MntpConfig{}};
  pretrain(encoder, {.run = dir / "encoder"});
  CHECK_THROWS_WITH(
      export_huggingface(dir / "encoder", dir / "hf2", ""),
      Catch::Contains("Hugging Face has no class for an encoder whose hidden states predict the next token"));
  CHECK(export_torchscript(dir / "encoder", dir / "encoder.pt", "float32", BINARY_DIR "/cloze").passed);
}

TEST_CASE("an mBART whose padding has id 0 is exported, and its target starts with the last token of the text",
          "[interchange][torchscript]") {
  TempDir dir;
  import_huggingface(edited(dir, "mbart", "config.json", "\"pad_token_id\": 1", "\"pad_token_id\": 0"), dir / "run");
  CHECK(export_torchscript(dir / "run", dir / "m.pt", "float32", BINARY_DIR "/cloze").passed);
  auto file = torch::jit::load(dir / "m.pt");
  at::NoGradGuard no_grad;
  const auto ids = at::tensor({7, 8, 9, 7, 8, 0}, at::kLong).view({2, 3});
  const auto shifted = at::tensor({9, 7, 8, 8, 7, 8}, at::kLong).view({2, 3});
  const auto logits = [&](const std::vector<c10::IValue>& in) {
    return file.forward(in).toGenericDict().at("logits").toTensor();
  };
  CHECK(at::equal(logits({ids}), logits({ids, at::ones_like(ids), shifted})));
  CHECK(logits({at::zeros({1, 1}, at::kLong)}).isfinite().all().item<bool>());  // nothing but padding
}

namespace {

/// Imports a parity case as `dir / "run"`, with one tensor changed.
void import_changed(const TempDir& dir, const std::string& folder, const std::string& name,
                    const std::function<Tensor(const Tensor&)>& change) {
  const auto stored = SafeTensors::open(folder + "/model.safetensors");
  std::vector<NamedTensor> tensors;
  for (const auto& key : stored.names()) {
    const auto tensor = stored.get(key).clone();
    tensors.push_back({key, key == name ? change(tensor).contiguous() : tensor});
  }
  save_safetensors(folder + "/model.safetensors", tensors);
  import_huggingface(folder, dir / "run");
}

}  // namespace

TEST_CASE("the tolerance of an export is relative to the largest entry of an output", "[interchange][torchscript]") {
  TempDir dir;
  const auto folder = edited(dir, "modernbert", "config.json", "", "");
  import_changed(dir, folder, "head.norm.weight", [](const Tensor& weight) { return weight * 1e4; });
  CHECK(export_torchscript(dir / "run", dir / "m.pt", "float32", BINARY_DIR "/cloze").passed);
}

TEST_CASE("a vocabulary of fewer tokens than a search compares is exported", "[interchange][torchscript]") {
  TempDir dir;
  const auto folder = edited(dir, "gpt2", "config.json", "\"vocab_size\": 96", "\"vocab_size\": 13");
  import_changed(dir, folder, "transformer.wte.weight", [](const Tensor& weight) { return weight.narrow(0, 0, 13); });
  CHECK(export_torchscript(dir / "run", dir / "m.pt", "float32", BINARY_DIR "/cloze").passed);
}

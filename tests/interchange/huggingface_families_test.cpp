#include "interchange/huggingface/family.h"

#include <cxxabi.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <typeinfo>

#include "core/file.h"
#include "core/json.h"
#include "interchange/huggingface_classes.h"
#include "interchange/huggingface_config.h"
#include "models/families/families.h"
#include "objectives/clm/clm.h"
#include "objectives/network.h"
#include "tests/support/catch.h"
#include "tests/support/families.h"

using namespace cloze;
using huggingface::Class;
using huggingface::Family;
using huggingface::heads_of;

namespace {

/// A tiny model of a family, in the architecture of a class.
RunConfig tiny(const Family& family, const Class& one) {
  RunConfig config;
  config.model = family.table.model;
  auto& c = transformer_of(config.model);
  c.vocab_size = 40;
  c.hidden_size = 12;
  c.num_hidden_layers = 2;
  c.num_attention_heads = 3;
  c.intermediate_size = 20;
  c.max_position_embeddings = 24;
  c.d_kv = 0;
  c.pad_token_id = 1;
  if (one.architecture) c.architecture = *one.architecture;
  if (!backbone_of(family.table.model).is_generative() && c.is_decoder()) c.attention = FullAttention{};
  config.objectives = one.objectives;
  return config;
}

/// A file of the tests.
std::string listed_in(const std::string& file) { return read_text(SOURCE_DIR "/tests/" + file, 16 << 20); }

/// The names that a file does not have between quotes.
std::set<std::string> missing_in(const std::string& file, std::set<std::string> names) {
  std::erase_if(names, [text = listed_in(file)](const std::string& name) {
    return text.find("\"" + name + "\"") != std::string::npos;
  });
  return names;
}

std::set<std::string> kinds_of_models() {
  std::set<std::string> kinds;
  const auto each = [&]<class... Kinds>(const std::variant<Kinds...>*) { (kinds.insert(Kinds::kind), ...); };
  each(static_cast<const ModelFamily*>(nullptr));
  return kinds;
}

/// The structs of families: `BertConfig`.
std::set<std::string> structs_of_models() {
  std::set<std::string> names;
  const auto name_of_type = [](const std::type_info& type) {
    const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr),
                                                           std::free);
    return std::string(name.get()).substr(std::string("cloze::").size());
  };
  const auto each = [&]<class... Kinds>(const std::variant<Kinds...>*) {
    (names.insert(name_of_type(typeid(Kinds))), ...);
  };
  each(static_cast<const ModelFamily*>(nullptr));
  return names;
}

/// Those of these names that no word of a file of the tests begins with, after `mark`.
std::set<std::string> unnamed_in(const std::string& file, std::set<std::string> names, const char* mark) {
  std::erase_if(names, [&, text = listed_in(file)](const std::string& name) {
    return std::regex_search(text, std::regex(mark + name));
  });
  return names;
}

/// The kinds of the golden cases in a folder of the tests.
std::set<std::string> golden_kinds(const std::string& cases) {
  std::set<std::string> kinds;
  for (const auto& folder : std::filesystem::directory_iterator(SOURCE_DIR "/tests/" + cases))
    if (const auto config = folder.path() / "config.json"; std::filesystem::exists(config))
      kinds.insert(kind_of(read_model(parse_json(read_text(config.string(), 1 << 20)), config.string())));
  return kinds;
}

}  // namespace

// A key of another family's struct does not compile.
static_assert(std::is_convertible_v<huggingface::Key<EncoderDecoderConfig>, huggingface::Key<T5Config>>);
static_assert(!std::is_convertible_v<huggingface::Key<EncoderDecoderConfig>, huggingface::Key<BertConfig>>);
static_assert(std::is_constructible_v<huggingface::Table, T5Config, huggingface::Keys<TransformerConfig>>);
static_assert(!std::is_constructible_v<huggingface::Table, BertConfig, huggingface::Keys<T5Config>>);

TEST_CASE("a family of transformers is in every list by which the tests go through families", "[families]") {
  const std::set<std::string> none;
  std::set<std::string> types, kinds;
  for (const auto& family : huggingface::families()) {
    types.insert(family.model_type);
    kinds.insert(kind_of(family.table.model));
  }
  for (const std::string file :
       {"interchange/huggingface_defaults.json", "parity/random_cases.py", "acceptance/layouts.py"}) {
    INFO(file);
    CHECK(missing_in(file, types) == none);
  }
  for (const auto& kind : golden_kinds("parity")) kinds.erase(kind);
  CHECK(kinds == none);
}

TEST_CASE("a model is in every list by which the tests go through models", "[families]") {
  const std::set<std::string> none;
  auto kinds = kinds_of_models();
  CHECK(missing_in("acceptance/attack/world.py", kinds) == none);
  for (const auto& family : every_family()) kinds.erase(kind_of(family.model));
  CHECK(kinds == none);
}

// Who adds a family adds it to these lists, or says here that another one stands for it.
TEST_CASE("a test with a list of families has every one of them, but those that others stand for", "[families]") {
  using Names = std::set<std::string>;
  const auto structs = structs_of_models(), kinds = kinds_of_models();
  CHECK(unnamed_in("finetune/task_heads_test.cpp", structs, "\\b") ==
        Names{"BigBirdConfig", "LstmConfig", "MBartConfig", "PegasusConfig", "PerformerConfig", "VaswaniConfig"});
  // Kinds of attention have their costs in models/cost_test.cpp.
  CHECK(unnamed_in("objectives/cost_test.cpp", structs, "\\b") ==
        Names{"BigBirdConfig", "LongformerConfig", "MBartConfig", "ModernBertConfig", "VaswaniConfig"});
  CHECK(unnamed_in("train/training_test.cpp", structs, "\\b") ==
        Names{"LstmConfig", "MBartConfig", "VaswaniConfig", "XlnetConfig"});
  CHECK(unnamed_in("inference/scoring/forms_test.cpp", kinds, "\"") == Names{});
  CHECK(unnamed_in("interchange/huggingface_round_trip_test.cpp", kinds, "\"") ==  // the last two have no class there
        Names{"mbart", "pegasus", "performer", "transformer", "lstm"});
  CHECK(unnamed_in("cli/configs_test.cpp", kinds, "\"") == Names{"lstm", "mbart", "pegasus", "performer"});
  CHECK(unnamed_in("acceptance/finetune_beside.py", kinds, "\"") ==
        Names{"bigbird", "lstm", "mbart", "pegasus", "performer", "transformer"});
  auto headed = Names{};  // those with classes that have heads of tasks
  for (const auto& family : huggingface::families())
    for (const auto& one : family.classes)
      for (const auto head : heads_of(one.objectives))
        if (head >= huggingface::Head::texts) headed.insert(kind_of(family.table.model));
  for (const auto& kind : golden_kinds("task_parity")) headed.erase(kind);
  CHECK(headed == Names{});
}

TEST_CASE("every class of a family is written under its name, and read as the model that was written",
          "[interchange][families]") {
  for (const auto& family : huggingface::families()) {
    std::set<std::pair<std::set<huggingface::Head>, Architecture>> written;
    for (const auto& one : family.classes) {
      const auto name = family.class_prefix + one.suffix;
      INFO(name);
      const auto config = tiny(family, one);
      const auto architecture = backbone_of(config.model).architecture;
      if (!written.emplace(heads_of(one.objectives), architecture).second) continue;  // another name of the same class
      if (&huggingface::family_of(config.model) != &family) continue;  // XLM-RoBERTa is written as RoBERTa
      require_huggingface(config);
      CHECK(huggingface_config(config)["architectures"][0] == name);
      auto model = config.model;
      const bool same_heads = heads_of(objectives_of_class(name, model, "config.json")) == heads_of(one.objectives);
      CHECK(same_heads);
      CHECK(backbone_of(model).architecture == architecture);
    }
  }
}

TEST_CASE("every parameter of every class has a name of its own at Hugging Face", "[interchange][families]") {
  for (const auto& family : huggingface::families())
    for (const auto& one : family.classes) {
      INFO(family.class_prefix + one.suffix);
      const auto config = tiny(family, one);
      std::set<std::string> seen;
      const Network network(config.model, config.objectives);
      for (const auto& [name, param] : collect_params(network)) {
        INFO(name);
        const auto names = huggingface_names(config.model, name);
        CHECK_FALSE(names.empty());
        for (const auto& there : names) CHECK(seen.insert(there).second);
      }
    }
}

TEST_CASE(
    "distance embeddings stand in the self-attention of BERT, and in the attention of ALBERT, which has none inside",
    "[interchange][families]") {
  const std::string name = "backbone.stack.1.attention.distance";
  CHECK(huggingface_names(BertConfig{}, name) ==
        std::vector<std::string>{"bert.encoder.layer.1.attention.self.distance_embedding.weight"});
  CHECK(huggingface_names(AlbertConfig{}, name) ==
        std::vector<std::string>{
            "albert.encoder.albert_layer_groups.1.albert_layers.0.attention.distance_embedding.weight"});
}

TEST_CASE("a model that no class computes is refused with the option to change", "[interchange][families]") {
  const auto refused = [](const RunConfig& config, const std::string& sentence) {
    CHECK_THROWS_WITH(require_huggingface(config), sentence + "; export to torchscript");
  };
  const auto of = [](const ModelConfig& model, const Objectives& objectives) {
    RunConfig config;
    config.model = model;
    config.objectives = objectives;
    return config;
  };
  refused(of(PerformerConfig{}, {default_objective<MlmConfig>()}), "performer has no class at Hugging Face");
  refused(of(RobertaConfig{}, {default_objective<MlmConfig>(), default_objective<NspConfig>()}),
          "Hugging Face has no class for roberta with the head of nsp");
  auto longformer = LongformerConfig{};
  longformer.architecture = Architecture::decoder;
  refused(of(longformer, {default_objective<ClmConfig>()}),
          "model.architecture decoder has no class at Hugging Face for longformer");
  auto bert = BertConfig{};
  bert.positions = PositionTable::sinusoidal;
  refused(of(bert, {default_objective<MlmConfig>()}),
          "model.position_embeddings sinusoidal has no class at Hugging Face for bert");
  auto albert = AlbertConfig{};
  albert.share = Sharing::ffn;
  refused(of(albert, {default_objective<MlmConfig>()}), "model.share ffn has no class at Hugging Face for albert");
  auto t5 = T5Config{};
  t5.architecture = Architecture::encoder;
  refused(of(t5, {default_objective<MlmConfig>()}), "Hugging Face has no class for t5 with the head of mlm");
  auto bart = BartConfig{};
  bart.architecture = Architecture::decoder;
  refused(of(bart, {}), "Hugging Face's class of a decoder without encoder needs a head, and this model has none");
  ClmConfig clm;
  clm.transform = true;
  CHECK_THROWS_WITH(
      require_huggingface(of(Gpt2Config{}, {clm})),
      "a language modeling head with a transform has no class at Hugging Face for gpt2; train with `kind: "
      "clm, transform: false`, or export to torchscript");
  CHECK_THROWS_WITH(require_huggingface(of(LstmConfig{}, {ClmConfig{}})),
                    "a model of kind lstm is no Transformer, and has no class at Hugging Face and no form in "
                    "TorchScript; it is used by Cloze alone");
}

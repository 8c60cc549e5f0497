#include "interchange/huggingface.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "core/file.h"
#include "core/log.h"
#include "core/tensor/safetensors.h"
#include "objectives/objective.h"
#include "interchange/huggingface_config.h"
#include "interchange/huggingface_names.h"
#include "interchange/huggingface_weights.h"
#include "interchange/interchange.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

bool has(const Objectives& objectives, std::string_view kind) {
  return std::any_of(objectives.begin(), objectives.end(),
                     [&](const auto& o) { return kind == std::visit([](const auto& c) { return c.kind; }, o); });
}

/// The objectives that have the heads of a class. Reduces an encoder-decoder `model` to the stack of the class, if it
/// has only one. Throws ConfigError for an unknown class.
Objectives objectives_of(const std::string& architecture, ModelConfig& model, const std::string& path) {
  auto& c = backbone_of(model);
  const auto ends = [&](std::string_view end) { return architecture.ends_with(end); };
  if (architecture == "BertForPreTraining" || architecture == "BigBirdForPreTraining")
    return {MlmConfig{}, NspConfig{}};
  if (architecture == "AlbertForPreTraining") return {MlmConfig{}, SopConfig{}};
  if (architecture == "ElectraForPreTraining") {
    RtdConfig rtd;
    rtd.replace_by = ReplaceBy::uniform;
    return {rtd};
  }
  if (ends("ForMaskedLM")) return {MlmConfig{}};
  if (architecture == "GPT2LMHeadModel") return {ClmConfig{}};
  if (architecture == "XLNetLMHeadModel") return {PlmConfig{}};
  if (c.is_encoder_decoder()) {
    if (architecture == "PegasusForConditionalGeneration") return {GapSentencesConfig{}};
    if (ends("ForConditionalGeneration"))
      return std::holds_alternative<T5Config>(model) ? Objectives{SpanCorruptionConfig{}}
                                                     : Objectives{DenoisingConfig{}};
    if (ends("ForCausalLM")) {
      keep_decoder(*as<EncoderDecoderConfig>(model));
      return {ClmConfig{}};
    }
    if (ends("EncoderModel")) {
      keep_encoder(*as<EncoderDecoderConfig>(model));
      return {};
    }
  } else if (ends("LMHeadModel") || ends("ForCausalLM")) {
    if (!c.is_decoder()) {
      log_warning("import", words(path, ": ", architecture,
                                  " without is_decoder is bidirectional; it is imported as a masked language model"));
      return {MlmConfig{}};
    }
    ClmConfig clm;
    clm.transform = true;
    return {clm};
  }
  if (ends("Model") && !ends("HeadsModel")) return {};
  fail<ConfigError>(
      path, ": architecture '", architecture,
      "' cannot be imported; BertForPreTraining, AlbertForPreTraining, ElectraForPreTraining, ...ForMaskedLM, "
      "...LMHeadModel, ...ForCausalLM, ...ForConditionalGeneration, T5EncoderModel and ...Model can");
}

/// The class with the heads of these objectives.
std::string architecture_of(const ModelConfig& model, const Objectives& objectives) {
  const auto name = class_prefix(model);
  const auto& c = backbone_of(model);
  if (c.is_encoder_decoder()) return name + (objectives.empty() ? "Model" : "ForConditionalGeneration");
  if (has(objectives, "plm")) return name + "LMHeadModel";
  if (c.is_generative() && !objectives.empty() && head_of(objectives[0]) == "lm")
    return name + (name == "GPT2" || name == "Bert" ? "LMHeadModel" : "ForCausalLM");
  if (std::holds_alternative<T5Config>(model)) return name + "EncoderModel";
  const bool pairs = has(objectives, "nsp") || has(objectives, "sop");
  if (has(objectives, "rtd") || (pairs && (name == "Bert" || name == "Albert" || name == "BigBird")))
    return name + "ForPreTraining";
  return name + (has(objectives, "mlm") ? "ForMaskedLM" : "Model");
}

/// The class inferred from the weights, for a config.json that names none.
std::string architecture_of(const ModelConfig& model, const std::map<std::string, at::Tensor>& tensors, bool bare) {
  const auto has_tensor = [&](const std::string& name) { return tensors.count(name) > 0; };
  const auto has_prefix = [&](const std::string& prefix) {
    const auto found = tensors.lower_bound(prefix);
    return found != tensors.end() && found->first.starts_with(prefix);
  };
  const auto& c = backbone_of(model);
  if (c.is_encoder_decoder()) {
    const bool t5 = std::holds_alternative<T5Config>(model);
    if (t5 && !has_prefix("decoder.")) return class_prefix(model) + "EncoderModel";
    if (!t5 && has_prefix("model.decoder.") && !has_prefix("model.encoder."))
      return class_prefix(model) + "ForCausalLM";
  }
  Objectives guessed;
  // A tied head has no tensor of its own. T5 has no prefix that would tell a base model; its head is the table alone.
  if (decoder_family(model))
    guessed = has_tensor("lm_head.weight") || (c.tie_word_embeddings && !bare) ? Objectives{ClmConfig{}} : Objectives{};
  else if (c.is_two_stream())
    guessed = has_tensor("lm_loss.bias") ? Objectives{PlmConfig{}} : Objectives{};
  else if (has_tensor("discriminator_predictions.dense.weight"))
    guessed = {RtdConfig{}};
  else if (has_tensor(huggingface_names(model, "mlm.head.transform.weight")[0]))
    guessed = c.is_decoder() ? Objectives{ClmConfig{}} : Objectives{MlmConfig{}};
  if (has_tensor("cls.seq_relationship.weight")) guessed.push_back(NspConfig{});
  if (has_tensor("sop_classifier.classifier.weight")) guessed.push_back(SopConfig{});
  return architecture_of(model, guessed);
}

/// Decides which token embedding tables are tied. A table missing from the file is tied as in its class; tables that
/// differ are not tied, whatever config.json says. Keeps in `tensors` those that the network has. Source: tie_weights
/// of transformers 5, modeling_utils.py.
void tie_tables(ModelConfig& model, std::map<std::string, at::Tensor>& tensors) {
  auto& c = backbone_of(model);
  const auto tables = token_tables(model);
  const auto table = [&](const std::string& name) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return at::Tensor();
    require_weights(name, found->second);
    return found->second.to(at::kFloat);
  };
  auto shared = table(tables[0]), head = table(tables.back());
  for (size_t i = 1; i < tables.size() && !shared.defined(); ++i) shared = table(tables[i]);
  if (!shared.defined()) return;
  const auto or_shared = [&](const std::string& name) { return table(name).defined() ? table(name) : shared; };
  const auto encoder = or_shared(tables[tables.size() > 2 ? 1 : 0]), decoder = or_shared(tables[tables.size() - 2]);
  for (const auto& name : tables) tensors.erase(name);
  const bool one_table = at::equal(encoder, decoder);
  if (auto* both = as<EncoderDecoderConfig>(model)) both->shared_embeddings = one_table;
  const bool always_tied = std::holds_alternative<T5Config>(model);
  if (!head.defined() && (c.tie_word_embeddings || always_tied)) {
    head = shared;
    c.tie_word_embeddings = true;
  }
  const bool same = head.defined() && at::equal(head, decoder);
  if (head.defined() && !same && c.tie_word_embeddings && !always_tied)
    log_warning("import",
                words(tables.back(), " differs from ", tables[0], ", although config.json ties them; both are kept"));
  if (head.defined()) c.tie_word_embeddings = c.tie_word_embeddings && same;
  tensors[huggingface_names(model, "backbone.embeddings.word")[0]] = encoder;
  if (!one_table) tensors[huggingface_names(model, "backbone.decoder_embeddings.word")[0]] = decoder;
  if (head.defined() && !c.tie_word_embeddings) tensors[tables.back()] = head;
}

/// Prefixes of heads, whose names lack the prefix of the base model.
const std::vector<std::string> head_prefixes{
    "cls.",   "lm_head.", "predictions.",     "sop_classifier.", "generator_", "discriminator_predictions.",
    "vocab_", "lm_loss.", "final_logits_bias"};

}  // namespace

HuggingFaceModel read_huggingface(const std::string& folder) {
  require<CheckpointError>(fs::is_directory(folder), folder, ": no such folder; name one that `save_pretrained` made");
  HuggingFaceModel model;
  const std::string path = folder + "/config.json";
  const auto j = read_json(path);
  auto& config = model.config.model;
  config = read_model(j, path);
  auto& c = backbone_of(config);
  require<ConfigError>(
      !c.is_decoder() || std::holds_alternative<FullAttention>(c.attention), path,
      ": is_decoder is true, but block-sparse attention is bidirectional; set attention_type to 'original_full'");
  model.tensors = read_weights(folder);
  const auto prefix = huggingface_prefix(config);
  // A base model is saved without the prefix.
  const bool bare = std::none_of(model.tensors.begin(), model.tensors.end(),
                                 [&](const auto& item) { return item.first.starts_with(prefix); });
  if (j.contains("architectures") && j["architectures"].is_array() && !j["architectures"].empty() &&
      j["architectures"][0].is_string())
    model.architecture = j["architectures"][0];
  if (model.architecture.empty()) model.architecture = architecture_of(config, model.tensors, bare);
  model.config.objectives = objectives_of(model.architecture, config, path);
  if (bare) {
    std::map<std::string, at::Tensor> full;
    for (const auto& [name, tensor] : model.tensors) {
      const bool of_head = std::any_of(head_prefixes.begin(), head_prefixes.end(),
                                       [&](const auto& head) { return name.starts_with(head); });
      full.emplace(of_head ? name : prefix + name, tensor);
    }
    model.tensors = std::move(full);
  }
  tie_tables(config, model.tensors);
  split_wholes(config, model.tensors);
  // BigBird's masked language model has a pooler that it does not use.
  c.pooler = std::holds_alternative<BigBirdConfig>(config) && !model.config.objectives.empty() &&
             model.tensors.count("bert.pooler.weight") > 0;
  const auto decoding = decoding_ids_of(config);
  if (decoder_family(config))
    for (const auto& [key, id] : {std::pair{"pad_token_id", c.pad_token_id},
                                  {"decoder_start_token_id", decoding.decoder_start_token_id},
                                  {"forced_bos_token_id", decoding.forced_bos_token_id},
                                  {"forced_eos_token_id", decoding.forced_eos_token_id}})
      require<ConfigError>(id < c.vocab_size, path, ": ", key, " is ", id, ", but the vocabulary has ", c.vocab_size,
                           " tokens; the file is damaged");
  model.config.data.max_seq_length = std::max<int64_t>(5, std::min<int64_t>(c.max_input_length(), 512));
  model.config.train.budget.steps = 1000;
  // The config goes through YAML: it must satisfy the ranges of any config, and no fact may be lost in run.yaml.
  model.config = decode<RunConfig>(ConfigTree::parse(to_yaml(model.config), path + ", as run.yaml"));
  return model;
}

Tensor to_huggingface(const ModelConfig& model, const std::string& name, const Tensor& value) {
  if (backbone_of(model).is_two_stream()) return xlnet_to_huggingface(backbone_of(model), name, value);
  if (name == "lm.head.bias" && decoder_family(model)) return value.unsqueeze(0);  // final_logits_bias
  return huggingface_transposed(model, name) && value.dim() == 2 ? value.t() : value;
}

void load_huggingface(const HuggingFaceModel& model, Network& network, std::vector<std::string>& ignored,
                      std::vector<std::string>& fresh) {
  at::NoGradGuard no_grad;
  const auto& config = network.model_config();
  const auto& encoder = backbone_of(config);
  std::set<std::string> used;
  const auto params = collect_params(network);
  initialize(params, encoder.initializer_range, false, Rng(1));  // for parameters missing from the file
  for (const auto& [name, param] : params) {
    const auto names = huggingface_names(config, name);
    std::vector<at::Tensor> parts;
    for (auto stored : names) {
      for (const auto& alias : huggingface_aliases(config, name))
        if (!model.tensors.count(stored) && model.tensors.count(alias)) stored = alias;
      const auto found = model.tensors.find(stored);
      if (found == model.tensors.end()) continue;
      used.insert(stored);
      require_weights(stored, found->second);
      const auto tensor = found->second.to(at::kFloat);
      parts.push_back(encoder.is_two_stream()                                     ? xlnet_from_huggingface(name, tensor)
                      : huggingface_transposed(config, name) && tensor.dim() == 2 ? tensor.t()
                      : name == "lm.head.bias"                                    ? tensor.flatten()
                                                                                  : tensor);
    }
    if (parts.empty()) {
      const bool may_lack = name == "lm.head.bias" || !name.starts_with("backbone.") ||
                            name.starts_with("backbone.pooler.") || param.fixed();
      require<CheckpointError>(may_lack, "the weights have no tensor '", names.empty() ? name : name_of_whole(names[0]),
                               "'; they do not belong to this config.json");
      if (!param.fixed()) fresh.push_back(name);
      continue;
    }
    const auto whole = parts.size() == 1 ? parts[0] : at::cat(parts);
    require<CheckpointError>(whole.sizes() == param.value().sizes(), "tensor '", names[0], "' has shape ",
                             parts[0].sizes(), ", but config.json needs ", param.value().sizes(), " for ", name);
    param.value().copy_(whole);
  }
  for (const auto& [name, param] : params)
    for (const auto& alias : huggingface_aliases(config, name)) {
      const auto found = model.tensors.find(alias);
      if (found == model.tensors.end() || used.count(alias)) continue;
      require_weights(alias, found->second);
      if (found->second.sizes() == param.value().sizes())
        param.value().copy_(found->second.to(at::kFloat));  // the second name of the output bias takes precedence
      used.insert(alias);
    }
  for (const auto& [name, tensor] : model.tensors)
    if (!used.count(name) && name.find("position_ids") == std::string::npos) ignored.push_back(name);
}

json huggingface_config(const RunConfig& config) {
  auto j = model_json(config.model);
  j.update({{"architectures", {architecture_of(config.model, config.objectives)}}, {"dtype", "float32"}});
  return j;
}

namespace {

/// The default config of a family.
BackboneConfig standard_of(const ModelConfig& model) {
  return std::visit([](const auto& m) -> BackboneConfig { return std::decay_t<decltype(m)>{}; }, model);
}

/// Throws ConfigError unless a generative model has the architecture of its class, whatever its sizes.
void require_decoder_class(const RunConfig& config) {
  const auto& c = backbone_of(config.model);
  const auto kind = kind_of(config.model);
  const auto standard = standard_of(config.model);
  const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  const bool single_stack = standard.is_encoder_decoder() && !c.is_encoder_decoder(), t5 = kind == "t5";
  const auto same = [&](const char* option, const std::string& value, const std::string& expected) {
    require<ConfigError>(value == expected, "model.", option, " ", value, " has no class at Hugging Face for ", kind,
                         "; export to torchscript");
  };
  same("norm_place", name_of(c.norm_place), name_of(standard.norm_place));
  same("norm_kind", name_of(c.norm_kind), name_of(standard.norm_kind));
  same("position_embeddings", name_of(c.position_embeddings), name_of(standard.position_embeddings));
  same("relative_positions", std::to_string(c.relative_positions), "0");
  same("feed_forward", name_of(c.feed_forward), t5 ? name_of(c.feed_forward) : "plain");
  const auto architecture = single_stack ? (t5 ? Architecture::encoder : Architecture::decoder) : standard.architecture;
  same("architecture", name_of(c.architecture), name_of(architecture));
  same("prefix_lm", text(c.prefix_lm), "false");
  const bool generative = !config.objectives.empty() && head_of(config.objectives[0]) == "lm";
  require<ConfigError>(!single_stack || (t5 ? config.objectives.empty() : generative),
                       t5 ? "Hugging Face's class of T5's encoder has no head"
                          : "Hugging Face's class of a decoder without encoder needs a head, and this model has none",
                       "; export to torchscript");
  require<ConfigError>(std::holds_alternative<FullAttention>(c.attention),
                       "model.attention of another kind than full has no class at Hugging Face for ", kind,
                       "; export to torchscript");
}

}  // namespace

void require_huggingface(const RunConfig& config) {
  const auto& c = backbone_of(config.model);
  require<ConfigError>(kind_of(config.model) != "transformer",
                       "transformer has no class at Hugging Face; export to torchscript");
  if (decoder_family(config.model)) return require_decoder_class(config);
  require<ConfigError>(
      c.num_hidden_groups == 0 || c.share == Sharing::all || c.num_hidden_groups == c.num_hidden_layers,
      "model.share '", c.share,
      "' has no class at Hugging Face, which only shares whole layers; export to torchscript");
  if (c.is_two_stream()) return;
  const auto model = kind_of(config.model);
  const auto standard = standard_of(config.model);
  const bool rotary = c.position_embeddings == PositionEmbeddings::rotary;
  require<ConfigError>(rotary == (model == "modernbert"), "model.position_embeddings ", c.position_embeddings,
                       " has no class at Hugging Face for ", model, "; export to torchscript");
  require<ConfigError>(rotary || c.position_embeddings == PositionEmbeddings::learned || c.has_relative_keys() ||
                           std::holds_alternative<DistilBertConfig>(config.model),
                       "model.position_embeddings '", c.position_embeddings,
                       "' has a class at Hugging Face only for distilbert; export to torchscript");
  require<ConfigError>(c.is_generative() || !has(config.objectives, "mntp"),
                       "Hugging Face has no class for an encoder whose hidden states predict the next token (mntp); "
                       "export to torchscript");
  const auto kind_of_attention = [](const AttentionConfig& kind) {
    return std::string(std::visit([](const auto& a) { return a.kind; }, kind));
  };
  const auto attention = kind_of_attention(c.attention);
  require<ConfigError>(model != "performer", "performer has no class at Hugging Face; export to torchscript");
  require<ConfigError>(
      attention == kind_of_attention(standard.attention) || (model == "bigbird" && attention == "full"),
      "model.attention of kind ", attention, " has no class at Hugging Face for ", model, "; export to torchscript");
  if (const auto* window = std::get_if<WindowAttention>(&c.attention)) {
    const auto& steps = window->attention_dilation;
    require<ConfigError>(std::all_of(steps.begin(), steps.end(), [](int64_t d) { return d == 1; }),
                         "model.attention.attention_dilation ", *std::max_element(steps.begin(), steps.end()),
                         " has no class at Hugging Face, whose windows are not dilated; export to torchscript");
  }
  for (const auto& [option, value, there] : {std::tuple<const char*, std::string, const char*>{
                                                 "norm_place", name_of(c.norm_place), name_of(standard.norm_place)},
                                             {"norm_kind", name_of(c.norm_kind), "layer"},
                                             {"feed_forward", name_of(c.feed_forward), name_of(standard.feed_forward)},
                                             {"relative_positions", std::to_string(c.relative_positions), "0"},
                                             {"prefix_lm", c.prefix_lm ? "true" : "false", "false"}})
    require<ConfigError>(value == there, "model.", option, " ", value, " has no class at Hugging Face for ", model,
                         "; export to torchscript");
  if (c.has_relative_keys()) {
    require<ConfigError>(model == "bert" || model == "roberta" || model == "albert" || model == "electra",
                         "model.position_embeddings ", c.position_embeddings, " has no class at Hugging Face for ",
                         model, "; export to torchscript");
    log_warning("export", words("position_embedding_type ", c.position_embeddings,
                                " is computed by transformers 4, but ignored by transformers 5"));
  }
  if (c.is_generative()) {
    require<ConfigError>(model == "bert" || model == "roberta" || model == "electra" || model == "bigbird",
                         "Hugging Face has no decoder class for ", model, "; export to torchscript");
    for (const auto& o : config.objectives) {
      require<ConfigError>(head_of(o) != "lm" || has_transform(o),
                           "a language modeling head without a transform has no class at Hugging Face for ", model,
                           "; train with `kind: ", has(config.objectives, "mntp") ? "mntp" : "clm",
                           ", transform: true`, or export to torchscript");
    }
  }
  for (const auto& o : config.objectives) {
    const bool sop = std::holds_alternative<SopConfig>(o), nsp = std::holds_alternative<NspConfig>(o),
               rtd = std::holds_alternative<RtdConfig>(o);
    require<ConfigError>(
        (!sop || model == "albert") && (!nsp || model == "bert" || model == "bigbird") && (!rtd || model == "electra"),
        "Hugging Face has no class for ", model, " with the head of ",
        sop   ? "sop"
        : nsp ? "nsp"
              : "rtd",
        "; export to torchscript");
  }
}

namespace {

/// Extends the config of a discriminator to both networks: the sizes of the generator as shares of the discriminator's,
/// and which embeddings are tied. Throws ConfigError for a generator that cannot be in one run with this discriminator.
void add_generator(HuggingFaceModel& model, const HuggingFaceModel& generator, const std::string& folder) {
  const bool pair = model.architecture == "ElectraForPreTraining" && generator.architecture == "ElectraForMaskedLM";
  require<ConfigError>(pair, "--generator ", folder,
                       ": needs an ElectraForMaskedLM as generator of an ElectraForPreTraining, these are ",
                       generator.architecture, " and ", model.architecture);
  auto& d = backbone_of(model.config.model);
  const auto& g = backbone_of(generator.config.model);
  RtdConfig rtd;
  rtd.generator_hidden_size = static_cast<double>(g.num_attention_heads) / static_cast<double>(d.num_attention_heads);
  rtd.generator_layers =
      static_cast<double>(g.num_hidden_layers) / static_cast<double>(std::max<int64_t>(d.num_hidden_layers, 1));
  d.tie_word_embeddings = g.tie_word_embeddings;
  const auto expected = generator_of(rtd, d);
  const auto same = [&](const char* key, const auto& given, const auto& wanted) {
    require<ConfigError>(given == wanted, "--generator ", folder, ": its ", key, " is ", given,
                         ", but with this discriminator it must be ", wanted, "; the two cannot be one run");
  };
  same("hidden_size", g.hidden_size, expected.hidden_size);
  same("intermediate_size", g.intermediate_size, expected.intermediate_size);
  same("num_hidden_layers", g.num_hidden_layers, expected.num_hidden_layers);
  same("embedding_size", g.embedding_width(), expected.embedding_width());
  same("vocab_size", g.vocab_size, expected.vocab_size);
  same("max_position_embeddings", g.max_position_embeddings, expected.max_position_embeddings);
  same("type_vocab_size", g.type_vocab_size, expected.type_vocab_size);
  same("hidden_act", g.hidden_act, expected.hidden_act);
  same("layer_norm_eps", g.layer_norm_eps, expected.layer_norm_eps);
  const auto equal = [&](const char* part) {
    const auto name = "electra.embeddings." + std::string(part);
    const auto of_discriminator = model.tensors.find(name);
    const auto of_generator = generator.tensors.find(name);
    return of_discriminator != model.tensors.end() && of_generator != generator.tensors.end() &&
           at::equal(of_discriminator->second, of_generator->second);
  };
  const bool tables = equal("word_embeddings.weight") && equal("position_embeddings.weight");
  const bool all =
      tables && equal("token_type_embeddings.weight") && equal("LayerNorm.weight") && equal("LayerNorm.bias");
  rtd.tie = all ? EmbeddingTie::all : EmbeddingTie::none;
  if (tables && !all) rtd.tie = EmbeddingTie::tables;
  model.config.objectives = {rtd};
}

/// Loads the weights of the generator into the network that holds both.
void load_generator(const HuggingFaceModel& generator, Network& network, ImportReport& report) {
  Network own_network(generator.config.model, generator.config.objectives);
  load_huggingface(generator, own_network, report.ignored, report.fresh);
  at::NoGradGuard no_grad;
  for (const auto& [joint, own] : generator_params(network, own_network)) joint.value().copy_(own.value());
  report.tensors += static_cast<int64_t>(generator.tensors.size());
}

/// Throws ConfigError for a config with far more parameters than the file, before memory is written for them.
void check_size(const Network& network, const HuggingFaceModel& model, const HuggingFaceModel* generator,
                const std::string& path) {
  constexpr int64_t max_head = 1 << 26;  // parameters of a newly initialized head
  int64_t described = 0, stored = 0;
  for (const auto& [name, param] : collect_params(network)) described += param.value().numel();
  for (const auto* part : {&model, generator})
    for (const auto& [name, tensor] : part ? part->tensors : std::map<std::string, at::Tensor>())
      stored += tensor.numel();
  require<ConfigError>(described <= 4 * stored + max_head, path, ": describes a model of ",
                       thousands(static_cast<uint64_t>(described)), " parameters, but the weights have ",
                       thousands(static_cast<uint64_t>(stored)), "; they do not belong together");
}

}  // namespace

ImportReport import_huggingface(const std::string& folder, const std::string& run,
                                const std::string& generator_folder) {
  require<ConfigError>(!fs::exists(run), run, ": exists; name another --out");
  auto model = read_huggingface(folder);
  std::optional<HuggingFaceModel> generator;
  if (!generator_folder.empty()) {
    generator = read_huggingface(generator_folder);
    add_generator(model, *generator, generator_folder);
  }
  const auto network = std::make_shared<Network>(model.config.model, model.config.objectives);
  check_size(*network, model, generator ? &*generator : nullptr, folder + "/config.json");
  ImportReport report;
  report.architecture = model.architecture;
  load_huggingface(model, *network, report.ignored, report.fresh);
  report.tensors = static_cast<int64_t>(model.tensors.size());
  if (generator) {
    std::erase_if(report.fresh, [](const auto& name) { return name.starts_with("rtd.generator"); });
    load_generator(*generator, *network, report);
  }
  const auto params = collect_params(*network);
  for (const auto& p : params) report.parameters += p.param.value().numel();
  StagedFolder staged(run);
  bool has_tokenizer = false;
  for (const auto* file : {"vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "spm.model",
                           "vocab.json", "tokenizer.json"})
    has_tokenizer = has_tokenizer || fs::exists(folder + "/" + file);
  if (has_tokenizer) {
    const auto tokenizer = Tokenizer::open(folder);
    require<CheckpointError>(tokenizer.size() <= backbone_of(model.config.model).vocab_size, folder,
                             ": the tokenizer has ", tokenizer.size(), " tokens, the model has ",
                             backbone_of(model.config.model).vocab_size, "; they do not belong together");
    tokenizer.save(staged.path() + "/tokenizer");
  } else {
    log_info(
        "import",
        folder +
            " has no tokenizer (vocab.txt, spiece.model, vocab.json, tokenizer.json), so the run takes ids, not text");
  }
  write_atomic(staged.path() + "/run.yaml", to_yaml(model.config));
  write_atomic(
      staged.path() + "/provenance.json",
      json{{"imported_from", folder}, {"architecture", model.architecture}, {"cloze", CLOZE_VERSION}}.dump(2) + "\n");
  save_checkpoint(staged.path(), {}, params, {});
  staged.commit();
  return report;
}

namespace {

/// How the model reads text, for the export of its tokenizer.
TextReader reader_of(const ModelConfig& model) {
  const auto& c = backbone_of(model);
  return {.kind = kind_of(model),
          .segments = c.token_types && c.type_vocab_size > 1,
          .max_length = c.max_input_length() < BackboneConfig::unlimited_length ? c.max_input_length() : 0,
          .end = decoder_family(model) ? c.eos_token_id : -1};
}

/// Adds all token tables of an encoder-decoder model by name unless they are one; transformers ties those that are
/// missing from the file.
void write_all_tables(const LoadedRun& run, bool bare, std::vector<NamedTensor>& tensors) {
  const auto& c = backbone_of(run.config.model);
  if (!c.is_encoder_decoder() || (shares_embeddings(run.config.model) && c.tie_word_embeddings)) return;
  auto names = token_tables(run.config.model);
  if (bare) {
    names.pop_back();  // the head
    for (auto& name : names) name = name.substr(huggingface_prefix(run.config.model).size());
  }
  const auto contains = [&](const std::string& name) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  };
  const auto& encoder = run.network->backbone->embedding_tables()->word.value();
  const auto& decoder = run.network->backbone->token_embedding().value();
  for (size_t i = 0; i < names.size(); ++i)
    if (!contains(names[i])) tensors.push_back({names[i], (i < 2 ? encoder : decoder).detach()});
}

}  // namespace

void export_huggingface(const std::string& run, const std::string& out, const std::string& part, bool replace) {
  const bool occupied = fs::exists(out) && !(fs::is_directory(out) && fs::is_empty(out));
  const bool is_model = fs::exists(out + "/config.json");
  require<ConfigError>(!occupied || is_model, out, ": exists and is not a model folder; name another --out");
  require<ConfigError>(!occupied || replace, out,
                       ": already exists; name another folder, or overwrite it with --force");
  auto opened = open_run(run);
  if (part == "generator") take_generator(opened);
  require_huggingface(opened.config);
  const bool bare = opened.config.objectives.empty();
  const auto prefix = huggingface_prefix(opened.config.model);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, param] : collect_params(*opened.network)) {
    const auto names = huggingface_names(opened.config.model, name);
    if (names.empty()) continue;  // the generator of a discriminator
    const auto parts =
        to_huggingface(opened.config.model, name, param.value().detach()).chunk(static_cast<int64_t>(names.size()));
    for (size_t i = 0; i < names.size(); ++i)
      tensors.push_back({bare ? names[i].substr(prefix.size()) : names[i], parts[i].contiguous()});
    if (name.ends_with("lm.head.bias") && !decoder_family(opened.config.model) &&
        !backbone_of(opened.config.model).tie_word_embeddings)
      for (const auto& alias : huggingface_aliases(opened.config.model, name))
        tensors.push_back({alias, param.value().detach()});
  }
  std::map<std::string, Tensor> parts;
  std::erase_if(tensors, [&](const auto& t) {
    const bool is_part = name_of_whole(t.name) != t.name;
    if (is_part) parts.emplace(t.name, t.tensor);
    return is_part;
  });
  join_parts(parts);
  for (const auto& [name, tensor] : parts) tensors.push_back({name, tensor});
  write_all_tables(opened, bare, tensors);
  StagedFolder staged(out);
  const auto& model = backbone_of(opened.config.model);
  auto config = huggingface_config(opened.config);
  if (opened.has_tokenizer) {
    const auto& special = opened.tokenizer.special();
    if (const auto bos = model.prepend_bos ? special.cls : special.bos; bos >= 0) config["bos_token_id"] = bos;
    if (!config.contains("eos_token_id") && special.eos >= 0) config["eos_token_id"] = special.eos;
    if (std::holds_alternative<ModernBertConfig>(opened.config.model)) {
      config["cls_token_id"] = special.cls;
      config["sep_token_id"] = special.sep;
    }
  } else {
    if (model.bos_token_id >= 0) config["bos_token_id"] = model.bos_token_id;
    if (!config.contains("eos_token_id") && model.eos_token_id >= 0) config["eos_token_id"] = model.eos_token_id;
  }
  // An imported run that was not trained is exported unchanged.
  const auto* streams = as<TwoStreamConfig>(opened.config.model);
  if (streams && streams->bi_data && load_state(opened.checkpoint, nullptr).step > 0) {
    config["bi_data"] = false;
    log_info(
        "export",
        "bi_data only applies to training and is exported as false; if true, transformers reads the second half of "
        "every batch backwards");
  }
  write_atomic(staged.path() + "/config.json", config.dump(2) + "\n");
  save_safetensors(staged.path() + "/model.safetensors", tensors);
  if (opened.has_tokenizer) opened.tokenizer.save(staged.path(), reader_of(opened.config.model));
  staged.commit();
}

}  // namespace cloze

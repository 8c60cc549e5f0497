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

/// Objectives that have the heads of a class; of an encoder with a decoder, the stack that the class has. Throws
/// ConfigError for one that is unknown.
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
                                  " without is_decoder is bidirectional: it is taken as a masked language model"));
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

/// The class that has the heads of these objectives.
std::string architecture_of(const ModelConfig& model, const Objectives& objectives) {
  const auto name = class_prefix(model);
  const auto& c = backbone_of(model);
  if (c.is_encoder_decoder()) return name + (objectives.empty() ? "Model" : "ForConditionalGeneration");
  if (has(objectives, "plm")) return name + "LMHeadModel";
  if (c.is_generative() && !objectives.empty() && is_generative(objectives[0]))
    return name + (name == "GPT2" || name == "Bert" ? "LMHeadModel" : "ForCausalLM");
  if (std::holds_alternative<T5Config>(model)) return name + "EncoderModel";
  const bool pairs = has(objectives, "nsp") || has(objectives, "sop");
  if (has(objectives, "rtd") || (pairs && (name == "Bert" || name == "Albert" || name == "BigBird")))
    return name + "ForPreTraining";
  return name + (has(objectives, "mlm") ? "ForMaskedLM" : "Model");
}

/// The class of weights whose config.json names none.
std::string architecture_of(const ModelConfig& model, const std::map<std::string, at::Tensor>& tensors, bool bare) {
  const auto there = [&](const std::string& name) { return tensors.count(name) > 0; };
  const auto begins = [&](const std::string& name) {
    const auto found = tensors.lower_bound(name);
    return found != tensors.end() && found->first.starts_with(name);
  };
  const auto& c = backbone_of(model);
  if (c.is_encoder_decoder()) {
    const bool t5 = std::holds_alternative<T5Config>(model);
    if (t5 && !begins("decoder.")) return class_prefix(model) + "EncoderModel";
    if (!t5 && begins("model.decoder.") && !begins("model.encoder.")) return class_prefix(model) + "ForCausalLM";
  }
  Objectives guessed;
  // A tied head has no tensor of its own. T5 has no name in front that would tell; its table is the whole head.
  if (decoder_family(model))
    guessed = there("lm_head.weight") || (c.tie_word_embeddings && !bare) ? Objectives{ClmConfig{}} : Objectives{};
  else if (c.is_two_stream())
    guessed = there("lm_loss.bias") ? Objectives{PlmConfig{}} : Objectives{};
  else if (there("discriminator_predictions.dense.weight"))
    guessed = {RtdConfig{}};
  else if (there(huggingface_names(model, "mlm.head.transform.weight")[0]))
    guessed = c.is_decoder() ? Objectives{ClmConfig{}} : Objectives{MlmConfig{}};
  if (there("cls.seq_relationship.weight")) guessed.push_back(NspConfig{});
  if (there("sop_classifier.classifier.weight")) guessed.push_back(SopConfig{});
  return architecture_of(model, guessed);
}

/// Settles which token tables are one. A table that the file lacks is that to which the class ties it; two that differ
/// are not tied, whatever config.json says. Leaves in `tensors` those that the network has. Source: tie_weights of
/// transformers 5, modeling_utils.py.
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
    log_warning("import", words(tables.back(), " differs from ", tables[0],
                                ", though config.json says that they are tied: each is kept"));
  if (head.defined()) c.tie_word_embeddings = c.tie_word_embeddings && same;
  tensors[huggingface_names(model, "backbone.embeddings.word")[0]] = encoder;
  if (!one_table) tensors[huggingface_names(model, "backbone.decoder_embeddings.word")[0]] = decoder;
  if (head.defined() && !c.tie_word_embeddings) tensors[tables.back()] = head;
}

/// The heads of encoders, whose names have nothing in front.
const std::vector<std::string> heads_there{
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
      ": is_decoder is true, and blocks of attention see both sides; set attention_type to 'original_full'");
  model.tensors = read_weights(folder);
  const auto prefix = huggingface_prefix(config);
  // A bare model is saved without the name of the model in front.
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
      const bool of_head =
          std::any_of(heads_there.begin(), heads_there.end(), [&](const auto& head) { return name.starts_with(head); });
      full.emplace(of_head ? name : prefix + name, tensor);
    }
    model.tensors = std::move(full);
  }
  tie_tables(config, model.tensors);
  // The classes of BigBird have a pooler that their masked language model does not read.
  c.pooler = std::holds_alternative<BigBirdConfig>(config) && !model.config.objectives.empty() &&
             model.tensors.count("bert.pooler.weight") > 0;
  const auto decoding = decoding_ids_of(config);
  if (decoder_family(config))
    for (const auto& [key, id] : {std::pair{"pad_token_id", c.pad_token_id},
                                  {"decoder_start_token_id", decoding.decoder_start_token_id},
                                  {"forced_bos_token_id", decoding.forced_bos_token_id},
                                  {"forced_eos_token_id", decoding.forced_eos_token_id}})
      require<ConfigError>(id < c.vocab_size, path, ": ", key, " is ", id, ", the vocabulary has ", c.vocab_size,
                           " tokens; the file is damaged");
  model.config.data.max_seq_length = std::max<int64_t>(5, std::min<int64_t>(c.longest_input(), 512));
  model.config.train.budget.steps = 1000;
  // The ranges of a config that a user writes hold for one that was read, and a run has nothing but what it writes
  // down.
  model.config = decode<RunConfig>(ConfigTree::parse(to_yaml(model.config), path + ", as the run.yaml of Cloze"));
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
  initialize(params, encoder.initializer_range, false, Rng(1));  // for what the file lacks
  for (const auto& [name, param] : params) {
    const auto names = huggingface_names(config, name);
    std::vector<at::Tensor> parts;
    for (auto theirs : names) {
      for (const auto& alias : huggingface_aliases(config, name))
        if (!model.tensors.count(theirs) && model.tensors.count(alias)) theirs = alias;
      const auto found = model.tensors.find(theirs);
      if (found == model.tensors.end()) continue;
      used.insert(theirs);
      require_weights(theirs, found->second);
      const auto tensor = found->second.to(at::kFloat);
      parts.push_back(encoder.is_two_stream()                                     ? xlnet_from_huggingface(name, tensor)
                      : huggingface_transposed(config, name) && tensor.dim() == 2 ? tensor.t()
                      : name == "lm.head.bias"                                    ? tensor.flatten()
                                                                                  : tensor);
    }
    if (parts.empty()) {
      const bool may_lack = name == "lm.head.bias" || !name.starts_with("backbone.") ||
                            name.starts_with("backbone.pooler.") || param.fixed();
      require<CheckpointError>(may_lack, "the weights have no tensor '", names.empty() ? name : names[0],
                               "'; they are not those of this config.json");
      if (!param.fixed()) fresh.push_back(name);
      continue;
    }
    const auto whole = parts.size() == 1 ? parts[0] : at::cat(parts);
    require<CheckpointError>(whole.sizes() == param.value().sizes(), "tensor '", names[0], "' has shape ",
                             parts[0].sizes(), ", config.json needs ", param.value().sizes(), " for ", name);
    param.value().copy_(whole);
  }
  for (const auto& [name, param] : params)
    for (const auto& alias : huggingface_aliases(config, name)) {
      const auto found = model.tensors.find(alias);
      if (found == model.tensors.end() || used.count(alias)) continue;
      require_weights(alias, found->second);
      if (found->second.sizes() == param.value().sizes())
        param.value().copy_(found->second.to(at::kFloat));  // a bias that the decoder has under its own name counts
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

/// The class of a kind that writes is the kind as it stands, but for its sizes.
void require_decoder_class(const RunConfig& config) {
  const auto& c = backbone_of(config.model);
  const auto kind = kind_of(config.model);
  const auto plain =
      std::visit([](const auto& m) -> BackboneConfig { return std::decay_t<decltype(m)>{}; }, config.model);
  const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  const bool alone = plain.is_encoder_decoder() && !c.is_encoder_decoder(), t5 = kind == "t5";
  const auto same = [&](const char* option, const std::string& value, const std::string& there) {
    require<ConfigError>(value == there, "model.", option, " ", value, " has no class at Hugging Face for ", kind,
                         "; export to torchscript");
  };
  same("norm_place", name_of(c.norm_place), name_of(plain.norm_place));
  same("norm_kind", name_of(c.norm_kind), name_of(plain.norm_kind));
  same("position_embeddings", name_of(c.position_embeddings), name_of(plain.position_embeddings));
  same("relative_positions", std::to_string(c.relative_positions), "0");
  same("feed_forward", name_of(c.feed_forward), t5 ? name_of(c.feed_forward) : "plain");
  const auto its_own = alone ? (t5 ? Architecture::encoder : Architecture::decoder) : plain.architecture;
  same("architecture", name_of(c.architecture), name_of(its_own));
  same("prefix_lm", text(c.prefix_lm), "false");
  const bool writes = !config.objectives.empty() && is_generative(config.objectives[0]);
  require<ConfigError>(!alone || (t5 ? config.objectives.empty() : writes),
                       t5 ? "Hugging Face's class of T5's encoder has no head"
                          : "Hugging Face's class of a decoder alone has a head, and this one has none",
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
      "model.share '", c.share, "' has no class at Hugging Face, which shares whole layers; export to torchscript");
  if (c.is_two_stream()) return;
  require<ConfigError>(c.position_embeddings == PositionEmbeddings::learned || c.scores_distances() ||
                           std::holds_alternative<DistilBertConfig>(config.model),
                       "model.position_embeddings '", c.position_embeddings,
                       "' has a class at Hugging Face only for distilbert; export to torchscript");
  const auto model = kind_of(config.model);
  const std::string attention = std::visit([](const auto& a) { return a.kind; }, c.attention);
  require<ConfigError>(model != "performer", "performer has no class at Hugging Face; export to torchscript");
  require<ConfigError>(model == "longformer" ? attention == "window"
                                             : attention == "full" || (model == "bigbird" && attention == "bigbird"),
                       "model.attention of kind ", attention, " has no class at Hugging Face for ", model,
                       "; export to torchscript");
  if (const auto* window = std::get_if<WindowAttention>(&c.attention)) {
    const auto& steps = window->attention_dilation;
    require<ConfigError>(std::all_of(steps.begin(), steps.end(), [](int64_t d) { return d == 1; }),
                         "model.attention.attention_dilation ", *std::max_element(steps.begin(), steps.end()),
                         " has no class at Hugging Face, whose windows are not dilated; export to torchscript");
  }
  for (const auto& [option, value, plain] :
       {std::tuple<const char*, std::string, const char*>{"norm_place", name_of(c.norm_place), "post"},
        {"norm_kind", name_of(c.norm_kind), "layer"},
        {"feed_forward", name_of(c.feed_forward), "plain"},
        {"relative_positions", std::to_string(c.relative_positions), "0"},
        {"prefix_lm", c.prefix_lm ? "true" : "false", "false"}})
    require<ConfigError>(value == plain, "model.", option, " ", value, " has no class at Hugging Face for ", model,
                         "; export to torchscript");
  if (c.scores_distances()) {
    require<ConfigError>(model == "bert" || model == "roberta" || model == "albert" || model == "electra",
                         "model.position_embeddings ", c.position_embeddings, " has no class at Hugging Face for ",
                         model, "; export to torchscript");
    log_warning("export", words("position_embedding_type ", c.position_embeddings,
                                " is computed by transformers 4; transformers 5 passes it over"));
  }
  if (c.is_generative()) {
    require<ConfigError>(model == "bert" || model == "roberta" || model == "electra" || model == "bigbird",
                         "Hugging Face has no class of ", model, " that is a decoder; export to torchscript");
    for (const auto& o : config.objectives) {
      const auto* clm = std::get_if<ClmConfig>(&o);
      require<ConfigError>(!is_generative(o) || (clm && clm->transform),
                           "a head that writes without a transform has no class at Hugging Face for ", model,
                           ", whose heads have one; train with `kind: clm, transform: true`, or export to torchscript");
    }
  }
  for (const auto& o : config.objectives) {
    const bool sop = std::holds_alternative<SopConfig>(o), nsp = std::holds_alternative<NspConfig>(o),
               rtd = std::holds_alternative<RtdConfig>(o);
    require<ConfigError>(
        (!sop || model == "albert") && (!nsp || model == "bert" || model == "bigbird") && (!rtd || model == "electra"),
        "Hugging Face has no class of ", model, " with the head of ",
        sop   ? "sop"
        : nsp ? "nsp"
              : "rtd",
        "; export to torchscript");
  }
}

namespace {

/// Makes the config of a discriminator that of both networks: the generator's sizes as shares of the discriminator's,
/// and what of the embeddings is one. Throws ConfigError for a generator that a run cannot have beside this
/// discriminator.
void add_generator(HuggingFaceModel& model, const HuggingFaceModel& generator, const std::string& folder) {
  const bool pair = model.architecture == "ElectraForPreTraining" && generator.architecture == "ElectraForMaskedLM";
  require<ConfigError>(pair, "--generator ", folder,
                       ": a generator is an ElectraForMaskedLM beside an ElectraForPreTraining, these are ",
                       generator.architecture, " and ", model.architecture);
  auto& d = backbone_of(model.config.model);
  const auto& g = backbone_of(generator.config.model);
  RtdConfig rtd;
  rtd.generator_hidden_size = static_cast<double>(g.num_attention_heads) / static_cast<double>(d.num_attention_heads);
  rtd.generator_layers =
      static_cast<double>(g.num_hidden_layers) / static_cast<double>(std::max<int64_t>(d.num_hidden_layers, 1));
  d.tie_word_embeddings = g.tie_word_embeddings;
  const auto made = generator_of(rtd, d);
  const auto same = [&](const char* key, const auto& there, const auto& here) {
    require<ConfigError>(there == here, "--generator ", folder, ": its ", key, " is ", there,
                         ", and beside this discriminator it is ", here, "; such a pair cannot be one run");
  };
  same("hidden_size", g.hidden_size, made.hidden_size);
  same("intermediate_size", g.intermediate_size, made.intermediate_size);
  same("num_hidden_layers", g.num_hidden_layers, made.num_hidden_layers);
  same("embedding_size", g.embedding_width(), made.embedding_width());
  same("vocab_size", g.vocab_size, made.vocab_size);
  same("max_position_embeddings", g.max_position_embeddings, made.max_position_embeddings);
  same("type_vocab_size", g.type_vocab_size, made.type_vocab_size);
  same("hidden_act", g.hidden_act, made.hidden_act);
  same("layer_norm_eps", g.layer_norm_eps, made.layer_norm_eps);
  const auto equal = [&](const char* part) {
    const auto name = "electra.embeddings." + std::string(part);
    const auto here = model.tensors.find(name);
    const auto there = generator.tensors.find(name);
    return here != model.tensors.end() && there != generator.tensors.end() && at::equal(here->second, there->second);
  };
  const bool tables = equal("word_embeddings.weight") && equal("position_embeddings.weight");
  const bool all =
      tables && equal("token_type_embeddings.weight") && equal("LayerNorm.weight") && equal("LayerNorm.bias");
  rtd.tie = all ? EmbeddingTie::all : EmbeddingTie::none;
  if (tables && !all) rtd.tie = EmbeddingTie::tables;
  model.config.objectives = {rtd};
}

/// The generator's weights, read into the network that holds both.
void load_generator(const HuggingFaceModel& generator, Network& network, ImportReport& report) {
  Network alone(generator.config.model, generator.config.objectives);
  load_huggingface(generator, alone, report.ignored, report.fresh);
  at::NoGradGuard no_grad;
  for (const auto& [together, own] : generator_params(network, alone)) together.value().copy_(own.value());
  report.tensors += static_cast<int64_t>(generator.tensors.size());
}

/// Throws ConfigError for a config of far more parameters than the file has, before memory is written for them.
void check_size(const Network& network, const HuggingFaceModel& model, const HuggingFaceModel* generator,
                const std::string& path) {
  constexpr int64_t heads = 1 << 26;  // of parameters that may be drawn anew
  int64_t described = 0, stored = 0;
  for (const auto& [name, param] : collect_params(network)) described += param.value().numel();
  for (const auto* part : {&model, generator})
    for (const auto& [name, tensor] : part ? part->tensors : std::map<std::string, at::Tensor>())
      stored += tensor.numel();
  require<ConfigError>(described <= 4 * stored + heads, path, ": describes a model of ",
                       thousands(static_cast<uint64_t>(described)), " parameters, the weights are ",
                       thousands(static_cast<uint64_t>(stored)), " numbers; they do not belong together");
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
                             ": the tokenizer has ", tokenizer.size(), " pieces, the model ",
                             backbone_of(model.config.model).vocab_size, " rows; they do not belong together");
    tokenizer.save(staged.path() + "/tokenizer");
  } else {
    log_info(
        "import",
        folder +
            " has no tokenizer (vocab.txt, spiece.model, vocab.json, tokenizer.json): the run reads ids, not text");
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

/// The model as the reader of its tokenizer's texts.
TextReader reader_of(const ModelConfig& model) {
  const auto& c = backbone_of(model);
  return {.kind = kind_of(model),
          .segments = c.token_types && c.type_vocab_size > 1,
          .max_length = c.longest_input() < BackboneConfig::any_length ? c.longest_input() : 0,
          .end = decoder_family(model) ? c.eos_token_id : -1};
}

/// Where not all token tables of an encoder with a decoder are one, the file holds each by its name: transformers ties
/// what is not there.
void write_all_tables(const LoadedRun& run, bool bare, std::vector<NamedTensor>& tensors) {
  const auto& c = backbone_of(run.config.model);
  if (!c.is_encoder_decoder() || (shares_embeddings(run.config.model) && c.tie_word_embeddings)) return;
  auto names = token_tables(run.config.model);
  if (bare) {
    names.pop_back();  // the head
    for (auto& name : names) name = name.substr(huggingface_prefix(run.config.model).size());
  }
  const auto holds = [&](const std::string& name) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  };
  const auto& encoder = run.network->backbone->embedding_tables()->word.value();
  const auto& decoder = run.network->backbone->token_embedding().value();
  for (size_t i = 0; i < names.size(); ++i)
    if (!holds(names[i])) tensors.push_back({names[i], (i < 2 ? encoder : decoder).detach()});
}

}  // namespace

void export_huggingface(const std::string& run, const std::string& out, const std::string& part, bool replace) {
  const bool taken = fs::exists(out) && !(fs::is_directory(out) && fs::is_empty(out));
  const bool is_model = fs::exists(out + "/config.json");
  require<ConfigError>(!taken || is_model, out, ": exists and is no model folder; name another --out");
  require<ConfigError>(!taken || replace, out, ": is there already; name another folder, or replace it with --force");
  auto opened = open_run(run);
  if (part == "generator") take_generator(opened);
  require_huggingface(opened.config);
  const bool bare = opened.config.objectives.empty();
  const auto prefix = huggingface_prefix(opened.config.model);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, param] : collect_params(*opened.network)) {
    const auto theirs = huggingface_names(opened.config.model, name);
    if (theirs.empty()) continue;  // a generator beside the discriminator
    const auto parts =
        to_huggingface(opened.config.model, name, param.value().detach()).chunk(static_cast<int64_t>(theirs.size()));
    for (size_t i = 0; i < theirs.size(); ++i)
      tensors.push_back({bare ? theirs[i].substr(prefix.size()) : theirs[i], parts[i].contiguous()});
    if (name.ends_with("lm.head.bias") && !decoder_family(opened.config.model) &&
        !backbone_of(opened.config.model).tie_word_embeddings)
      for (const auto& alias : huggingface_aliases(opened.config.model, name))
        tensors.push_back({alias, param.value().detach()});
  }
  write_all_tables(opened, bare, tensors);
  StagedFolder staged(out);
  const auto& model = backbone_of(opened.config.model);
  auto config = huggingface_config(opened.config);
  if (opened.has_tokenizer) {
    const auto& special = opened.tokenizer.special();
    if (const auto bos = model.texts_begin ? special.cls : special.bos; bos >= 0) config["bos_token_id"] = bos;
    if (!config.contains("eos_token_id") && special.eos >= 0) config["eos_token_id"] = special.eos;
  } else {
    if (model.bos_token_id >= 0) config["bos_token_id"] = model.bos_token_id;
    if (!config.contains("eos_token_id") && model.eos_token_id >= 0) config["eos_token_id"] = model.eos_token_id;
  }
  // A run that was imported and not trained goes out as it came.
  const auto* streams = as<TwoStreamConfig>(opened.config.model);
  if (streams && streams->bi_data && load_state(opened.checkpoint, nullptr).step > 0) {
    config["bi_data"] = false;
    log_info("export",
             "bi_data is of training and goes out as false: with it the class there reads the second half of every "
             "batch backwards");
  }
  write_atomic(staged.path() + "/config.json", config.dump(2) + "\n");
  save_safetensors(staged.path() + "/model.safetensors", tensors);
  if (opened.has_tokenizer) opened.tokenizer.save(staged.path(), reader_of(opened.config.model));
  staged.commit();
}

}  // namespace cloze

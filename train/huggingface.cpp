#include "train/huggingface.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "core/file.h"
#include "core/log.h"
#include "core/tensor/safetensors.h"
#include "train/huggingface_decoders.h"
#include "train/huggingface_parts.h"
#include "train/huggingface_xlnet.h"
#include "train/interchange.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const std::string& path) {
  require<CheckpointError>(fs::exists(path), path, ": no such file; name a folder that `save_pretrained` made");
  const auto content = json::parse(read_text(path, 64 << 20), nullptr, false);
  require<CheckpointError>(content.is_object(), path, ": is not a JSON object; the file is damaged");
  return content;
}

namespace {

std::map<std::string, at::Tensor> read_tensors(const std::string& folder) {
  std::vector<std::string> files;
  if (fs::exists(folder + "/model.safetensors")) {
    files = {"model.safetensors"};
  } else if (fs::exists(folder + "/model.safetensors.index.json")) {
    const auto index = read_json(folder + "/model.safetensors.index.json");
    std::set<std::string> named;
    require<CheckpointError>(index.contains("weight_map") && index["weight_map"].is_object(), folder, "/model.safetensors.index.json: has no weight_map; the file is damaged");
    for (const auto& [name, file] : index["weight_map"].items())
      if (file.is_string()) named.insert(file.get<std::string>());
    for (const auto& file : named)
      require<CheckpointError>(fs::path(file).filename() == file && fs::exists(folder + "/" + file), folder, "/model.safetensors.index.json: names '", file, "', which is not in the folder; get it again");
    files.assign(named.begin(), named.end());
  } else if (fs::exists(folder + "/pytorch_model.bin")) {
    fail<CheckpointError>(folder, ": has only pytorch_model.bin, a pickle, which Cloze does not open; save it with transformers as safetensors (save_pretrained)");
  } else {
    fail<CheckpointError>(folder, ": has no model.safetensors; name a folder that `save_pretrained` made");
  }
  std::map<std::string, at::Tensor> found;
  for (const auto& file : files) {
    const auto stored = SafeTensors::open(folder + "/" + file);
    for (auto name : stored.names()) {
      const auto tensor = stored.get(name);
      for (const auto& [old, now] : {std::pair{"LayerNorm.gamma", "LayerNorm.weight"}, std::pair{"LayerNorm.beta", "LayerNorm.bias"}})
        if (const auto at = name.find(old); at != std::string::npos) name.replace(at, std::string(old).size(), now);
      found.emplace(name, tensor);
    }
  }
  return found;
}

/// A model of Hugging Face's `model_type`, and the classes that can be read.
ModelConfig model_of_type(const std::string& type, const std::string& path) {
  if (type == "bert") return BertConfig{};
  if (type == "big_bird") return BigBirdConfig{};
  if (type == "roberta" || type == "xlm-roberta" || type == "camembert") return RobertaConfig{};
  if (type == "albert") return AlbertConfig{};
  if (type == "electra") return ElectraConfig{};
  if (type == "distilbert") return DistilBertConfig{};
  if (type == "longformer") return LongformerConfig{};
  if (type == "gpt2") return Gpt2Config{};
  if (type == "t5" || type == "mt5") return T5Config{};
  if (type == "bart") return BartConfig{};
  if (type == "mbart") return MBartConfig{};
  if (type == "pegasus") return PegasusConfig{};
  if (type == "xlnet") return XlnetConfig{};
  const std::vector<std::string> known{"bert", "roberta", "albert", "electra", "distilbert", "longformer", "big_bird", "gpt2", "t5", "bart", "mbart", "pegasus", "xlnet"};
  std::string list;
  for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
  fail<ConfigError>(path, ": model_type is '", type, "'", did_you_mean(type, known), "; this version imports ", list);
}

/// Objectives that have the heads of a class. Throws ConfigError for one that is unknown.
Objectives objectives_of(const std::string& architecture, const std::string& path) {
  const auto ends = [&](std::string_view end) { return architecture.size() >= end.size() && std::string_view(architecture).substr(architecture.size() - end.size()) == end; };
  if (architecture == "BertForPreTraining" || architecture == "BigBirdForPreTraining") return {MlmConfig{}, NspConfig{}};
  if (architecture == "AlbertForPreTraining") return {MlmConfig{}, SopConfig{}};
  if (architecture == "ElectraForPreTraining") {
    RtdConfig rtd;
    rtd.replace_by = "uniform";
    return {rtd};
  }
  if (ends("ForMaskedLM")) return {MlmConfig{}};
  if (architecture == "GPT2LMHeadModel") return {ClmConfig{}};
  if (architecture == "T5ForConditionalGeneration" || architecture == "MT5ForConditionalGeneration") return {SpanCorruptionConfig{}};
  if (architecture == "BartForConditionalGeneration" || architecture == "MBartForConditionalGeneration") return {DenoisingConfig{}};
  if (architecture == "PegasusForConditionalGeneration") return {GapSentencesConfig{}};
  if (architecture == "XLNetLMHeadModel") return {PlmConfig{}};
  if (ends("Model")) return {};
  fail<ConfigError>(path, ": architecture '", architecture, "' cannot be imported; BertForPreTraining, AlbertForPreTraining, ElectraForPreTraining, ...ForMaskedLM, GPT2LMHeadModel, XLNetLMHeadModel, T5, Bart, MBart and PegasusForConditionalGeneration, and ...Model can");
}

std::string architecture_of(const ModelConfig& model, const Objectives& objectives) {
  const auto has = [&](const char* kind) { return std::any_of(objectives.begin(), objectives.end(), [&](const auto& o) { return std::visit([&](const auto& c) { return std::string(c.kind) == kind; }, o); }); };
  static const std::map<std::string, std::string> classes{{"bert", "Bert"}, {"roberta", "Roberta"}, {"albert", "Albert"}, {"electra", "Electra"}, {"distilbert", "DistilBert"}, {"longformer", "Longformer"}, {"bigbird", "BigBird"}, {"performer", "Performer"}, {"gpt2", "GPT2"}, {"t5", "T5"}, {"bart", "Bart"}, {"mbart", "MBart"}, {"pegasus", "Pegasus"}, {"transformer", "Transformer"}, {"xlnet", "XLNet"}};
  const auto& name = classes.at(kind_of(model));
  if (writes_text(model)) return objectives.empty() ? name + "Model" : name + (name == "GPT2" ? "LMHeadModel" : "ForConditionalGeneration");
  if (has("plm")) return name + "LMHeadModel";
  if (has("rtd") || ((has("nsp") || has("sop")) && (name == "Bert" || name == "Albert" || name == "BigBird"))) return name + "ForPreTraining";
  return name + (has("mlm") ? "ForMaskedLM" : "Model");
}

void read_encoder(const json& j, EncoderConfig& c, const std::string& path) {
  take(j, "vocab_size", c.vocab_size, path);
  take(j, "hidden_size", c.hidden_size, path);
  take(j, "num_hidden_layers", c.num_hidden_layers, path);
  take(j, "num_attention_heads", c.num_attention_heads, path);
  take(j, "intermediate_size", c.intermediate_size, path);
  take(j, "hidden_act", c.hidden_act, path);
  take(j, "hidden_dropout_prob", c.hidden_dropout_prob, path);
  take(j, "attention_probs_dropout_prob", c.attention_probs_dropout_prob, path);
  take(j, "max_position_embeddings", c.max_position_embeddings, path);
  take(j, "type_vocab_size", c.type_vocab_size, path);
  take(j, "initializer_range", c.initializer_range, path);
  take(j, "layer_norm_eps", c.layer_norm_eps, path);
  take(j, "tie_word_embeddings", c.tie_word_embeddings, path);
  take(j, "is_decoder", c.is_decoder, path);
  take(j, "pad_token_id", c.pad_token_id, path);
}

void read_distilbert(const json& j, EncoderConfig& c, const std::string& path) {
  take(j, "vocab_size", c.vocab_size, path);
  take(j, "dim", c.hidden_size, path);
  take(j, "n_layers", c.num_hidden_layers, path);
  take(j, "n_heads", c.num_attention_heads, path);
  take(j, "hidden_dim", c.intermediate_size, path);
  take(j, "activation", c.hidden_act, path);
  take(j, "dropout", c.hidden_dropout_prob, path);
  take(j, "attention_dropout", c.attention_probs_dropout_prob, path);
  take(j, "max_position_embeddings", c.max_position_embeddings, path);
  take(j, "initializer_range", c.initializer_range, path);
  take(j, "tie_word_embeddings", c.tie_word_embeddings, path);
  take(j, "pad_token_id", c.pad_token_id, path);
  bool sinusoidal = false;
  take(j, "sinusoidal_pos_embds", sinusoidal, path);
  c.position_embeddings = sinusoidal ? "sinusoidal_start" : "learned";   // transformers 5 trains that table too
}

}  // namespace

HuggingFaceModel read_huggingface(const std::string& folder) {
  require<CheckpointError>(fs::is_directory(folder), folder, ": no such folder; name one that `save_pretrained` made");
  HuggingFaceModel model;
  const std::string path = folder + "/config.json";
  const auto j = read_json(path);
  std::string type = "bert", positions = "absolute", attention_type = "block_sparse";
  take(j, "model_type", type, path);
  model.config.model = model_of_type(type, path);
  auto& c = encoder_of(model.config.model);
  c.initializer = "normal", c.freeze_pad_embedding = true;
  if (c.vocab_size == 0) c.vocab_size = type == "albert" ? 30000 : type == "roberta" ? 50265 : 30522;
  if (writes_text(model.config.model)) read_decoder_config(j, model.config.model, path);
  else if (c.two_streams) read_xlnet_config(j, c, path);
  else if (type == "distilbert") read_distilbert(j, c, path);
  else read_encoder(j, c, path);
  if (auto* window = std::get_if<WindowAttention>(&c.attention); window && j.contains("attention_window")) {
    const auto& given = j["attention_window"];
    std::string list;
    for (const auto& one : given.is_array() ? given : json::array({given})) list += (list.empty() ? "" : ",") + one.dump();
    window->attention_window = list;
    window->global_tokens = "none";   // transformers has global tokens only where a mask names them
    const auto count = static_cast<int64_t>(windows_of(*window).size());
    require<ConfigError>(count == 1 || count == c.num_hidden_layers, path, ": attention_window names ", count, " windows for ", c.num_hidden_layers, " layers");
  }
  take(j, "embedding_size", c.embedding_size, path);
  take(j, "num_hidden_groups", c.num_hidden_groups, path);
  take(j, "inner_group_num", c.inner_group_num, path);
  if (j.contains("pad_token_id") && j["pad_token_id"].is_null() && !writes_text(model.config.model)) c.freeze_pad_embedding = false;
  bool cross = false, use_bias = true, rescale = false;
  take(j, "add_cross_attention", cross, path);
  take(j, "position_embedding_type", positions, path);
  take(j, "attention_type", attention_type, path);
  take(j, "use_bias", use_bias, path);
  take(j, "rescale_embeddings", rescale, path);
  require<ConfigError>(!cross, path, ": add_cross_attention is true; an encoder that reads another cannot be imported");
  require<ConfigError>(positions == "absolute", path, ": position_embedding_type is '", positions, "'; only 'absolute' can be imported");
  if (auto* blocks = std::get_if<BigBirdAttention>(&c.attention)) {
    take(j, "block_size", blocks->block_size, path);
    take(j, "num_random_blocks", blocks->num_random_blocks, path);
    require<ConfigError>(attention_type == "block_sparse" || attention_type == "original_full", path, ": attention_type is '", attention_type, "'; 'block_sparse' and 'original_full' can be imported");
    if (attention_type == "original_full") c.attention = FullAttention{};
    else log_info("import", "attention_type is block_sparse: random blocks are Cloze's own, so outputs differ from those of transformers, which has none in evaluation");
  }
  require<ConfigError>(use_bias && !rescale, path, ": use_bias: false and rescale_embeddings: true cannot be imported");
  require<ConfigError>(std::find(activation_names.begin(), activation_names.end(), c.hidden_act) != activation_names.end(), path, ": hidden_act is '", c.hidden_act, "', which is unknown",
                       did_you_mean(c.hidden_act, activation_names));
  require<ConfigError>(c.hidden_size > 0 && c.num_attention_heads > 0 && c.num_hidden_layers >= 0 && c.intermediate_size > 0 && c.vocab_size > 0 && c.max_position_embeddings > 0 && c.type_vocab_size >= 0 &&
                           c.embedding_size >= 0 && c.inner_group_num > 0 && c.num_hidden_groups >= 0 && c.pad_token_id >= 0,
                       path, ": a size is zero or negative; the file is damaged");

  model.tensors = read_tensors(folder);
  if (j.contains("architectures") && j["architectures"].is_array() && !j["architectures"].empty() && j["architectures"][0].is_string()) model.architecture = j["architectures"][0];
  // A bare model is saved without the name of the model in front.
  const auto prefix = huggingface_prefix(model.config.model);
  const bool bare = std::none_of(model.tensors.begin(), model.tensors.end(), [&](const auto& item) { return item.first.starts_with(prefix); });
  if (model.architecture.empty()) {
    const auto has = [&](const char* name) { return model.tensors.count(name) > 0; };
    Objectives guessed;
    // A tied head has no tensor of its own. T5 has no name in front that would tell; its table is the whole head.
    if (writes_text(model.config.model)) guessed = has("lm_head.weight") || (c.tie_word_embeddings && !bare) ? Objectives{ClmConfig{}} : Objectives{};
    else if (c.two_streams) guessed = has("lm_loss.bias") ? Objectives{PlmConfig{}} : Objectives{};
    else if (has("discriminator_predictions.dense.weight")) guessed = {RtdConfig{}};
    else if (has(huggingface_names(model.config.model, "mlm.head.transform.weight")[0].c_str())) guessed = {MlmConfig{}};
    if (has("cls.seq_relationship.weight")) guessed.push_back(NspConfig{});
    if (has("sop_classifier.classifier.weight")) guessed.push_back(SopConfig{});
    model.architecture = architecture_of(model.config.model, guessed);
  }
  model.config.objectives = objectives_of(model.architecture, path);
  if (bare) {
    std::map<std::string, at::Tensor> full;
    for (const auto& [name, tensor] : model.tensors) full.emplace(name.starts_with("embeddings.") || name.starts_with("encoder.") || name.starts_with("pooler.") || name.starts_with("transformer.") || name.starts_with("embeddings_project.") || c.two_streams || writes_text(model.config.model) ? prefix + name : name, tensor);
    model.tensors = std::move(full);
  }
  // T5's class says that its head is tied, even where the weights hold one of its own, which then counts.
  if (const auto head = model.tensors.find("lm_head.weight"), shared = model.tensors.find("shared.weight"); c.tie_word_embeddings && std::holds_alternative<T5Config>(model.config.model) && head != model.tensors.end() && shared != model.tensors.end())
    c.tie_word_embeddings = at::equal(head->second, shared->second);
  if (c.eos_token_id >= c.vocab_size) c.eos_token_id = -1;   // the class's own, of a vocabulary cut down: no text ends
  if (writes_text(model.config.model))
    for (const auto& [key, id] : {std::pair{"pad_token_id", c.pad_token_id}, {"decoder_start_token_id", c.decoder_start_token_id}, {"forced_bos_token_id", c.forced_bos_token_id}, {"forced_eos_token_id", c.forced_eos_token_id}})
      require<ConfigError>(id < c.vocab_size, path, ": ", key, " is ", id, ", the vocabulary has ", c.vocab_size, " tokens; the file is damaged");
  model.config.data.max_seq_length = std::max<int64_t>(5, std::min<int64_t>(c.longest_input(), 512));
  model.config.train.budget.steps = 1000;
  // The ranges of a config that a user writes hold for one that was read, and a run has nothing but what it writes down.
  model.config = decode<RunConfig>(ConfigTree::parse(to_yaml(model.config), path + ", as the run.yaml of Cloze"));
  return model;
}

Tensor as_theirs(const ModelConfig& model, const std::string& name, const Tensor& value) {
  if (encoder_of(model).two_streams) return xlnet_as_theirs(encoder_of(model), name, value);
  if (name == "lm.head.bias") return value.unsqueeze(0);
  return huggingface_transposed(model, name) && value.dim() == 2 ? value.t() : value;
}

void load_huggingface(const HuggingFaceModel& model, Network& network, std::vector<std::string>& ignored, std::vector<std::string>& fresh) {
  at::NoGradGuard no_grad;
  const auto& config = network.model_config();
  const auto& encoder = encoder_of(config);
  std::set<std::string> used;
  const auto params = collect_params(network);
  initialize(params, encoder.initializer_range, false, Rng(1));   // for what the file lacks
  for (const auto& [name, param] : params) {
    const auto names = huggingface_names(config, name);
    std::vector<at::Tensor> parts;
    for (auto theirs : names) {
      for (const auto& alias : huggingface_aliases(config, name))
        if (!model.tensors.count(theirs) && model.tensors.count(alias)) theirs = alias;
      const auto found = model.tensors.find(theirs);
      if (found == model.tensors.end()) continue;
      used.insert(theirs);
      const auto tensor = found->second.to(at::kFloat);
      parts.push_back(encoder.two_streams ? xlnet_as_ours(name, tensor) : huggingface_transposed(config, name) && tensor.dim() == 2 ? tensor.t() : name == "lm.head.bias" ? tensor.flatten() : tensor);
    }
    if (parts.empty()) {
      const bool may_lack = name == "lm.head.bias" || !name.starts_with("backbone.") || name.starts_with("backbone.pooler.") || param.fixed();
      require<CheckpointError>(may_lack, "the weights have no tensor '", names.empty() ? name : names[0], "'; they are not those of this config.json");
      if (!param.fixed()) fresh.push_back(name);
      continue;
    }
    const auto whole = parts.size() == 1 ? parts[0] : at::cat(parts);
    require<CheckpointError>(whole.sizes() == param.value().sizes(), "tensor '", names[0], "' has shape ", parts[0].sizes(), ", config.json needs ", param.value().sizes(), " for ", name);
    param.value().copy_(whole);
  }
  for (const auto& [name, param] : params)
    for (const auto& alias : huggingface_aliases(config, name)) {
      const auto found = model.tensors.find(alias);
      if (found == model.tensors.end() || used.count(alias)) continue;
      const bool equal = at::equal(found->second.to(at::kFloat), param.value()), one_table = alias.ends_with("embed_tokens.weight");
      require<CheckpointError>(equal || !one_table, alias, " differs from ", huggingface_names(config, name)[0], "; a model whose encoder and decoder have tables of their own cannot be imported");
      require<CheckpointError>(equal || !encoder.tie_word_embeddings, alias, " differs from ", huggingface_names(config, name)[0], ", but config.json says that they are tied; set tie_word_embeddings to false");
      if (!equal) param.value().copy_(found->second.to(at::kFloat));   // untied, the decoder's own bias counts
      used.insert(alias);
    }
  for (const auto& [name, tensor] : model.tensors)
    if (!used.count(name) && name.find("position_ids") == std::string::npos) ignored.push_back(name);
}

json huggingface_config(const RunConfig& config) {
  const auto& c = encoder_of(config.model);
  const auto kind = kind_of(config.model);
  if (writes_text(config.model)) {
    auto j = decoder_config(config.model);
    // Whether a T5 scales its states is told there by its name and by what is tied: T5 does where its head is tied, mT5 never.
    const bool mt5 = kind == "t5" && c.tie_word_embeddings && !c.scale_decoder_outputs;
    require<ConfigError>(kind != "t5" || c.tie_word_embeddings || !c.scale_decoder_outputs, "model.scale_decoder_outputs true with tie_word_embeddings false has no class at Hugging Face; export to torchscript");
    j["architectures"] = {(mt5 ? "M" : "") + architecture_of(config.model, config.objectives)}, j["model_type"] = mt5 ? "mt5" : kind;
    return j;
  }
  if (c.two_streams) {
    auto j = xlnet_config(c);
    j["architectures"] = {architecture_of(config.model, config.objectives)}, j["model_type"] = kind;
    return j;
  }
  json j{{"architectures", {architecture_of(config.model, config.objectives)}}, {"model_type", kind == "bigbird" ? "big_bird" : kind}, {"vocab_size", c.vocab_size}, {"max_position_embeddings", c.max_position_embeddings},
         {"initializer_range", c.initializer_range}, {"pad_token_id", c.pad_token_id}, {"tie_word_embeddings", c.tie_word_embeddings}, {"dtype", "float32"}};
  if (kind == "distilbert") {
    j.update({{"dim", c.hidden_size}, {"n_layers", c.num_hidden_layers}, {"n_heads", c.num_attention_heads}, {"hidden_dim", c.intermediate_size}, {"activation", c.hidden_act},
              {"dropout", c.hidden_dropout_prob}, {"attention_dropout", c.attention_probs_dropout_prob}, {"sinusoidal_pos_embds", c.position_embeddings != "learned"}});
    return j;
  }
  j.update({{"hidden_size", c.hidden_size}, {"num_hidden_layers", c.num_hidden_layers}, {"num_attention_heads", c.num_attention_heads}, {"intermediate_size", c.intermediate_size},
            {"hidden_act", c.hidden_act}, {"hidden_dropout_prob", c.hidden_dropout_prob}, {"attention_probs_dropout_prob", c.attention_probs_dropout_prob}, {"type_vocab_size", c.type_vocab_size},
            {"layer_norm_eps", c.layer_norm_eps}, {"is_decoder", c.is_decoder}});
  if (const auto* window = std::get_if<WindowAttention>(&c.attention)) {
    auto windows = windows_of(*window);
    if (windows.size() == 1) windows.assign(static_cast<size_t>(c.num_hidden_layers), windows[0]);
    j["attention_window"] = windows;
  }
  if (kind == "bigbird") {
    const auto* blocks = std::get_if<BigBirdAttention>(&c.attention);
    j["attention_type"] = blocks ? "block_sparse" : "original_full";
    if (blocks) j.update({{"block_size", blocks->block_size}, {"num_random_blocks", blocks->num_random_blocks}});
  }
  if (c.embedding_size > 0) j["embedding_size"] = c.embedding_size;
  if (kind == "albert") j.update({{"num_hidden_groups", c.num_hidden_groups}, {"inner_group_num", c.inner_group_num}});
  return j;
}

namespace {

/// The class of a kind that writes is the kind as it stands, but for its sizes.
void require_decoder_class(const RunConfig& config) {
  const auto& c = encoder_of(config.model);
  const auto kind = kind_of(config.model);
  require<ConfigError>(kind != "transformer", "transformer has no class at Hugging Face; export to torchscript");
  const auto plain = std::visit([](const auto& m) -> EncoderConfig { return std::decay_t<decltype(m)>{}; }, config.model);
  for (const auto& [option, value, usual] : {std::tuple<const char*, std::string, std::string>{"norm_place", c.norm_place, plain.norm_place}, {"norm_kind", c.norm_kind, plain.norm_kind},
                                             {"position_embeddings", c.position_embeddings, plain.position_embeddings}, {"relative_positions", std::to_string(c.relative_positions), "0"},
                                             {"feed_forward", c.feed_forward, kind == "t5" ? c.feed_forward : "plain"}, {"is_decoder", c.is_decoder ? "true" : "false", plain.is_decoder ? "true" : "false"}, {"prefix_lm", c.prefix_lm ? "true" : "false", "false"}})
    require<ConfigError>(value == usual, "model.", option, " ", value, " has no class at Hugging Face for ", kind, "; export to torchscript");
  require<ConfigError>(std::holds_alternative<FullAttention>(c.attention), "model.attention of another kind than full has no class at Hugging Face for ", kind, "; export to torchscript");
}

}  // namespace

void require_huggingface(const RunConfig& config) {
  const auto& c = encoder_of(config.model);
  if (writes_text(config.model)) return require_decoder_class(config);
  require<ConfigError>(c.num_hidden_groups == 0 || c.share == "all" || c.num_hidden_groups == c.num_hidden_layers, "model.share '", c.share, "' has no class at Hugging Face, which shares whole layers; export to torchscript");
  if (c.two_streams) return;
  require<ConfigError>(c.position_embeddings == "learned" || std::holds_alternative<DistilBertConfig>(config.model), "model.position_embeddings '", c.position_embeddings, "' has a class at Hugging Face only for distilbert; export to torchscript");
  const auto model = kind_of(config.model);
  const std::string attention = std::visit([](const auto& a) { return a.kind; }, c.attention);
  require<ConfigError>(model != "performer", "performer has no class at Hugging Face; export to torchscript");
  require<ConfigError>(model == "longformer" ? attention == "window" : attention == "full" || (model == "bigbird" && attention == "bigbird"), "model.attention of kind ", attention, " has no class at Hugging Face for ", model, "; export to torchscript");
  if (const auto* window = std::get_if<WindowAttention>(&c.attention)) {
    const auto steps = dilations_of(*window);
    require<ConfigError>(std::all_of(steps.begin(), steps.end(), [](int64_t d) { return d == 1; }), "model.attention.attention_dilation ", window->attention_dilation, " has no class at Hugging Face, whose windows are not dilated; export to torchscript");
  }
  for (const auto& [option, value, plain] : {std::tuple<const char*, std::string, const char*>{"norm_place", c.norm_place, "post"}, {"norm_kind", c.norm_kind, "layer"}, {"feed_forward", c.feed_forward, "plain"}, {"relative_positions", std::to_string(c.relative_positions), "0"}, {"prefix_lm", c.prefix_lm ? "true" : "false", "false"}})
    require<ConfigError>(value == plain, "model.", option, " ", value, " has no class at Hugging Face for ", model, "; export to torchscript");
  for (const auto& o : config.objectives) {
    const bool sop = std::holds_alternative<SopConfig>(o), nsp = std::holds_alternative<NspConfig>(o), rtd = std::holds_alternative<RtdConfig>(o);
    require<ConfigError>((!sop || model == "albert") && (!nsp || model == "bert" || model == "bigbird") && (!rtd || model == "electra"), "Hugging Face has no class of ", model, " with the head of ", sop ? "sop" : nsp ? "nsp" : "rtd", "; export to torchscript");
  }
}

ImportReport import_huggingface(const std::string& folder, const std::string& run) {
  require<ConfigError>(!fs::exists(run), run, ": exists; name another --out");
  auto model = read_huggingface(folder);
  const auto network = std::make_shared<Network>(model.config.model, model.config.objectives);
  ImportReport report;
  report.architecture = model.architecture;
  load_huggingface(model, *network, report.ignored, report.fresh);
  report.tensors = static_cast<int64_t>(model.tensors.size());
  const auto params = collect_params(*network);
  for (const auto& p : params) report.parameters += p.param.value().numel();
  StagedFolder staged(run);
  bool has_tokenizer = false;
  for (const auto* file : {"vocab.txt", "spiece.model", "tokenizer.model", "vocab.json", "tokenizer.json"}) has_tokenizer = has_tokenizer || fs::exists(folder + "/" + file);
  if (has_tokenizer) {
    const auto tokenizer = Tokenizer::open(folder);
    require<CheckpointError>(tokenizer.size() <= encoder_of(model.config.model).vocab_size, folder, ": the tokenizer has ", tokenizer.size(), " pieces, the model ",
                             encoder_of(model.config.model).vocab_size, " rows; they do not belong together");
    tokenizer.save(staged.path() + "/tokenizer");
  } else {
    log_info("import", folder + " has no tokenizer (vocab.txt, spiece.model, vocab.json, tokenizer.json): the run reads ids, not text");
  }
  write_atomic(staged.path() + "/run.yaml", to_yaml(model.config));
  write_atomic(staged.path() + "/provenance.json", json{{"imported_from", folder}, {"architecture", model.architecture}, {"cloze", CLOZE_VERSION}}.dump(2) + "\n");
  save_checkpoint(staged.path(), {}, params, {});
  staged.commit();
  return report;
}

namespace {

/// What stands around the texts that the model reads: those of an encoder alone have [CLS] and [SEP].
std::optional<Tokenizer::Frame> frame_of(const EncoderConfig& model, const SpecialIds& special) {
  if (model.two_streams) return Tokenizer::Frame{.before = {}, .after = {special.sep, special.cls}, .pads_left = true};
  if (model.is_encoder_decoder) return Tokenizer::Frame{.before = model.texts_begin ? std::vector<int64_t>{special.cls} : std::vector<int64_t>{}, .after = model.eos_token_id >= 0 ? std::vector<int64_t>{model.eos_token_id} : std::vector<int64_t>{}};
  if (model.is_decoder) return Tokenizer::Frame{};
  return std::nullopt;
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
    if (theirs.empty()) continue;   // a generator beside the discriminator
    const auto parts = as_theirs(opened.config.model, name, param.value().detach()).chunk(static_cast<int64_t>(theirs.size()));
    for (size_t i = 0; i < theirs.size(); ++i) tensors.push_back({bare ? theirs[i].substr(prefix.size()) : theirs[i], parts[i].contiguous()});
    if (name == "mlm.head.bias" && !encoder_of(opened.config.model).tie_word_embeddings)
      for (const auto& alias : huggingface_aliases(opened.config.model, name)) tensors.push_back({alias, param.value().detach()});
  }
  StagedFolder staged(out);
  const auto& model = encoder_of(opened.config.model);
  auto config = huggingface_config(opened.config);
  if (opened.has_tokenizer && model.texts_begin) config["bos_token_id"] = opened.tokenizer.special().cls;
  if (model.bi_data) log_info("export", "bi_data is of training and goes out as false: with it the class there reads the second half of every batch backwards");
  write_atomic(staged.path() + "/config.json", config.dump(2) + "\n");
  save_safetensors(staged.path() + "/model.safetensors", tensors);
  if (opened.has_tokenizer) opened.tokenizer.save(staged.path(), frame_of(model, opened.tokenizer.special()));
  staged.commit();
}

}  // namespace cloze

#include "train/huggingface.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "core/file.h"
#include "core/log.h"
#include "core/tensor/safetensors.h"
#include "train/interchange.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// Cloze's words and Hugging Face's, longest first where one is part of another.
struct Pair {
  std::string_view ours, theirs;
};
constexpr std::array<Pair, 9> outside = {{{"backbone.embeddings.word", "bert.embeddings.word_embeddings.weight"},
                                          {"backbone.embeddings.position", "bert.embeddings.position_embeddings.weight"},
                                          {"backbone.embeddings.token_type", "bert.embeddings.token_type_embeddings.weight"},
                                          {"backbone.embeddings.norm.", "bert.embeddings.LayerNorm."},
                                          {"backbone.pooler.", "bert.pooler.dense."},
                                          {"mlm.head.transform.", "cls.predictions.transform.dense."},
                                          {"mlm.head.norm.", "cls.predictions.transform.LayerNorm."},
                                          {"mlm.head.decoder", "cls.predictions.decoder.weight"},
                                          {"nsp.head.", "cls.seq_relationship."}}};
constexpr std::array<Pair, 5> inside = {{{"attention.output.", "attention.output.dense."},
                                         {"attention_norm.", "attention.output.LayerNorm."},
                                         {"output_norm.", "output.LayerNorm."},
                                         {"intermediate.", "intermediate.dense."},
                                         {"output.", "output.dense."}}};

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

json read_json(const std::string& path) {
  require<CheckpointError>(fs::exists(path), path, ": no such file; name a folder that `save_pretrained` made");
  const auto content = json::parse(read_text(path, 64 << 20), nullptr, false);
  require<CheckpointError>(content.is_object(), path, ": is not a JSON object; the file is damaged");
  return content;
}

template <class T>
void take(const json& from, const char* key, T& field, const std::string& path) {
  const auto found = from.find(key);
  if (found == from.end() || found->is_null()) return;
  try {
    field = found->get<T>();
  } catch (const json::exception&) {
    fail<ConfigError>(path, ": '", key, "' is ", found->dump(), ", which is not of the right type");
  }
}

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
  // A bare encoder is saved without the name of the model in front.
  const bool prefixed = std::any_of(found.begin(), found.end(), [](const auto& item) { return starts_with(item.first, "bert."); });
  if (prefixed) return found;
  std::map<std::string, at::Tensor> renamed;
  for (const auto& [name, tensor] : found) renamed.emplace(starts_with(name, "cls.") ? name : "bert." + name, tensor);
  return renamed;
}

}  // namespace

std::vector<std::string> huggingface_names(const std::string& name, bool tied) {
  if (name == "mlm.head.bias") return {tied ? "cls.predictions.bias" : "cls.predictions.decoder.bias"};
  if (starts_with(name, "backbone.stack.")) {
    const auto dot = name.find('.', 15);
    const std::string layer = "bert.encoder.layer." + name.substr(15, dot - 15) + ".", rest = name.substr(dot + 1);
    if (starts_with(rest, "attention.qkv.")) {
      std::vector<std::string> three;
      for (const auto* part : {"query.", "key.", "value."}) three.push_back(layer + "attention.self." + part + rest.substr(14));
      return three;
    }
    for (const auto& pair : inside)
      if (starts_with(rest, pair.ours)) return {layer + std::string(pair.theirs) + rest.substr(pair.ours.size())};
  }
  for (const auto& pair : outside)
    if (starts_with(name, pair.ours)) return {std::string(pair.theirs) + name.substr(pair.ours.size())};
  fail<CheckpointError>("parameter '", name, "' has no name at Hugging Face");
}

HuggingFaceModel read_huggingface(const std::string& folder) {
  require<CheckpointError>(fs::is_directory(folder), folder, ": no such folder; name one that `save_pretrained` made");
  HuggingFaceModel model;
  const std::string path = folder + "/config.json";
  const auto j = read_json(path);
  std::string type = "bert", positions = "absolute";
  take(j, "model_type", type, path);
  require<ConfigError>(type == "bert", path, ": model_type is '", type, "'; this version imports 'bert'");
  if (j.contains("architectures") && j["architectures"].is_array() && !j["architectures"].empty() && j["architectures"][0].is_string()) model.architecture = j["architectures"][0];
  model.tensors = read_tensors(folder);
  if (model.architecture.empty())
    model.architecture = model.tensors.count("cls.seq_relationship.weight") ? "BertForPreTraining" : model.tensors.count("cls.predictions.transform.dense.weight") ? "BertForMaskedLM" : "BertModel";
  BertConfig c;
  c.hidden_act = "gelu", c.initializer = "normal", c.freeze_pad_embedding = true, c.vocab_size = 30522;
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
  take(j, "position_embedding_type", positions, path);
  if (j.contains("pad_token_id") && j["pad_token_id"].is_null()) c.freeze_pad_embedding = false;
  take(j, "pad_token_id", c.pad_token_id, path);
  bool cross = false;
  take(j, "add_cross_attention", cross, path);
  require<ConfigError>(!cross, path, ": add_cross_attention is true; a BERT that reads an encoder cannot be imported");
  require<ConfigError>(positions == "absolute", path, ": position_embedding_type is '", positions, "'; only 'absolute' can be imported");
  require<ConfigError>(std::find(activation_names.begin(), activation_names.end(), c.hidden_act) != activation_names.end(), path, ": hidden_act is '", c.hidden_act, "', which is unknown",
                       did_you_mean(c.hidden_act, activation_names));
  model.config.model = c;
  // The ranges and rules of a config that a user writes hold for one that was read.
  model.config.data.max_seq_length = std::max<int64_t>(5, std::min<int64_t>(c.max_position_embeddings, 512));
  if (model.architecture == "BertForPreTraining") model.config.objectives = {MlmConfig{}, NspConfig{}};
  else if (model.architecture == "BertForMaskedLM") model.config.objectives = {MlmConfig{}};
  else if (model.architecture == "BertModel") model.config.objectives = {};
  else fail<ConfigError>(path, ": architecture '", model.architecture, "' cannot be imported; BertForPreTraining, BertForMaskedLM and BertModel can");
  model.config.train.budget.steps = 1000;
  return model;
}

void load_huggingface(const HuggingFaceModel& model, Network& network, std::vector<std::string>& ignored, std::vector<std::string>& fresh) {
  at::NoGradGuard no_grad;
  const auto& bert = std::get<BertConfig>(network.model_config());
  const bool tied = bert.tie_word_embeddings;
  std::set<std::string> used;
  const auto params = collect_params(network);
  initialize(params, bert.initializer_range, false, Rng(1));   // for heads that the file lacks
  for (const auto& [name, param] : params) {
    std::vector<at::Tensor> parts;
    for (auto theirs : huggingface_names(name, tied)) {
      if (!model.tensors.count(theirs) && theirs == "cls.predictions.decoder.bias") theirs = "cls.predictions.bias";
      const auto found = model.tensors.find(theirs);
      if (found == model.tensors.end()) continue;
      used.insert(theirs);
      parts.push_back(found->second.to(at::kFloat));
    }
    if (parts.empty()) {
      require<CheckpointError>(starts_with(name, "mlm.") || starts_with(name, "nsp.") || starts_with(name, "backbone.pooler."), "the weights have no tensor '", huggingface_names(name, tied)[0],
                               "'; they are not those of this config.json");
      fresh.push_back(name);
      continue;
    }
    const auto whole = parts.size() == 1 ? parts[0] : at::cat(parts);
    require<CheckpointError>(whole.sizes() == param.value().sizes(), "tensor '", huggingface_names(name, tied)[0], "' has shape ", parts[0].sizes(), ", config.json needs ", param.value().sizes(), " for ", name);
    param.value().copy_(whole);
  }
  for (const auto& [name, tensor] : model.tensors) {
    if (used.count(name) || name.find("position_ids") != std::string::npos) continue;
    if (tied && name == "cls.predictions.decoder.weight") {
      require<CheckpointError>(at::equal(tensor.to(at::kFloat), network.backbone->token_embedding().value()), "cls.predictions.decoder.weight differs from the token embedding, but config.json says that they are tied; set tie_word_embeddings to false");
      continue;
    }
    if (tied && name == "cls.predictions.decoder.bias") continue;
    if (!tied && name == "cls.predictions.bias") continue;   // unused there: the decoder has a bias of its own
    ignored.push_back(name);
  }
}

json huggingface_config(const RunConfig& config) {
  const auto& c = std::get<BertConfig>(config.model);
  bool mlm = false, nsp = false;
  for (const auto& o : config.objectives) (std::holds_alternative<MlmConfig>(o) ? mlm : nsp) = true;
  return {{"architectures", {nsp ? "BertForPreTraining" : mlm ? "BertForMaskedLM" : "BertModel"}},
          {"model_type", "bert"}, {"vocab_size", c.vocab_size}, {"hidden_size", c.hidden_size}, {"num_hidden_layers", c.num_hidden_layers}, {"num_attention_heads", c.num_attention_heads},
          {"intermediate_size", c.intermediate_size}, {"hidden_act", c.hidden_act}, {"hidden_dropout_prob", c.hidden_dropout_prob}, {"attention_probs_dropout_prob", c.attention_probs_dropout_prob},
          {"max_position_embeddings", c.max_position_embeddings}, {"type_vocab_size", c.type_vocab_size}, {"initializer_range", c.initializer_range}, {"layer_norm_eps", c.layer_norm_eps},
          {"pad_token_id", c.pad_token_id}, {"tie_word_embeddings", c.tie_word_embeddings}, {"is_decoder", c.is_decoder}, {"dtype", "float32"}};
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
    require<CheckpointError>(tokenizer.size() <= std::get<BertConfig>(model.config.model).vocab_size, folder, ": the tokenizer has ", tokenizer.size(), " pieces, the model ",
                             std::get<BertConfig>(model.config.model).vocab_size, " rows; they do not belong together");
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

void export_huggingface(const std::string& run, const std::string& out) {
  require<ConfigError>(!fs::exists(out) || (fs::is_directory(out) && fs::is_empty(out)), out, ": exists; name another --out");
  const auto opened = open_run(run);
  const bool tied = std::get<BertConfig>(opened.config.model).tie_word_embeddings, bare = opened.config.objectives.empty();
  std::vector<NamedTensor> tensors;
  for (const auto& [name, param] : collect_params(*opened.network)) {
    const auto theirs = huggingface_names(name, tied);
    const auto parts = param.value().detach().chunk(static_cast<int64_t>(theirs.size()));
    for (size_t i = 0; i < theirs.size(); ++i) tensors.push_back({bare ? theirs[i].substr(5) : theirs[i], parts[i]});
    if (name == "mlm.head.bias" && !tied) tensors.push_back({"cls.predictions.bias", param.value().detach()});
  }
  StagedFolder staged(out);
  write_atomic(staged.path() + "/config.json", huggingface_config(opened.config).dump(2) + "\n");
  save_safetensors(staged.path() + "/model.safetensors", tensors);
  if (opened.has_tokenizer) opened.tokenizer.save(staged.path());
  staged.commit();
}

}  // namespace cloze

// Reads a Hugging Face folder.
#include <algorithm>
#include <filesystem>

#include "core/log.h"
#include "interchange/huggingface.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface_classes.h"
#include "interchange/huggingface_config.h"
#include "interchange/huggingface_tasks.h"
#include "interchange/huggingface_weights.h"
#include "run/config/load_config.h"

namespace cloze {

using nlohmann::json;

namespace {

/// The token embedding tables of a file; undefined: it has no such table.
struct Tables {
  at::Tensor shared, encoder, decoder, head;
};

/// Takes the tables out of `tensors`; a missing one of encoder or decoder is the shared one.
Tables take_tables(const std::vector<std::string>& names, TensorMap& tensors) {
  const auto table = [&](const std::string& name) {
    const auto tensor = tensors.find(name);
    if (tensor == tensors.end()) return at::Tensor();
    require_weights(name, tensor->second);
    return tensor->second.to(at::kFloat);
  };
  Tables tables{.shared = table(names[0]), .encoder = {}, .decoder = {}, .head = table(names.back())};
  for (size_t i = 1; i < names.size() && !tables.shared.defined(); ++i) tables.shared = table(names[i]);
  if (!tables.shared.defined()) return tables;
  const auto or_shared = [&](const std::string& name) { return table(name).defined() ? table(name) : tables.shared; };
  tables.encoder = or_shared(names[names.size() > 2 ? 1 : 0]);
  tables.decoder = or_shared(names[names.size() - 2]);
  for (const auto& name : names) tensors.erase(name);
  return tables;
}

/// Decides which token embedding tables are tied. A table missing from the file is tied as in its class; tables that
/// differ are not tied, whatever config.json says. Keeps in `tensors` those that the network has. Source: tie_weights
/// of transformers 5, modeling_utils.py.
void tie_tables(ModelConfig& model, TensorMap& tensors) {
  auto& c = transformer_of(model);
  const auto names = token_tables(model);
  auto tables = take_tables(names, tensors);
  if (!tables.shared.defined()) return;
  const bool one_table = at::equal(tables.encoder, tables.decoder);
  if (auto* both = as<EncoderDecoderConfig>(model)) both->shared_embeddings = one_table;
  const bool always_tied = huggingface::family_of(model).always_tied;
  if (!tables.head.defined() && (c.tie_word_embeddings || always_tied)) {
    tables.head = tables.shared;
    c.tie_word_embeddings = true;
  }
  const bool same = tables.head.defined() && at::equal(tables.head, tables.decoder);
  if (tables.head.defined() && !same && c.tie_word_embeddings && !always_tied)
    log_warning("import",
                concat(names.back(), " differs from ", names[0], ", although config.json ties them; both are kept"));
  if (tables.head.defined()) c.tie_word_embeddings = c.tie_word_embeddings && same;
  tensors[huggingface_names(model, "backbone.embeddings.word")[0]] = tables.encoder;
  if (!one_table) tensors[huggingface_names(model, "backbone.decoder_embeddings.word")[0]] = tables.decoder;
  if (tables.head.defined() && !c.tie_word_embeddings) tensors[names.back()] = tables.head;
}

/// Prefixes of heads, whose names lack the prefix of the base model.
const std::vector<std::string> head_prefixes{
    "cls.",   "lm_head.", "predictions.",     "sop_classifier.", "generator_", "discriminator_predictions.",
    "vocab_", "lm_loss.", "final_logits_bias"};

/// A base model is saved without the prefix of its names.
bool is_bare(const TensorMap& tensors, const std::string& prefix) {
  return std::none_of(tensors.begin(), tensors.end(), [&](const auto& item) { return item.first.starts_with(prefix); });
}

/// The tensors of a base model, or what is known of them, by the names that they have in a class with heads.
template <class Value>
std::map<std::string, Value> with_prefix(const std::map<std::string, Value>& tensors, const std::string& prefix) {
  std::map<std::string, Value> full;
  for (const auto& [name, value] : tensors) {
    const bool of_head = std::any_of(head_prefixes.begin(), head_prefixes.end(),
                                     [&, &own = name](const auto& head) { return own.starts_with(head); });
    full.emplace(of_head ? name : prefix + name, value);
  }
  return full;
}

/// The same without the prefix that the base model has in its class.
template <class Value>
std::map<std::string, Value> in_model(const std::map<std::string, Value>& tensors, const std::string& prefix) {
  std::map<std::string, Value> own;
  for (const auto& [name, value] : tensors) own.emplace(name_in_model(name, prefix), value);
  return own;
}

/// Throws ConfigError for a token id outside the vocabulary.
void check_ids(const ModelConfig& model, const std::string& path) {
  if (!huggingface::family_of(model).is_generative()) return;
  const auto& c = transformer_of(model);
  const auto decoding = decoding_ids_of(model);
  for (const auto& [key, id] : {std::pair{"pad_token_id", c.pad_token_id},
                                {"decoder_start_token_id", decoding.decoder_start_token_id},
                                {"forced_bos_token_id", decoding.forced_bos_token_id},
                                {"forced_eos_token_id", decoding.forced_eos_token_id}})
    require<ConfigError>(id < c.vocab_size, path, ": ", key, " is ", id, ", but the vocabulary has ", c.vocab_size,
                         " tokens; the file is damaged");
}

}  // namespace

HuggingFaceModel read_huggingface(const std::string& folder) {
  require<CheckpointError>(std::filesystem::is_directory(folder), folder,
                           ": no such folder; name one that `save_pretrained` made");
  HuggingFaceModel model;
  const std::string path = folder + "/config.json";
  const auto j = read_json(path);
  auto& config = model.config.model;
  config = read_model(j, path);
  const auto& c = transformer_of(config);
  auto stored = read_weights(folder);
  model.tensors = std::move(stored.tensors);
  const auto prefix = huggingface_prefix(config);
  const bool bare = is_bare(model.tensors, prefix);
  model.architecture = huggingface::named_class(j);
  if (model.architecture.empty()) model.architecture = class_of_weights(config, model.tensors, bare);
  model.config.objectives = objectives_of_class(model.architecture, config, path);
  read_task_head(j, huggingface::family_of(config), model.config, path);
  if (const auto of_class = prefix_of_class(model.config); !of_class.empty()) {
    model.tensors = in_model(model.tensors, of_class);
    stored.absent = in_model(stored.absent, of_class);
  }
  if (bare) model.tensors = with_prefix(model.tensors, prefix);
  model.absent = bare ? with_prefix(stored.absent, prefix) : std::move(stored.absent);
  tie_tables(config, model.tensors);
  split_wholes(config, model.tensors);
  if (auto* keeps = pooler_option(config))  // a class with heads may have a pooler that none of them uses
    *keeps = !model.config.objectives.empty() && model.tensors.count(prefix + "pooler.weight") > 0;
  check_ids(config, path);
  model.config.data.max_seq_length = std::max<int64_t>(5, std::min<int64_t>(c.max_input_length(), 512));
  model.config.train.budget.steps = 1000;
  // The config goes through YAML: it must satisfy the ranges of any config, and no fact may be lost in run.yaml.
  model.config = decode<RunConfig>(ConfigTree::parse(to_yaml(model.config), path + ", as run.yaml"));
  return model;
}

}  // namespace cloze

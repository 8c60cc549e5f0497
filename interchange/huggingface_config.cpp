#include "interchange/huggingface_config.h"

#include <algorithm>
#include <filesystem>

#include "core/json.h"
#include "core/log.h"
#include "interchange/huggingface/family.h"

namespace cloze {

using huggingface::Family;
using nlohmann::json;

namespace {

/// Reads ids of generation_config.json: forced ids take precedence over config.json, other ids only fill gaps.
void read_generation_ids(const json& config, const Family& family, ModelConfig& model, const std::string& config_path) {
  const auto path = std::filesystem::path(config_path).replace_filename("generation_config.json").string();
  if (!std::filesystem::exists(path)) return;
  const auto j = read_json(path);
  for (const auto& key : family.table.keys) {
    const bool forced = key.name.starts_with("forced_"),
               open = key.name == "eos_token_id" || key.name == "pad_token_id" || key.name == "decoder_start_token_id";
    if (!j.contains(key.name) || (!forced && !open)) continue;
    const auto& value = j[key.name];
    const bool has_key = config.contains(key.name) && !config[key.name].is_null();
    if (forced || (!has_key && !value.is_null()))
      key.read(model, {value.is_array() && value.size() == 1 ? value[0] : value, j, key.name, path});
    else if (has_key && !value.is_null() && value != config[key.name])
      log_warning("import", concat(path, ": '", key.name, "' is ", json_text(value), ", but ",
                                   json_text(config[key.name]), " in config.json, which is used"));
  }
}

/// Reads ids that Cloze takes from the tokenizer; without one, they are exported again with the model.
void read_text_ids(const json& j, const Family& family, BackboneConfig& c, const std::string& path) {
  const auto id_or_none = [&](const char* key) -> int64_t {
    const auto value = j.contains(key) ? j[key] : family.text_ids.value(key, json());
    if (!value.is_number_integer()) return -1;
    const auto id = value.get<int64_t>();
    require<ConfigError>(id >= -1, path, ": ", key, " is ", id, ", must be an id, or null for none");
    return id;
  };
  const bool has_eos_key = std::any_of(family.table.keys.begin(), family.table.keys.end(),
                                       [](const auto& key) { return key.name == "eos_token_id"; });
  c.bos_token_id = id_or_none("bos_token_id");
  if (!has_eos_key) c.eos_token_id = id_or_none("eos_token_id");
  // A default of the class beyond a reduced vocabulary is unused.
  if (c.bos_token_id >= c.vocab_size) c.bos_token_id = -1;
  if (c.eos_token_id >= c.vocab_size) c.eos_token_id = -1;
}

}  // namespace

std::string model_type_of(const json& config, const std::string& path) {
  std::string type;
  take(config, "model_type", type, path);
  const auto name = huggingface::named_class(config);
  if (!type.empty()) return type;
  if (name.empty()) return "bert";
  const auto& all = huggingface::families();
  const auto family =
      std::find_if(all.begin(), all.end(), [&](const auto& f) { return name.starts_with(f.class_prefix); });
  require<ConfigError>(family != all.end(), path, ": has no model_type, and '", name,
                       "' is no class that this version imports; write the model_type of the class into the file");
  return family->model_type;
}

ModelConfig read_model(const json& j, const std::string& path) {
  const auto name = model_type_of(j, path);
  if (!j.contains("model_type") || j["model_type"].is_null())
    log_warning("import", concat(path, ": has no model_type, and is read as that of a model of the type '", name,
                                 "'; if it is another one, write its model_type into the file"));
  const auto& family = huggingface::family_named(name, path);
  ModelConfig model = family.table.model;
  auto& c = transformer_of(model);
  c.initializer = Initializer::normal;
  c.freeze_pad_embedding = false;
  for (const auto& key : family.table.keys) {
    const auto value = j.find(key.name);
    const bool has_key = value != j.end() && (key.may_be_null || !value->is_null());
    key.read(model, {has_key ? *value : key.absent, j, key.name, path});
  }
  read_generation_ids(j, family, model, path);
  read_text_ids(j, family, c, path);
  return model;
}

json model_json(const ModelConfig& model) { return model_json(model, huggingface::family_of(model)); }

json model_json(const ModelConfig& model, const Family& family) {
  json j{{"model_type", family.model_type}};
  for (const auto& key : family.table.keys)
    if (auto value = key.write(model); !value.is_discarded()) j[key.name] = std::move(value);
  return j;
}

std::string config_text(const json& config) {
  nlohmann::ordered_json ordered = config;
  if (const auto labels = config.find("id2label"); labels != config.end() && labels->is_object()) {
    std::vector<std::string> ids;
    for (const auto& [id, name] : labels->items()) ids.push_back(id);
    std::ranges::stable_sort(ids, {}, [](const auto& id) { return id.size(); });  // those of one length are in order
    auto names = nlohmann::ordered_json::object();
    for (const auto& id : ids) names[id] = labels->at(id);
    ordered["id2label"] = names;
  }
  return json_text(ordered, 2) + "\n";
}

}  // namespace cloze

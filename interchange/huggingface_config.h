#pragma once
// config.json of Hugging Face, read and written by the tables of interchange/huggingface/.
#include <nlohmann/json_fwd.hpp>

#include "interchange/huggingface/json_file.h"
#include "models/families/model_config.h"

namespace cloze {

namespace huggingface {
struct Family;
}

/// The `model_type` of a config.json; without one, the type of the class that it names, and BERT's for a file that
/// names no class either, as those of the first years do. Throws ConfigError for the name of an unknown class.
std::string model_type_of(const nlohmann::json& config, const std::string& path);

/// The model that a config.json describes; absent keys take the default of their class in transformers. `path` is that
/// of the file; a generation_config.json in the same folder is read too. Throws ConfigError naming path, key and value.
ModelConfig read_model(const nlohmann::json& config, const std::string& path);

/// The config.json of a model: all keys of its table, and `model_type`.
nlohmann::json model_json(const ModelConfig& model);
/// The same by the table of another type with the classes of the model's family.
nlohmann::json model_json(const ModelConfig& model, const huggingface::Family& family);

/// The text of a config.json. id2label stands in the order of the ids, as transformers writes it: programs take its
/// values for the order of the logits.
std::string config_text(const nlohmann::json& config);

}  // namespace cloze

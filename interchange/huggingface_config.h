#pragma once
// config.json of Hugging Face: one table of keys per model_type, for reading and writing.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/families/model_config.h"

namespace cloze {

/// The JSON object in a file. Throws CheckpointError for anything else.
nlohmann::json read_json(const std::string& path);

/// The model that a config.json describes; absent keys take the default of their class in transformers. `path` is that
/// of the file; a generation_config.json in the same folder is read too. Throws ConfigError naming path, key and value.
ModelConfig read_model(const nlohmann::json& config, const std::string& path);

/// The config.json of a model: all keys of its table, and `model_type`.
nlohmann::json model_json(const ModelConfig& model);

/// The prefix of the class names of a model: `Bert`, `MT5`.
std::string class_prefix(const ModelConfig& model);

/// Reduces an encoder-decoder model to one stack: the decoder (BartForCausalLM) or the encoder (T5EncoderModel).
void keep_decoder(EncoderDecoderConfig& model);
void keep_encoder(EncoderDecoderConfig& model);

/// Reads a field if it is present and not null; `path` is that of the file. Throws ConfigError for a value of another
/// type, and for an integer beyond any model size.
template <class T>
void take(const nlohmann::json& from, const char* key, T& field, const std::string& path) {
  const auto found = from.find(key);
  if (found == from.end() || found->is_null()) return;
  const bool fraction = found->is_number_float() && std::nearbyint(found->get<double>()) != found->get<double>();
  if constexpr (std::is_same_v<T, int64_t>) {
    require<ConfigError>(!fraction, path, ": '", key, "' is ", found->dump(), ", which is not an integer");
    require<ConfigError>(!found->is_number() || std::abs(found->get<double>()) <= limits::tokens, path, ": '", key,
                         "' is ", found->dump(), ", which is beyond any model; the file is damaged");
  }
  try {
    field = found->get<T>();
  } catch (const nlohmann::json::exception&) {
    fail<ConfigError>(path, ": '", key, "' is ", found->dump(), ", which has the wrong type");
  }
}

}  // namespace cloze

#pragma once
// config.json of Hugging Face: for each model_type one table of keys, which is read and written by.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/families/model_config.h"

namespace cloze {

/// A JSON object of a file. Throws CheckpointError for one that is none.
nlohmann::json read_json(const std::string& path);

/// The model that a config.json describes; a key that is absent has the default of transformers' class. `path` is the
/// file's, and its generation_config.json stands beside it. Throws ConfigError naming path, key and value.
ModelConfig read_model(const nlohmann::json& config, const std::string& path);

/// Every key of the model's table, and `model_type`.
nlohmann::json model_json(const ModelConfig& model);

/// The class names of a model begin with it: `Bert`, `MT5`.
std::string class_prefix(const ModelConfig& model);

/// One stack of an encoder with a decoder: its decoder, which writes (BartForCausalLM), or its encoder
/// (T5EncoderModel).
void keep_decoder(EncoderDecoderConfig& model);
void keep_encoder(EncoderDecoderConfig& model);

/// Takes a field where it is there and not null; `path` is the file's. Throws ConfigError for one of another type, and
/// for a whole number that is larger than every size of a model.
template <class T>
void take(const nlohmann::json& from, const char* key, T& field, const std::string& path) {
  const auto found = from.find(key);
  if (found == from.end() || found->is_null()) return;
  const bool fraction = found->is_number_float() && std::nearbyint(found->get<double>()) != found->get<double>();
  if constexpr (std::is_same_v<T, int64_t>) {
    require<ConfigError>(!fraction, path, ": '", key, "' is ", found->dump(), ", which is not a whole number");
    require<ConfigError>(!found->is_number() || std::abs(found->get<double>()) <= most::tokens, path, ": '", key,
                         "' is ", found->dump(), ", more than any model has; the file is damaged");
  }
  try {
    field = found->get<T>();
  } catch (const nlohmann::json::exception&) {
    fail<ConfigError>(path, ": '", key, "' is ", found->dump(), ", which is not of the right type");
  }
}

}  // namespace cloze

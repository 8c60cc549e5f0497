#pragma once
// Files of JSON, and single fields of them.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "models/transformer_config.h"

namespace cloze {

/// The JSON object in a file. Throws CheckpointError for anything else.
inline nlohmann::json read_json(const std::string& path) {
  require<CheckpointError>(std::filesystem::exists(path), path,
                           ": no such file; name a folder that `save_pretrained` made");
  const auto text = read_text(path, 64 << 20);
  const auto content = parse_json(text);
  if (!content.is_object())
    fail<CheckpointError>(path, ": is not a JSON object", json_fault(text), "; the file is damaged");
  return content;
}

/// Reads a field if it is present and not null; `path` is that of the file. Throws ConfigError for a value of another
/// type, and for an integer beyond any model size.
template <class T>
void take(const nlohmann::json& from, const char* key, T& field, const std::string& path) {
  const auto value = from.find(key);
  if (value == from.end() || value->is_null()) return;
  const bool fraction = value->is_number_float() && std::nearbyint(value->get<double>()) != value->get<double>();
  if constexpr (std::is_same_v<T, int64_t>) {
    require<ConfigError>(!fraction, path, ": '", key, "' is ", json_text(*value), ", which is not an integer");
    require<ConfigError>(!value->is_number() || std::abs(value->get<double>()) <= limits::tokens, path, ": '", key,
                         "' is ", json_text(*value), ", which is beyond any model; the file is damaged");
  }
  try {
    field = value->get<T>();
  } catch (const nlohmann::json::exception&) {
    fail<ConfigError>(path, ": '", key, "' is ", json_text(*value), ", which has the wrong type");
  }
}

}  // namespace cloze

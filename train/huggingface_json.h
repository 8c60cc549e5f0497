#pragma once
// Fields of a config.json.
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cloze {

/// Takes a field where it is there and not null; `path` is the file's. Throws ConfigError for one of another type.
template <class T>
void take(const nlohmann::json& from, const char* key, T& field, const std::string& path) {
  const auto found = from.find(key);
  if (found == from.end() || found->is_null()) return;
  try {
    field = found->get<T>();
  } catch (const nlohmann::json::exception&) {
    fail<ConfigError>(path, ": '", key, "' is ", found->dump(), ", which is not of the right type");
  }
}

}  // namespace cloze

#pragma once
// What the readers of Hugging Face folders share: fields of a config.json, and tables of names.
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cloze {

/// A JSON object of a file. Throws CheckpointError for one that is none.
nlohmann::json read_json(const std::string& path);

/// Takes a field where it is there and not null; `path` is the file's. Throws ConfigError for one of another type.
template <class T>
void take(const nlohmann::json& from, const char* key, T& field, const std::string& path) {
  const auto found = from.find(key);
  if (found == from.end() || found->is_null()) return;
  if constexpr (std::is_same_v<T, int64_t>)
    require<ConfigError>(!found->is_number_float() || std::nearbyint(found->get<double>()) == found->get<double>(), path, ": '", key, "' is ", found->dump(), ", which is not a whole number");
  try {
    field = found->get<T>();
  } catch (const nlohmann::json::exception&) {
    fail<ConfigError>(path, ": '", key, "' is ", found->dump(), ", which is not of the right type");
  }
}

/// The beginning of a parameter's name, and what stands there in its place.
struct NamePair {
  std::string_view ours;
  std::vector<std::string> theirs;   ///< stacked in this order
};

/// What the first pair that begins `name` makes of it, each behind `before`; none where no pair does.
inline std::vector<std::string> renamed(const std::vector<NamePair>& table, std::string_view name, const std::string& before) {
  std::vector<std::string> names;
  for (const auto& [ours, theirs] : table) {
    if (!name.starts_with(ours)) continue;
    for (const auto& part : theirs) names.push_back(before + part + std::string(name.substr(ours.size())));
    break;
  }
  return names;
}

}  // namespace cloze

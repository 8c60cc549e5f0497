#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "run/config/load_config.h"
#include "study/execution/runs.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string path_of(const Plan& plan) { return plan.root + "/declaration.json"; }

/// Whether a run of the plan was started.
bool has_begun(const Plan& plan) {
  return std::ranges::any_of(plan.runs, [&](const auto& run) { return std::filesystem::exists(record_path(run)); });
}

/// The values of the study file by their keys, its defaults included.
json declared(const Plan& plan) {
  json values = json::object();
  for (const auto& entry : entries(read_study(plan.file)))
    if (entry.leaf) values[entry.path] = entry.value;
  return values;
}

}  // namespace

std::string declaration_of(const Plan& plan) { return hash_hex(json_text(declared(plan))); }

void declare(const Plan& plan) {
  if (std::filesystem::exists(path_of(plan)) || has_begun(plan)) return;
  const json file{{"declaration", declaration_of(plan)}, {"values", declared(plan)}, {"version", CLOZE_VERSION}};
  write_atomic(path_of(plan), json_text(file, 1) + "\n");
}

bool lacks_declaration(const Plan& plan) { return !std::filesystem::exists(path_of(plan)) && has_begun(plan); }

std::vector<std::string> changes_since_declaration(const Plan& plan) {
  if (!std::filesystem::exists(path_of(plan))) return {};
  const auto file = parse_json(read_text(path_of(plan), 16 << 20));
  const auto values = value_at(file, "/values");
  const bool fine = values.is_object() && value_at(file, "/declaration") == hash_hex(json_text(values)) &&
                    std::all_of(values.begin(), values.end(), [](const json& value) { return value.is_string(); });
  require<DataError>(fine, path_of(plan),
                     ": is damaged or was edited, so that nobody can tell what was declared before the first run; "
                     "restore it, or remove it, and the report says that there is none");
  const auto now = declared(plan);
  std::vector<std::string> changes;
  for (const auto& [key, value] : now.items()) {
    const auto was = values.value(key, std::string("absent"));
    const auto is = value.get<std::string>();
    if (was != is) changes.push_back(concat(key, " was ", was, " before the first run, and is ", is));
  }
  for (const auto& [key, value] : values.items())
    if (!now.contains(key))
      changes.push_back(concat(key, " was ", value.get<std::string>(), " before the first run, and is absent"));
  return changes;
}

}  // namespace cloze

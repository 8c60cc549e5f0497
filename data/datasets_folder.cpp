#include "data/datasets_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// The state.json of a dataset; null for another one, or none.
json state_of_dataset(const std::string& folder) {
  constexpr uint64_t most_bytes = 16 << 20;
  const auto path = folder + "/state.json";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || fs::file_size(path, ignored) > most_bytes) return nullptr;
  auto state = parse_json(read_text(path, most_bytes));
  const bool is_of_dataset = state.is_object() && state.contains("_data_files") && state["_data_files"].is_array();
  return is_of_dataset ? state : json();
}

/// Whether a name is one of a file in the folder itself.
bool is_plain_name(const std::string& name) {
  return !name.empty() && fs::path(name).filename() == name && name != "..";
}

}  // namespace

std::optional<std::vector<std::string>> files_of_dataset(const std::string& folder) {
  const auto state = state_of_dataset(folder);
  if (state.is_null()) return std::nullopt;
  const auto selected = state.value("_indices_data_files", json());
  require<DataError>(selected.empty(), folder,
                     ": is a selection of rows of an old version of `datasets`; save it again with its save_to_disk");
  std::vector<std::string> files;
  for (const auto& entry : state["_data_files"]) {
    const auto named = entry.is_object() ? entry.value("filename", json()) : json();
    const auto name = named.is_string() ? named.get<std::string>() : std::string();
    require<DataError>(is_plain_name(name), folder, "/state.json: names the file '", name,
                       "', which is no file of its folder; copy the folder again");
    std::error_code ignored;
    const auto path = (fs::path(folder) / name).string();
    require<DataError>(fs::is_regular_file(path, ignored), path,
                       ": is missing, and state.json says that it has rows; copy the folder again");
    files.push_back(path);
  }
  return files;
}

bool describes_dataset(const std::string& name) { return name == "dataset_info.json" || name == "dataset_dict.json"; }

bool is_dataset(const std::string& folder) { return !state_of_dataset(folder).is_null(); }

}  // namespace cloze

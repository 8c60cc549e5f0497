#include "run/moved.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "data/store/manifest.h"
#include "run/run_files.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t searched_folders = 3;  // around the run, in which every folder is looked at

/// A text of the provenance.json of a run; empty without one.
std::string recorded_text(const std::string& run, const char* pointer) {
  const auto path = run + "/provenance.json";
  if (!fs::exists(path)) return "";
  return string_at(parse_json(read_text(path, 16 << 20)), pointer);
}

/// The folders around a run, the innermost first.
std::vector<fs::path> folders_around(const std::string& run) {
  std::error_code unknown;  // a working directory that was removed
  auto at = (fs::absolute(run, unknown) / "").lexically_normal().parent_path();
  std::vector<fs::path> folders;
  while (at.has_relative_path()) folders.push_back(at = at.parent_path());
  return folders;
}

/// `a/b/c`, `b/c` and `c` of /a/b/c.
std::vector<fs::path> endings(const fs::path& path) {
  const auto parts = path.relative_path();
  std::vector<fs::path> list;
  for (auto first = parts.begin(); first != parts.end(); ++first) {
    fs::path ending;
    for (auto at = first; at != parts.end(); ++at) ending /= *at;
    list.push_back(std::move(ending));
  }
  return list;
}

/// The folders in a folder, in the order of their names.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) folders.push_back(at->path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// False for tokens that cannot be read, too.
bool has_fingerprint(const std::string& tokens, const std::string& fingerprint) {
  std::error_code ignored;
  if (!fs::exists(tokens + "/manifest.json", ignored)) return false;
  try {
    return read_manifest(tokens).fingerprint == fingerprint;
  } catch (const DataError&) {
    return false;
  }
}

/// Every path that may have the tokens of a run.
std::vector<std::string> token_paths(const std::string& run, const std::string& recorded) {
  auto paths = likely_paths(run, recorded);
  const auto around = folders_around(run);
  for (size_t i = 0; i < std::min(around.size(), searched_folders); ++i) {
    const auto folders = folders_in(around[i]);
    paths.insert(paths.end(), folders.begin(), folders.end());
  }
  return paths;
}

}  // namespace

std::vector<std::string> likely_paths(const std::string& run, const std::string& recorded) {
  std::vector<std::string> paths{recorded};
  const auto began_in = recorded_text(run, "/folder");
  const auto original = (fs::path(began_in) / recorded).lexically_normal();  // `recorded`, where that is absolute
  if (!began_in.empty()) paths.push_back(original.string());
  for (const auto& folder : folders_around(run))
    for (const auto& ending : endings(original))
      if (*ending.begin() != "..") paths.push_back((folder / ending).string());
  return paths;
}

namespace {

/// The rows in the folder of a fine-tuned run, which may be a copy of the one whose path it records; empty without any.
std::string own_rows(const std::string& run, const std::string& recorded) {
  const auto own = run + "/" + task_folder;
  std::error_code unknown;
  if (fs::path(recorded).filename() != task_folder || !fs::is_directory(own, unknown)) return "";
  return fs::equivalent(own, recorded, unknown) ? recorded : own;
}

/// `recorded`, or where the tokens of this fingerprint are found near the run.
std::string found_tokens(const std::string& run, const std::string& recorded, const std::string& fingerprint) {
  if (fingerprint.empty() || recorded.empty()) return recorded;
  for (const auto& path : token_paths(run, recorded)) {
    if (!has_fingerprint(path, fingerprint)) continue;
    if (path != recorded) log_info("data", concat(run, ": its tokens, ", recorded, ", are found in ", path));
    return path;
  }
  return recorded;
}

}  // namespace

std::string tokens_of_run(const std::string& run, const std::string& recorded) {
  if (const auto own = own_rows(run, recorded); !own.empty()) return own;
  const auto held_out = recorded_text(run, "/data/held_out/fingerprint");  // beside a mixture
  return found_tokens(run, recorded, held_out.empty() ? recorded_text(run, "/data/fingerprint") : held_out);
}

std::string mixture_tokens_of_run(const std::string& run, size_t part, const std::string& recorded) {
  const auto own = recorded_text(run, concat("/data/mixture/", part, "/fingerprint").c_str());
  if (!own.empty()) return found_tokens(run, recorded, own);
  return tokens_of_run(run, recorded);  // one text alone, that of data.tokens
}

DataConfig data_of_run(const std::string& run, DataConfig recorded) {
  recorded.tokens = tokens_of_run(run, recorded.tokens);
  for (size_t part = 0; part < recorded.mixture.size(); ++part)
    recorded.mixture[part].tokens = mixture_tokens_of_run(run, part, recorded.mixture[part].tokens);
  return recorded;
}

}  // namespace cloze

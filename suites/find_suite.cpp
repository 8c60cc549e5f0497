#include "suites/find_suite.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "suites/json_lines.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Paths of the folder's entries but hidden ones, in the order of their names.
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string()[0] != '.') paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string suites_folder() {
  const auto* named = std::getenv("CLOZE_SUITES");
  return named != nullptr && *named != '\0' ? named : "suites";
}

std::string find_suite(const std::string& name, const std::string& option) {
  std::error_code ignored;
  if (fs::exists(name, ignored)) return name;
  const auto folder = suites_folder();
  std::vector<std::string> known;
  for (const auto& path : entries_of(folder)) {
    const auto suite = suite_name(path);
    if (suite == name || fs::path(path).filename() == name) return path;
    if (known.empty() || known.back() != suite) known.push_back(suite);
  }
  constexpr const char* how =
      "nothing is downloaded: put its file there, or name the file; docs/evaluation.md says where suites come from";
  const bool is_folder = fs::is_directory(folder, ignored);
  require<ConfigError>(is_folder, option, " ", shortened(name), ": no such file, and ", folder,
                       ", the folder of suites (CLOZE_SUITES names another), is not there; ", how);
  const auto near = did_you_mean(name, known);
  require<ConfigError>(near.empty(), option, " ", shortened(name), ": no such file, and no suite of ", folder, near);
  fail<ConfigError>(option, " ", shortened(name), ": no such file, and no suite of ", folder,
                    known.empty() ? ", which is empty" : ", which has " + shortened(listed(known)), "; ", how);
}

bool is_babylm_data(const std::string& folder) {
  std::error_code ignored;
  const auto has = [&](const char* part) { return fs::is_directory(fs::path(folder) / part, ignored); };
  return has("full_eval") || has("fast_eval");
}

}  // namespace cloze

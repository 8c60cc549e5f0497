#include "cli/output_file.h"

#include <filesystem>

#include "cli/paths.h"
#include "core/error.h"
#include "run/run_files.h"

namespace cloze {

namespace fs = std::filesystem;

void check_overwritten(const std::string& option, const std::string& path) {
  std::error_code ignored;
  require<ConfigError>(!fs::is_directory(path, ignored), option, " ", path, ": is a folder; name a file");
  if (!fs::exists(path, ignored)) return;
  require<ConfigError>(fs::is_regular_file(path, ignored), option, " ", path, ": is not a regular file; name another");
  const auto folder = fs::path(path).parent_path().string();
  const auto kind = kind_of_path(folder.empty() ? "." : folder);
  const auto name = fs::path(path).filename().string();
  const bool is_of_run = kind == PathKind::run && is_run_file(name);
  const bool is_kept = kind == PathKind::step || kind == PathKind::tokens || kind == PathKind::tokenizer;
  const auto* owner = kind == PathKind::run      ? "run"
                      : kind == PathKind::step   ? "checkpoint"
                      : kind == PathKind::tokens ? "prepared text"
                                                 : "tokenizer";
  require<ConfigError>(!is_of_run && !(is_kept && is_kept_file(name)), option, " ", path, ": is a file of the ", owner,
                       ", which would lose it; name another");
}

void check_output_file(const std::string& option, const std::string& path, const std::vector<std::string>& read) {
  std::error_code ignored;
  const auto folder = fs::path(path).parent_path();
  require<ConfigError>(folder.empty() || fs::is_directory(folder, ignored), option, " ", path, ": there is no folder ",
                       folder.string(), "; make it, or name another");
  check_overwritten(option, path);
  for (const auto& file : read)
    require<ConfigError>(!fs::equivalent(path, file, ignored), option, " ", path,
                         ": is a file that is read, which would be lost; name another");
}

}  // namespace cloze

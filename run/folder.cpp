#include "run/folder.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "run/run.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

const std::string lock_name = "lock";

bool is_of_a_run(const std::string& name) {
  const std::vector<std::string> files{"run.yaml", "provenance.json", "init.json", "metrics.jsonl",
                                       "log.txt",  "tokenizer",       "latest",    "best"};
  return std::find(files.begin(), files.end(), name) != files.end() || name.starts_with("events.out.tfevents.");
}

/// Throws where a run that is resumed does not exist, or a new one would replace another.
void check_folder(const std::string& run, bool resume) {
  const auto found = run_folder(run);
  if (!resume)
    require<ConfigError>(found == RunFolder::vacant || found == RunFolder::begun, run,
                         ": exists; continue it with --resume, or name another folder with --run");
  if (resume)
    require<ConfigError>(fs::exists(run) && found != RunFolder::other, run,
                         ": contains no run to resume; start it without --resume");
}

}  // namespace

RunFolder run_folder(const std::string& run) {
  bool has_files = false;
  std::error_code error;
  if (fs::exists(run) && !fs::is_directory(run)) return RunFolder::other;
  for (const auto& entry : fs::directory_iterator(run, error)) {
    const auto name = entry.path().filename().string();
    if (name == lock_name || is_staged(name)) continue;
    if (is_step_folder(name)) return fs::exists(run + "/run.yaml") ? RunFolder::saved : RunFolder::other;
    if (!is_of_a_run(name) && !fs::exists(run + "/run.yaml")) return RunFolder::other;
    has_files = true;
  }
  return has_files ? RunFolder::begun : RunFolder::vacant;
}

RunLock::RunLock(const std::string& run, bool resume) : run_(run) {
  check_folder(run, resume);
  std::error_code error;
  created_ = fs::create_directories(run, error);
  require<Error>(!error, run, ": cannot be created (", error.message(), ")");
  lock_ = Lock::take_or_fail(run + "/" + lock_name, run);
  check_folder(run, resume);  // another process may have trained there until now
  sweep_staged(run);
  if (resume || run_folder(run) == RunFolder::vacant) return;
  for (const auto* file : {"run.yaml", "provenance.json", "init.json", "metrics.jsonl", "best"})
    fs::remove(run + "/" + file, error);
}

RunLock::~RunLock() {
  lock_.reset();
  std::error_code ignored;
  if (created_ && fs::is_empty(run_, ignored)) fs::remove(run_, ignored);
}

}  // namespace cloze

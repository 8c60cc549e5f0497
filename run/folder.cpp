#include "run/folder.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/open_file.h"
#include "run/load_config.h"
#include "run/run.h"
#include "run/run_files.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

const std::string lock_name = "lock";

/// Whether a file name is that of something which a run left half written.
bool is_half_written(const std::string& name) {
  const auto whole = name.substr(0, name.rfind(".tmp-"));
  return is_staged(name) && (is_run_file(whole) || is_step_folder(whole));
}

/// Throws where a run that is resumed does not exist, or a new one would replace another.
void check_folder(const std::string& run, bool resume) {
  require_run_config(run);
  const auto found = run_folder(run);
  if (resume) {
    require<ConfigError>(fs::exists(run), run, ": contains no run to resume; start it without --resume");
    require<ConfigError>(found != RunFolder::other, run,
                         ": contains no run to resume; name the folder of a run with --run");
    return;
  }
  require<ConfigError>(found != RunFolder::saved, run,
                       ": exists; continue it with --resume, or name another folder with --run");
  require<ConfigError>(found != RunFolder::other, run, ": exists, and is no run; name another folder with --run");
}

}  // namespace

RunFolder run_folder(const std::string& run) {
  std::error_code error;
  if (!fs::exists(run, error)) return RunFolder::vacant;
  bool has_files = false, has_others = false, has_steps = false;
  for (const auto& entry : fs::directory_iterator(run, error)) {  // an error for a file, or an unreadable folder
    const auto name = entry.path().filename().string();
    if (name == lock_name || is_half_written(name)) continue;
    has_files = true;
    has_steps = has_steps || is_step_folder(name);
    has_others = has_others || !is_first_file(name);
  }
  require<Error>(!error || error == std::errc::not_a_directory, run, ": cannot be read (", error.message(), ")");
  if (!has_files) return error ? RunFolder::other : RunFolder::vacant;
  const bool has_config = fs::exists(run + "/run.yaml"), has_provenance = fs::exists(run + "/provenance.json");
  if (has_provenance && !has_others) return RunFolder::begun;
  return has_config && (has_provenance || has_steps) ? RunFolder::saved : RunFolder::other;
}

void clear_begun_run(const std::string& run) {
  std::error_code error;
  for (const auto* file : {"metrics.jsonl", "init.json", "run.yaml"}) {
    const auto path = run + "/" + file;
    fs::remove(path, error);
    require<Error>(!error, path, ": cannot be removed (", error.message(), ")");
  }
}

void require_own_files(const std::string& run) {
  for (const auto* name : {"lock", "metrics.jsonl", "log.txt"}) require_own_file(run + "/" + name);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run, ignored))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) require_own_file(entry.path().string());
  const auto tokenizer = run + "/tokenizer";
  require<Error>(!fs::is_symlink(tokenizer, ignored), tokenizer,
                 ": is a link, through which another folder would be changed; put a folder of its own there");
}

RunLock::RunLock(const std::string& run, bool resume) : run_(run) {
  check_folder(run, resume);
  require_own_files(run);
  std::error_code error;
  created_ = fs::create_directories(run, error);
  require<Error>(!error, run, ": cannot be created (", error.message(), ")");
  lock_ = Lock::take_or_fail(run + "/" + lock_name, run);
  sweep_staged(run, is_half_written);
  sweep_staged(run + "/tokenizer", is_staged);
  // Another process may have trained there until now, and a checkpoint may have got its name back.
  check_folder(run, resume);
}

RunLock::~RunLock() {
  lock_.reset();
  std::error_code ignored;
  if (created_ && fs::is_empty(run_, ignored)) fs::remove(run_, ignored);
}

}  // namespace cloze

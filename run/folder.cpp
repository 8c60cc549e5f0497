#include "run/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "run/config/load_config.h"
#include "run/run.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// Throws where a run that is resumed does not exist, or a new one would replace another.
void check_folder(const std::string& run, bool resume) {
  require_run_config(run);
  const auto state = run_folder(run);
  if (resume) {
    require<ConfigError>(fs::exists(run), run, ": contains no run to resume; start it without --resume");
    require<ConfigError>(state != RunFolder::other, run,
                         ": contains no run to resume; name the folder of a run with --run");
    return;
  }
  require<ConfigError>(state != RunFolder::saved, run,
                       ": exists; continue it with --resume, or name another folder with --run");
  require<ConfigError>(state != RunFolder::other, run, ": exists, and is no run; name another folder with --run");
}

/// Whether a path names nothing, or something else than the open file; false where that cannot be said.
bool names_other(const std::string& path, int file) {
  struct stat there{};
  if (lstat(path.c_str(), &there) != 0) return errno == ENOENT || errno == ENOTDIR;
  return !is_file_at(file, path);
}

/// Whether nothing has the name of a lock, which was removed and not moved.
bool is_removed_lock(const std::string& path, int lock) {
  struct stat info{}, there{};
  return fstat(lock, &info) == 0 && info.st_nlink == 0 && lstat(path.c_str(), &there) != 0;
}

}  // namespace

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
  for (const std::string name : {"tokenizer", imported_folder, ranks_folder}) {
    const auto folder = run + "/" + name;
    require<Error>(!fs::is_symlink(folder, ignored), folder,
                   ": is a link, through which another folder would be changed; put a folder of its own there");
  }
}

RunLock::RunLock(const std::string& run, bool resume) : run_(run) {
  check_folder(run, resume);
  require_own_files(run);
  std::error_code error;
  created_ = fs::create_directories(run, error);
  require<Error>(!error, run, ": cannot be created (", error.message(), ")");
  folder_ = open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto reason = system_reason();
  require<Error>(folder_ >= 0, run, ": cannot be read (", reason, ")");
  try {
    lock_ = Lock::take_or_fail(run + "/" + run_lock, run);
    sweep_staged(run, is_left_of_run);
    sweep_staged(run + "/tokenizer", is_staged);
    // Another process may have trained there until now, and a checkpoint may have got its name back.
    check_folder(run, resume);
  } catch (...) {
    close(folder_);
    throw;
  }
}

RunLock::~RunLock() {
  lock_.reset();
  std::error_code ignored;
  if (created_ && is_file_at(folder_, run_) && fs::is_empty(run_, ignored)) fs::remove(run_, ignored);
  close(folder_);
}

void RunLock::require_in_place() {
  const auto path = run_ + "/" + run_lock;
  if (is_removed_lock(path, lock_->descriptor()) && !names_other(run_, folder_)) lock_ = Lock::take_or_fail(path, run_);
  require<CheckpointError>(!names_other(run_, folder_) && !names_other(path, lock_->descriptor()), run_,
                           ": was moved, removed or replaced while it was trained; the run stops, and nothing is "
                           "written to what has its name now; go on from its checkpoints with `cloze pretrain --run "
                           "FOLDER --resume`, FOLDER where it is now");
}

void RunLock::write(const std::string& name, std::string_view content) {
  require_in_place();
  write_atomic(run_ + "/" + name, content);
}

std::vector<std::string> step_folders(const std::string& run) {
  std::vector<std::string> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run, ignored)) {
    const auto name = entry.path().filename().string();
    if (is_step_name(name)) steps.push_back(name);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

int64_t step_of_folder(const std::string& name) { return std::stoll(name.substr(name.find('-') + 1)); }

}  // namespace cloze

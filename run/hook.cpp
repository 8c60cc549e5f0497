#include "run/hook.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/fork.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/log.h"
#include "core/spelling.h"

namespace cloze {

namespace {

/// A file without a name. Throws Error with the system's reason.
int nameless_file() {
  const int file = memfd_create("hook", MFD_CLOEXEC);
  require<Error>(file >= 0, "no memory for its input and output (", system_reason(), ")");
  return file;
}

/// A file without a name that holds a text and is read from its begin.
int file_of(const std::string& text) {
  const int file = nameless_file();
  const bool is_written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const auto reason = is_written ? "" : system_reason();
  if (is_written && lseek(file, 0, SEEK_SET) == 0) return file;
  close(file);
  fail("its input cannot be written (", reason, ")");
}

/// The last line that a command printed; empty for none.
std::string last_line_in(int file) {
  char end[1024];
  const auto size = lseek(file, 0, SEEK_END);
  const auto n = pread(file, end, sizeof end, std::max<off_t>(0, size - static_cast<off_t>(sizeof end)));
  std::string text(end, static_cast<size_t>(std::max<ssize_t>(0, n)));
  text.erase(text.find_last_not_of(" \n\r") + 1);
  return text.substr(text.rfind('\n') + 1);
}

/// Why a command failed, by the status of waitpid; empty where it did not.
std::string failure_in(int status, int output) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  const auto how = WIFSIGNALED(status) ? words("signal ", WTERMSIG(status)) : words("exit code ", WEXITSTATUS(status));
  const auto line = last_line_in(output);
  return line.empty() ? how : how + ": " + line;
}

}  // namespace

Hook::~Hook() {
  finish();
  if (output_ >= 0) close(output_);
}

void Hook::tell(const nlohmann::json& event) {
  if (!is_set()) return;
  finish();
  kind_ = event.at("event").get<std::string>();
  try {
    start(json_text(event) + "\n");
  } catch (const Error& e) {
    warn(e.what());
  }
}

void Hook::start(const std::string& event) {
  if (output_ >= 0) close(output_);
  output_ = nameless_file();
  const int input = file_of(event);
  child_ = fork_with_default_signals();
  if (child_ == 0) {
    setpgid(0, 0);  // Ctrl-C is for the run, which saves
    signal(SIGPIPE, SIG_DFL);
    dup2(input, 0);
    dup2(output_, 1);
    dup2(output_, 2);
    close_range(3, UINT_MAX, 0);
    execl("/bin/sh", "sh", "-c", command_.c_str(), nullptr);
    _exit(127);
  }
  close(input);
  if (child_ > 0) return;
  child_ = 0;
  fail("no process can be started (", system_reason(), ")");
}

void Hook::finish() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto is_late = [&] { return std::chrono::duration<double>(Clock::now() - begin).count() > patience_; };
  int status = 0;
  while (child_ > 0 && waitpid(child_, &status, WNOHANG) == 0) {
    if (interrupted) {
      child_ = 0;
      return;
    }
    if (is_late()) {
      kill(-child_, SIGKILL);
      waitpid(child_, &status, 0);
      warn(words("it took more than ", shortest(patience_), " s and was killed"));
      child_ = 0;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (child_ == 0) return;
  child_ = 0;
  if (const auto failure = failure_in(status, output_); !failure.empty()) warn(failure);
}

void Hook::warn(const std::string& reason) {
  if (!warned_.insert(kind_).second) return;
  end_progress();
  log_warning("train", words("the hook failed at the event '", kind_, "' (", reason,
                             "); the run goes on, and later failures at this event are not told"));
}

}  // namespace cloze

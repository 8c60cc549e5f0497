#include "run/records/hook.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/log.h"
#include "core/process.h"
#include "core/spelling.h"

namespace cloze {

namespace {

/// Why a command failed, by the status of waitpid; empty where it did not.
std::string failure_in(int status, std::string output) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  const auto how =
      WIFSIGNALED(status) ? concat("signal ", WTERMSIG(status)) : concat("exit code ", WEXITSTATUS(status));
  output.erase(output.find_last_not_of(" \n\r") + 1);
  const auto line = output.substr(output.rfind('\n') + 1);
  return line.empty() ? how : how + ": " + line;
}

}  // namespace

Hook::~Hook() { finish(); }

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
  output_.emplace();
  const MemoryFile input(event);
  child_ = fork_with_default_signals();
  if (child_ == 0) {
    setpgid(0, 0);  // Ctrl-C is for the run, which saves
    signal(SIGPIPE, SIG_DFL);
    dup2(input.descriptor(), 0);
    dup2(output_->descriptor(), 1);
    dup2(output_->descriptor(), 2);
    close_range(3, UINT_MAX, 0);
    execl("/bin/sh", "sh", "-c", command_.c_str(), nullptr);
    _exit(127);
  }
  if (child_ > 0) {
    setpgid(child_, child_);  // the child may not have come to it when it is to be killed
    return;
  }
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
      warn(concat("it took more than ", shortest(patience_), " s and was killed"));
      patience_ /= 2;
      child_ = 0;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (child_ == 0) return;
  child_ = 0;
  if (const auto failure = failure_in(status, output_->text()); !failure.empty()) warn(failure);
}

void Hook::warn(const std::string& reason) {
  if (!warned_.insert(kind_).second) return;
  end_progress();
  log_warning("train", concat("the hook failed at the event '", kind_, "' (", reason,
                              "); the run goes on, and later failures at this event are not told"));
}

}  // namespace cloze

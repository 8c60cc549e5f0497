#include "study/execution/process.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/mapped_file.h"
#include "core/process.h"
#include "core/worker_threads.h"

namespace cloze {

namespace {

/// Becomes another program, or ends with 127.
[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  _exit(127);
}

/// Redirects a descriptor of this process to a file.
void redirect(int descriptor, const char* path, int flags) {
  const int file = open(path, flags, 0644);
  if (file < 0) return;
  dup2(file, descriptor);
  if (file != descriptor) close(file);
}

/// How a signal ended a process.
std::string signal_words(int status) {
  const int signal = WTERMSIG(status);
  return concat("ended by signal ", signal, signal == SIGKILL ? " (killed, or out of memory)" : "");
}

}  // namespace

pid_t start_process(const std::vector<std::string>& command, const std::string& log, int inherited) {
  require_own_file(log);
  const pid_t parent = getpid();
  const pid_t child = fork_with_default_signals();
  require<Error>(child >= 0, "no process can be started (", system_reason(), "); ", threads_remedy);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // without its parent it saves and stops
  if (getppid() != parent) _exit(130);
  redirect(1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW);
  dup2(1, 2);
  redirect(0, "/dev/null", O_RDONLY);
  setpgid(0, 0);
  fcntl(inherited, F_SETFD, 0);
  become(command);
}

ProcessOutput run_process(const std::vector<std::string>& command) {
  const MemoryFile out, errors;
  const pid_t child = fork_with_default_signals();
  require<Error>(child >= 0, "no process can be started (", system_reason(), "); ", threads_remedy);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    redirect(0, "/dev/null", O_RDONLY);
    dup2(out.descriptor(), 1);
    dup2(errors.descriptor(), 2);
    setpgid(0, 0);
    become(command);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (interrupted) kill(child, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (interrupted) throw Interrupted("stopped");
  const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return {.text = out.text(),
          .failure = succeeded             ? ""
                     : WIFSIGNALED(status) ? signal_words(status)
                                           : last_sentence(errors.text()),
          .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \n\r") + 1);
  auto line = text.substr(text.rfind('\n') + 1);
  for (const std::string before : {"cloze: error: ", "cloze: "})
    if (line.starts_with(before)) return line.substr(before.size());
  return line.empty() ? "ended without a word" : line;
}

std::string last_sentence(std::string text) {
  text.erase(text.find_last_not_of(" \n\r") + 1);
  std::string list;  // of what a sentence refuses, a line each
  for (auto at = text.rfind('\n'); at != text.npos && text.compare(at, 3, "\n  ") == 0; at = text.rfind('\n')) {
    list = text.substr(at + 2) + (list.empty() ? "" : ";") + list;
    text.erase(at);
  }
  return last_line(std::move(text)) + list;
}

std::string failure_of(int status, const std::string& log) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFSIGNALED(status)) return signal_words(status);
  try {
    return last_sentence(read_text(log));
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace cloze

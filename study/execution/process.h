#pragma once
// Child processes of a study.
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace cloze {

/// Starts a program in a process group of its own, so that Ctrl-C reaches its parent alone; without its parent it gets
/// SIGTERM. Output and errors are appended to the file `log`. `command.front()` is a path, or a name to be found in
/// PATH. It inherits the descriptor `inherited`, and no other one that is to be closed. Throws Error with the system's
/// reason.
pid_t start_process(const std::vector<std::string>& command, const std::string& log, int inherited);

/// What a program printed, and how it ended.
struct ProcessOutput {
  std::string text{};     ///< standard output
  std::string failure{};  ///< empty for success, else the last sentence of standard error, or its signal
  int exit_code = 0;      ///< -1 for a signal
};
/// Runs a program to its end. Throws Error with the system's reason, Interrupted after Ctrl-C.
ProcessOutput run_process(const std::vector<std::string>& command);

/// The last line of a program's errors that is not empty, without the program's name.
std::string last_line(std::string text);
/// The same with the indented lines after it, in which a sentence lists what it refuses, in one line with semicolons
/// between them.
std::string last_sentence(std::string text);

/// How a process ended by the status of waitpid: empty for success, else the last sentence of its `log`, or its
/// signal.
std::string failure_of(int status, const std::string& log);

}  // namespace cloze

#pragma once
// This program, and new ones.
#include <sys/types.h>

#include <string>

namespace cloze {

/// fork() whose child has the default actions of SIGINT, SIGTERM and SIGHUP: a signal before it becomes another program
/// ends it, and is not lost in a handler of this program. Answers -1 where no process can be started.
pid_t fork_with_default_signals();

/// The file of this program, with links resolved; known without /proc, too.
std::string program_path();

}  // namespace cloze

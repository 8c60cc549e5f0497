#pragma once
// New processes that a signal can end from their first instruction.
#include <sys/types.h>

namespace cloze {

/// fork() whose child has the default actions of SIGINT, SIGTERM and SIGHUP: a signal before it becomes another program
/// ends it, and is not lost in a handler of this program. Answers -1 where no process can be started.
pid_t fork_with_default_signals();

}  // namespace cloze

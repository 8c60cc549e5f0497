#pragma once
// Child processes of tests.
#include <sys/wait.h>

/// The exit code of a process by the status of waitpid or pclose; 128 plus the number of the signal that ended it.
inline int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// Waits for the end of a child. Its exit code, as by `exit_code_of`.
inline int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return exit_code_of(status);
}

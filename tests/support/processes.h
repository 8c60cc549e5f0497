#pragma once
// Processes of tests and what they may do.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <iostream>

/// While it exists, this process cannot open a file.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// The exit code of a process by the status of waitpid or pclose; 128 plus the number of the signal that ended it.
inline int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// Waits for the end of a child. Its exit code, as by `exit_code_of`.
inline int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return exit_code_of(status);
}

/// Waits until something holds, for at most half a minute.
template <class Condition>
bool wait_until(const Condition& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool is_so = holds();
  for (; !is_so && std::chrono::steady_clock::now() < end; is_so = holds()) usleep(2000);
  return is_so;
}

/// A child of this process that does `body`, and no test after it. Its exit code is 1 where that throws, with the
/// sentence on stderr.
template <class Body>
pid_t start_child(const Body& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    body();
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    _exit(1);
  }
  _exit(0);
}

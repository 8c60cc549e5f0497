#include "core/process.h"

#include <signal.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>

namespace cloze {

pid_t fork_with_default_signals() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction current{};
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      sigaction(number, nullptr, &current);
      if (current.sa_handler != SIG_IGN) signal(number, SIG_DFL);  // what nohup ignores stays ignored
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return child;
}

std::string program_path() {
  namespace fs = std::filesystem;
  std::error_code error;
  auto path = fs::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  const std::string started_as = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  path = fs::canonical(started_as, error);
  return error ? started_as : path.string();
}

}  // namespace cloze

#include "core/fork.h"

#include <signal.h>
#include <unistd.h>

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

}  // namespace cloze

#include "core/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace cloze {

std::atomic<bool> interrupted{false};

namespace {

void on_signal(int) {
  if (interrupted.exchange(true)) _exit(130);
}

void listen(int flags) {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

void install_interrupt_handlers() {
  listen(SA_RESTART);
  signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit is reported by the write
}

InterruptibleReads::InterruptibleReads() { listen(0); }
InterruptibleReads::~InterruptibleReads() { listen(SA_RESTART); }

}  // namespace cloze

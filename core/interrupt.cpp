#include "core/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace cloze {

namespace {

Interrupts own;
std::atomic<Interrupts*> shared{&own};

void on_signal(int signal) {
  auto& state = *shared.load();
  if (!state.saves || state.requested.exchange(true)) _exit(128 + signal);
}

void listen(int flags) {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before{};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // ignored: started by nohup
}

}  // namespace

InterruptFlag::operator bool() const { return interrupts().requested; }

void install_interrupt_handlers() {
  listen(SA_RESTART);
  signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit is reported by the write
}

void save_when_interrupted() { interrupts().saves = true; }

Interrupts& interrupts() { return *shared.load(); }

void share_interrupts(Interrupts& of_program) { shared = &of_program; }

InterruptibleReads::InterruptibleReads() { listen(0); }
InterruptibleReads::~InterruptibleReads() { listen(SA_RESTART); }

}  // namespace cloze

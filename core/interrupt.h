#pragma once
// Ctrl-C and SIGTERM: a flag that long-running work checks between steps.
#include <atomic>

namespace cloze {

/// Set by the first signal; a second one ends the program at once.
extern std::atomic<bool> interrupted;

void install_interrupt_handlers();

/// While one exists, a signal ends a blocking read, which is otherwise restarted.
struct InterruptibleReads {
  InterruptibleReads();
  ~InterruptibleReads();
};

}  // namespace cloze

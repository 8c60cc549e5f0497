#pragma once
// Ctrl-C and SIGTERM: a flag that long work looks at between steps.
#include <atomic>

namespace cloze {

/// Set by the first signal; a second one ends the program at once.
extern std::atomic<bool> interrupted;

void install_interrupt_handlers();

/// While one lives, a signal ends a read that waits, which goes on otherwise.
struct InterruptibleReads {
  InterruptibleReads();
  ~InterruptibleReads();
};

}  // namespace cloze

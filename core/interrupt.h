#pragma once
// Ctrl-C and SIGTERM: a flag that long work looks at between steps.
#include <atomic>

namespace cloze {

/// Set by the first signal; a second one ends the program at once.
extern std::atomic<bool> interrupted;

void install_interrupt_handlers();

}  // namespace cloze

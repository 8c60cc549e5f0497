#include "core/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/processes.h"

using namespace cloze;

TEST_CASE("two signals at once are one request to save, and a later one ends the program", "[core][interrupt]") {
  const pid_t child = fork();
  if (child == 0) {
    install_interrupt_handlers();
    save_when_interrupted();
    if (interrupted) _exit(1);
    raise(SIGTERM);
    raise(SIGTERM);
    if (!interrupted) _exit(2);
    usleep(300'000);
    raise(SIGINT);
    _exit(3);
  }
  CHECK(wait_for(child) == 128 + SIGINT);
}

TEST_CASE("a program that saves nothing ends at the first signal", "[core][interrupt]") {
  const pid_t child = fork();
  if (child == 0) {
    install_interrupt_handlers();
    raise(SIGHUP);
    _exit(1);
  }
  CHECK(wait_for(child) == 128 + SIGHUP);
}

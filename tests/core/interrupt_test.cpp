#include "core/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/processes.h"

using namespace cloze;

namespace {

/// What a child has written to `file` when it ends.
std::string text_of(int file) {
  std::string text;
  std::array<char, 256> block{};
  for (ssize_t n = 0; (n = read(file, block.data(), block.size())) > 0;)
    text.append(block.data(), static_cast<size_t>(n));
  return text;
}

/// Standard error becomes the end of a pipe that is written to, and a signal is to be answered there.
void answer_signals(const std::array<int, 2>& ends) {
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  install_interrupt_handlers();
  save_when_interrupted("\nsaving\n");
}

}  // namespace

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

TEST_CASE("a sentence that nobody reads any more does not end a program that saves", "[core][interrupt]") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    answer_signals(ends);
    close(ends[0]);
    raise(SIGINT);
    _exit(interrupted ? 7 : 1);
  }
  close(ends[0]);
  close(ends[1]);
  CHECK(wait_for(child) == 7);
}

TEST_CASE("the first signal is answered at once, and the one that ends the program says so", "[core][interrupt]") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    answer_signals(ends);
    raise(SIGINT);
    raise(SIGTERM);
    if (interrupts().said != 1) _exit(2);
    usleep(300'000);
    raise(SIGINT);
    _exit(3);
  }
  close(ends[1]);
  CHECK(text_of(ends[0]) == "saving\nended by a second signal\n");
  close(ends[0]);
  CHECK(wait_for(child) == 128 + SIGINT);
}

TEST_CASE("what a signal says on a terminal begins a line of its own", "[core][interrupt]") {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return;  // where the system has no terminals to give
  REQUIRE((grantpt(terminal) == 0 && unlockpt(terminal) == 0));
  const int line = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(line >= 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(line, STDERR_FILENO);
    install_interrupt_handlers();
    save_when_interrupted("\nsaving\n");
    dprintf(STDERR_FILENO, "step 1");
    raise(SIGINT);
    _exit(0);
  }
  CHECK(wait_for(child) == 0);
  const std::string wanted = "step 1\r\nsaving\r\n";
  std::string text;
  pollfd file{terminal, POLLIN, 0};
  std::array<char, 256> block{};
  while (text.size() < wanted.size() && poll(&file, 1, 5000) == 1) {
    const auto n = read(terminal, block.data(), block.size());
    if (n <= 0) break;
    text.append(block.data(), static_cast<size_t>(n));
  }
  CHECK(text == wanted);
  close(line);
  close(terminal);
}

TEST_CASE("a program that completes its output has the code of the signal, one that says that it saves has 130",
          "[core][interrupt]") {
  for (const char* sentence : {"\nsaving\n", static_cast<const char*>(nullptr)}) {
    const pid_t child = fork();
    if (child == 0) {
      install_interrupt_handlers();
      save_when_interrupted(sentence);
      raise(SIGTERM);
      _exit(interrupted ? interrupt_code() : 1);
    }
    CHECK(wait_for(child) == (sentence == nullptr ? 128 + SIGTERM : 130));
  }
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

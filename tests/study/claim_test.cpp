#include "study/execution/process.h"

#include <unistd.h>

#include <csignal>
#include <vector>

#include "core/lock.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("a run that outlives the process that started it keeps the claim") {
  const TempDir folder;
  const auto path = folder / "run.lock";
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t runner = fork();
  if (runner == 0) {
    const auto claim = Lock::take(path);
    // Deaf to the signal that it gets when its parent ends, as a run that is still saving.
    const pid_t run = start_process({"bash", "-c", "trap '' TERM; sleep 1"}, folder / "log", claim->descriptor());
    usleep(300'000);
    [[maybe_unused]] const auto told = write(ready[1], &run, sizeof run);
    kill(getpid(), SIGKILL);
  }
  close(ready[1]);
  pid_t run = 0;
  REQUIRE(read(ready[0], &run, sizeof run) == sizeof run);
  wait_for(runner);
  CHECK_FALSE(Lock::take(path));
  while (kill(run, 0) == 0) usleep(50'000);
  CHECK(Lock::take(path));
}

TEST_CASE("a process holds its own claim, and not those of the processes that were started before it") {
  const TempDir folder;
  std::optional<Lock> first = Lock::take(folder / "first.lock"), second = Lock::take(folder / "second.lock");
  const pid_t one = start_process({"sleep", "0.2"}, folder / "log", first->descriptor());
  const pid_t two = start_process({"sleep", "5"}, folder / "log", second->descriptor());
  first.reset();
  second.reset();
  wait_for(one);
  CHECK_FALSE(owner_of(folder / "first.lock"));
  CHECK(owner_of(folder / "second.lock"));
  kill(two, SIGKILL);
  wait_for(two);
  CHECK_FALSE(owner_of(folder / "second.lock"));
}

TEST_CASE("a program that a signal ended says so, and not that it ended without a word") {
  CHECK(run_process({"bash", "-c", "echo text"}).failure.empty());
  CHECK(run_process({"bash", "-c", "echo 'cloze: error: no memory' >&2; exit 1"}).failure == "no memory");
  CHECK(run_process({"bash", "-c", "kill -9 $$"}).failure == "ended by signal 9 (killed, or out of memory)");
}

#include "core/core_time.h"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/process.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

TEST_CASE("the time of threads on cores is that of all of them, and nothing where the system does not say", "[core]") {
  TempDir dir;
  dir.write("1/schedstat", "1500000000 500000000 12\n");
  dir.write("2/schedstat", "500000000 250000000 3\n");
  dir.write("3/other", "");
  const auto time = core_time(dir.path.string());
  CHECK(time.used == Approx(2));
  CHECK(time.waited == Approx(0.75));
  CHECK(core_time(dir / "none").used == 0);
  CHECK(core_time().used >= 0);
}

TEST_CASE("the share of cores is that of the time between in which threads could have run", "[core]") {
  CHECK(share_of_cores({.used = 1, .waited = 1}, {.used = 2.5, .waited = 1.5}) == Approx(0.75));
  CHECK(share_of_cores({.used = 1}, {.used = 2}) == 1);
  CHECK(share_of_cores({}, {}) == 1);
  CHECK(share_of_cores({.used = 2, .waited = 1}, {.used = 1, .waited = 2}) == 1);  // a thread has ended
}

TEST_CASE("what other processes take of the cores is not counted", "[core]") {
  if (core_time().used == 0) return;  // the system does not say
  std::vector<pid_t> others;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
    others.push_back(fork_with_default_signals());
    if (others.back() == 0)
      for (std::atomic<uint64_t> n{0};; ++n) continue;
  }
  const UndisturbedStopwatch watch;
  const auto start = Clock::now();
  while (seconds_since(start) < 0.5) continue;
  const double undisturbed = watch.seconds();
  for (const auto other : others) {
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
  CHECK(undisturbed > 0);
  CHECK(undisturbed < 0.45);
}

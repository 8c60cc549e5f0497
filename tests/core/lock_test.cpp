#include "core/lock.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

TEST_CASE("a lock is held by one process at a time and names it, and is free when it ends", "[core][lock]") {
  const TempDir folder;
  const auto path = folder / "run.lock";
  CHECK_FALSE(owner_of(path));
  {
    const auto first = Lock::take(path);
    REQUIRE(first);
    CHECK_FALSE(Lock::take(path));
    REQUIRE(owner_of(path));
    CHECK(owner_of(path)->pid == getpid());
  }
  CHECK_FALSE(owner_of(path));
  CHECK(Lock::take(path));
}

TEST_CASE("the lock of a killed process is free", "[core][lock]") {
  const TempDir folder;
  const auto path = folder / "run.lock";
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = Lock::take(path);
    if (lock) kill(getpid(), SIGKILL);
    _exit(2);
  }
  CHECK(wait_for(child) == 128 + SIGKILL);
  CHECK_FALSE(owner_of(path));
  CHECK(Lock::take(path));
}

TEST_CASE("of many processes that want a lock one gets it", "[core][lock]") {
  const TempDir folder;
  for (int round = 0; round < 10; ++round) {
    const auto path = folder / ("run-" + std::to_string(round));
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
      children.push_back(fork());
      if (children.back() != 0) continue;
      const auto lock = Lock::take(path);
      if (lock) usleep(300'000);  // until all have given up
      _exit(lock ? 1 : 0);
    }
    int owners = 0;
    for (const auto child : children) owners += wait_for(child);
    CHECK(owners == 1);
  }
}

TEST_CASE("processes that only look at a lock do not keep others from taking it", "[core][lock]") {
  const TempDir folder;
  const auto path = folder / "run.lock";
  const pid_t looker = fork();
  if (looker == 0) {
    for (int i = 0; i < 20'000; ++i) owner_of(path);
    _exit(0);
  }
  for (int round = 0; round < 200; ++round) CHECK(Lock::take(path));
  wait_for(looker);
}

TEST_CASE("a lock in a folder that is not there is answered with the path and the reason", "[core][lock]") {
  CHECK_THROWS_WITH(Lock::take("/nowhere/run.lock"), "/nowhere/run.lock: cannot be opened (No such file or directory)");
}

TEST_CASE("the second process is told who holds a lock, whose file goes with its owner", "[core][lock]") {
  const TempDir folder;
  const auto path = folder / "lock";
  {
    const auto held = Lock::take_or_fail(path, "runs/a");
    CHECK_THROWS_WITH(Lock::take_or_fail(path, "runs/a"),
                      Catch::StartsWith("runs/a: process " + std::to_string(getpid()) + " on ") &&
                          Catch::EndsWith(" works on it; wait for its end, or stop it"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  Lock::take_or_fail(path, "runs/a");  // free again
}

TEST_CASE("a lock whose owner is not written yet is held by another process", "[core][lock]") {
  const TempDir folder;
  const auto path = folder / "lock";
  const auto held = Lock::take(path);
  std::filesystem::resize_file(path, 0);
  REQUIRE(owner_of(path));
  CHECK(to_text(*owner_of(path)) == "another process");
}

TEST_CASE("of many processes that take a lock in turn, whose file goes, no two hold it at once", "[core][lock]") {
  const TempDir folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    bool alone = true;
    for (int round = 0; round < 300; ++round) {
      const auto lock = Lock::take(folder / "lock", LockFile::goes);
      if (!lock) continue;
      alone = alone && std::filesystem::create_directory(folder / "inside");
      std::filesystem::remove(folder / "inside");
    }
    _exit(alone ? 0 : 1);
  }
  for (const auto child : children) CHECK(wait_for(child) == 0);
}

TEST_CASE("a lock whose folder was replaced leaves the lock of the next owner", "[core][lock]") {
  const TempDir folder;
  const auto path = folder / "run/lock";
  std::filesystem::create_directory(folder / "run");
  auto first = std::optional(Lock::take_or_fail(path, "run"));
  std::filesystem::remove_all(folder / "run");
  std::filesystem::create_directory(folder / "run");
  const auto second = Lock::take_or_fail(path, "run");
  first.reset();
  CHECK(std::filesystem::exists(path));
  CHECK_FALSE(Lock::take(path));
}

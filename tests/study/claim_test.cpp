#include "study/claim.h"
#include "study/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <vector>

#include "core/error.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

int exit_code_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a claim is held by one process at a time and names it, and is free when it ends") {
  const TempDir folder;
  const auto path = folder / "run.lock";
  CHECK_FALSE(owner_of(path));
  {
    const auto first = Claim::take(path);
    REQUIRE(first);
    CHECK_FALSE(Claim::take(path));
    REQUIRE(owner_of(path));
    CHECK(owner_of(path)->pid == getpid());
  }
  CHECK_FALSE(owner_of(path));
  CHECK(Claim::take(path));
}

TEST_CASE("the claim of a killed process is free") {
  const TempDir folder;
  const auto path = folder / "run.lock";
  const pid_t child = fork();
  if (child == 0) {
    const auto claim = Claim::take(path);
    if (claim) kill(getpid(), SIGKILL);
    _exit(2);
  }
  CHECK(exit_code_of(child) == -1);
  CHECK_FALSE(owner_of(path));
  CHECK(Claim::take(path));
}

TEST_CASE("a run that outlives the process that started it keeps the claim") {
  const TempDir folder;
  const auto path = folder / "run.lock";
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t runner = fork();
  if (runner == 0) {
    const auto claim = Claim::take(path);
    // Deaf to the signal that it gets when its parent ends, as a run that is still saving.
    const pid_t run = start_process({"bash", "-c", "trap '' TERM; sleep 1"}, "/dev/null", claim->descriptor());
    usleep(300'000);
    [[maybe_unused]] const auto told = write(ready[1], &run, sizeof run);
    kill(getpid(), SIGKILL);
  }
  pid_t run = 0;
  REQUIRE(read(ready[0], &run, sizeof run) == sizeof run);
  exit_code_of(runner);
  CHECK_FALSE(Claim::take(path));
  while (kill(run, 0) == 0) usleep(50'000);
  CHECK(Claim::take(path));
}

TEST_CASE("a process holds its own claim, and not those of the processes that were started before it") {
  const TempDir folder;
  std::optional<Claim> first = Claim::take(folder / "first.lock"), second = Claim::take(folder / "second.lock");
  const pid_t one = start_process({"sleep", "0.2"}, "/dev/null", first->descriptor());
  const pid_t two = start_process({"sleep", "5"}, "/dev/null", second->descriptor());
  first.reset();
  second.reset();
  waitpid(one, nullptr, 0);
  CHECK_FALSE(owner_of(folder / "first.lock"));
  CHECK(owner_of(folder / "second.lock"));
  kill(two, SIGKILL);
  waitpid(two, nullptr, 0);
  CHECK_FALSE(owner_of(folder / "second.lock"));
}

TEST_CASE("of many processes that want a claim one gets it") {
  const TempDir folder;
  for (int round = 0; round < 10; ++round) {
    const auto path = folder / ("run-" + std::to_string(round));
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
      children.push_back(fork());
      if (children.back() != 0) continue;
      const auto claim = Claim::take(path);
      if (claim) usleep(300'000);  // until all have given up
      _exit(claim ? 1 : 0);
    }
    int owners = 0;
    for (const auto child : children) owners += exit_code_of(child);
    CHECK(owners == 1);
  }
}

TEST_CASE("processes that only look at a claim do not keep others from taking it") {
  const TempDir folder;
  const auto path = folder / "run.lock";
  const pid_t looker = fork();
  if (looker == 0) {
    for (int i = 0; i < 20'000; ++i) owner_of(path);
    _exit(0);
  }
  for (int round = 0; round < 200; ++round) CHECK(Claim::take(path));
  exit_code_of(looker);
}

TEST_CASE("a claim in a folder that is not there is answered with the path and the reason") {
  CHECK_THROWS_WITH(Claim::take("/nowhere/run.lock"),
                    "/nowhere/run.lock: cannot be opened (No such file or directory)");
}

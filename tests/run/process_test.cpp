#include "run/process.h"

#include "core/log.h"
#include "tests/support/catch.h"
#include "tests/support/logged.h"
#include "tests/support/tiny.h"

using namespace cloze;

TEST_CASE("threads that others keep from their cores are reported, with how long they waited", "[run][process]") {
  CHECK(
      shared_cores_warning({.used = 1, .waited = 1}, {.used = 2.5, .waited = 1.5}) ==
      "threads waited for a core 25 % of the time: end the other processes on these cores, or expect steps to take so "
      "much longer");
  CHECK(shared_cores_warning({.used = 1, .waited = 1}, {.used = 3, .waited = 1.1}).empty());
  CHECK(shared_cores_warning({}, {.used = 0.3, .waited = 0.3}).empty());  // too short a time
}

TEST_CASE("more threads than cores are reported", "[run][process]") {
  TempDir dir;
  const auto cores = usable_cores();
  const auto log = logged(dir, [&] { configure_threads(cores + 1); });
  CHECK_THAT(log,
             Catch::Contains(concat("train.threads is ", cores + 1, ", and this process may use ", cores, " core")) &&
                 Catch::Contains("lower it, since threads that share a core wait for each other"));
  CHECK(logged(dir, [&] { configure_threads(cores); }).empty());
  configure_threads(2);
}

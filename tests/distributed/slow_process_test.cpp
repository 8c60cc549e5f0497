#include "distributed/slow_process.h"

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("a process for which another one waits a fifth of the time is named at the third time in a row") {
  SlowProcess slow;
  CHECK(!slow.look({3, 0.5, 3}, 10));
  CHECK(!slow.look({3, 0.5, 3}, 10));
  CHECK(slow.look({3, 0.5, 3}, 10) == 1);
  CHECK(!slow.look({3, 0.5, 3}, 10));  // said once, and again when it has lasted as long
}

TEST_CASE("a process that is slow now and then, and talk that takes as long for all, are no slow process") {
  SlowProcess slow;
  for (int i = 0; i < 5; ++i) {
    CHECK(!slow.look({3, 0, 3}, 10));
    CHECK(!slow.look({0, 3, 3}, 10));
    CHECK(!slow.look({3, 0, 3}, 10));
    CHECK(!slow.look({5, 4, 5}, 10));
  }
}

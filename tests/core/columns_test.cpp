#include "core/columns.h"

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("widths are counted in characters, and a cut keeps characters whole", "[core]") {
  CHECK(width_of("größe ±") == 7);
  CHECK(cut("größe", 3) == "grö");
  CHECK(cut("größe", 5) == "größe");
  CHECK(cut("größe", 9) == "größe");
  CHECK(cut("ä", 0).empty());
}

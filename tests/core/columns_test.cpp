
#include "core/text.h"

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("widths are counted in characters, and a cut keeps characters whole", "[core]") {
  CHECK(width_of("größe ±") == 7);
  CHECK(cut("größe", 3) == "grö");
  CHECK(cut("größe", 5) == "größe");
  CHECK(cut("größe", 9) == "größe");
  CHECK(cut("ä", 0).empty());
}

TEST_CASE("colours take no columns, and lines are broken as without them", "[core]") {
  CHECK(width_of("\033[31m{größe}\033[0m") == 7);
  CHECK(width_of("\033[0;31mred\033[m") == 3);
  CHECK(width_of("\033[31") == 4);  // no colour
  CHECK(width_of("\033[2K") == 4);
  CHECK(wrapped("", "one \033[31mtwo\033[0m three", 8, 2) == "one \033[31mtwo\033[0m\n  three\n");
}

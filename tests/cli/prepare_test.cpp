// What `prepare` says on a terminal, and asks of its options.
#include "tests/cli/program.h"

TEST_CASE("one of a thing is counted in the singular", "[cli]") {
  TempDir dir;
  const auto text = dir.write("a.txt", "The cat sat on the mat.\nThen it slept.\n\nA dog barked at the moon.\n\xFF\n");
  const auto answer = cloze("prepare " + text + " --vocab-size 40 --held-out 0.4 --out " + dir / "out");
  INFO(answer.text);
  REQUIRE(answer.code == 0);
  CHECK_THAT(answer.text, Catch::Contains(": created, 1 document, ") && Catch::Contains("; held out: 1 document, "));
  CHECK_THAT(answer.text, Catch::Contains("1 invalid UTF-8 sequence was replaced by U+FFFD"));
  CHECK_THAT(cloze("prepare --help").text,
             Catch::Contains("--character-coverage") && !Catch::Contains("suits alphabets"));
}

TEST_CASE("on a terminal, nothing is left of a progress that was over at once", "[cli]") {
  constexpr int has_no_script = 77;
  TempDir dir;
  const auto text = dir.write("a.txt", "The cat sat on the mat.\nThen it slept.\n");
  const auto answer =
      cloze("prepare " + text + " --vocab-size 40 --held-out 0 --out " + dir / "out" + "' /dev/null < /dev/null",
            "command -v script > /dev/null || exit 77; exec script -qec '");
  if (answer.code == has_no_script) return;
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK_THAT(answer.text, Catch::Contains(": created,") && !Catch::Contains("noting what the files hold"));
}

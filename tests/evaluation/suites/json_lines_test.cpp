// Lines of suites with their places, and the names of files.
#include "evaluation/suites/json_lines.h"

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// The first line of a file with this content.
SuiteLine line_of(const std::string& content) {
  const TempDir dir;
  return *SuiteLines(dir.write("made-up.jsonl", content)).next();
}

template <class Read>
void check_refused(const Read& read, const std::string& sentence) {
  CHECK_THROWS_AS(read(), DataError);
  CHECK_THROWS_WITH(read(), Contains(sentence));
}

}  // namespace

TEST_CASE("lines are read one after another with their numbers, blank ones skipped", "[suites]") {
  const TempDir dir;
  SuiteLines lines(dir.write("made-up.jsonl", "\n{\"a\": 1}\n \t\u00A0\u3000\u2028\n{\"a\": 2}"));
  const auto first = lines.next(), second = lines.next();
  REQUIRE(first);
  REQUIRE(second);
  CHECK_THAT(first->where, Catch::EndsWith("made-up.jsonl:2"));
  CHECK_THAT(second->where, Catch::EndsWith("made-up.jsonl:4"));
  CHECK(second->integer("a") == 2);
  CHECK_FALSE(lines.next());
  CHECK(first_line(dir / "made-up.jsonl")->integer("a") == 1);
  CHECK_FALSE(first_line(dir.write("list.jsonl", "[1]\n")));
  CHECK_FALSE(first_line(dir.write("blank.jsonl", "\n\n")));
}

TEST_CASE("a line of a cut file is told from one of another kind", "[suites]") {
  check_refused([] { return line_of("{\"a\": \"b"); }, "made-up.jsonl:1: not a JSON object");
  check_refused([] { return line_of("{\"a\": \"b"); }, "; the file is cut off, get it again");
  check_refused([] { return line_of("a\tb"); }, "; JSON lines have one object per line");
}

TEST_CASE("a key that an object has twice is refused with its line, in objects inside others too", "[suites]") {
  check_refused([] { return line_of(R"({"a": 1, "b": 2, "a": 3})"); }, "made-up.jsonl:1: has the key `a` twice");
  check_refused([] { return line_of(R"({"a": [{"b": {"c": 1, "c": 1}}]})"); },
                "made-up.jsonl:1: has the key `c` twice");
  CHECK(line_of(R"({"a": {"b": 1}, "b": [{"a": 1}, {"a": 2}]})").has("b"));
}

TEST_CASE("a key that is absent or of another type is named with its line", "[suites]") {
  const auto line =
      line_of(R"({"text": "x", "number": 2.5, "whole": 3, "list": ["a", "b"], "mixed": ["a", 1], "none": null})");
  CHECK(line.text("text") == "x");
  CHECK(line.number("number") == 2.5);
  CHECK(line.number("whole") == 3);
  CHECK(line.integer("whole") == 3);
  CHECK(line.texts("list") == std::vector<std::string>{"a", "b"});
  check_refused([&] { return line.text("absent"); }, "made-up.jsonl:1: has no `absent`, which the other lines");
  check_refused([&] { return line.text("whole"); }, "`whole` is 3; it must be a text");
  check_refused([&] { return line.number("text"); }, "`text` is 'x'; it must be a number");
  check_refused([&] { return line.integer("number"); }, "`number` is 2.5; it must be an integer");
  check_refused([&] { return line.texts("text"); }, "`text` is 'x'; it must be a list of texts");
  check_refused([&] { return line.texts("mixed"); }, "`mixed` holds 1; it must be a list of texts");
  check_refused([&] { return line.number("none"); }, "`none` is null; it must be a number");
  check_refused([&] { return line.text("list"); }, "`list` is a list; it must be a text");
}

TEST_CASE("a text of white space alone, of whatever script, is empty", "[suites]") {
  for (const std::string space : {" ", "\u00A0", "\u3000", "\u2028"})
    check_refused([&] { return line_of("{\"text\": \"" + space + "\"}").filled("text"); }, "`text` is empty");
}

TEST_CASE("the name of a suite is that of its file or folder without its endings", "[suites]") {
  CHECK(suite_name("suites/blimp.jsonl.xz") == "blimp");
  CHECK(suite_name("suites/blimp.jsonl") == "blimp");
  CHECK(suite_name("suites/words.json") == "words");
  CHECK(suite_name("a.b/words.tsv.gz") == "words");
  CHECK(suite_name("suites/blimp/") == "blimp");
  CHECK(suite_name("suites/v1.5") == "v1.5");
  CHECK(suite_name(".jsonl") == ".jsonl");
  CHECK(is_json_lines("a.jsonl.gz"));
  CHECK_FALSE(is_json_lines("a.json"));
}

// Objects of JSON lines: blank lines, lines that are none, and a file that is cut off.
#include "data/reading/json_lines.h"

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::EndsWith;

TEST_CASE("lines that are no object are refused with their place, or handed over and left out", "[data]") {
  const TempDir dir;
  const auto file = dir.write("a.jsonl", "{\"a\": 1}\n\n[2]\n{\"a\": 3}\n");
  JsonLines strict(file);
  CHECK((*strict.next_object())["a"] == 1);
  CHECK_THROWS_WITH(strict.next_object(),
                    EndsWith("a.jsonl:3: not a JSON object; JSON lines have one object per line"));
  JsonLines lenient(file);
  std::vector<std::string> faults;
  const auto leave_out = [&](const std::string& fault) { faults.push_back(fault); };
  CHECK((*lenient.next_object(leave_out))["a"] == 1);
  CHECK((*lenient.next_object(leave_out))["a"] == 3);
  CHECK(lenient.number == 4);
  CHECK_FALSE(lenient.next_object(leave_out));
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], EndsWith("a.jsonl:3: not a JSON object"));
}

TEST_CASE("a file is called cut off where its last line ends in the middle of an object, and not before", "[data]") {
  const TempDir dir;
  const auto fault = [&](const std::string& content) {
    JsonLines lines(dir.write("a.jsonl", content));
    try {
      while (lines.next_object()) continue;
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(
      fault("{\"a\": 1}\n{\"a\": [1"),
      EndsWith(":2: not a JSON object (column 9: the text ends in the middle); the file is cut off, get it again"));
  CHECK_THAT(fault("{\"a\": [1\n{\"a\": 1}\n"),
             EndsWith(":1: not a JSON object (column 9: the text ends in the middle); JSON lines have one object per "
                      "line"));
}

TEST_CASE("an object of a line has each key once", "[data]") {
  const TempDir dir;
  JsonLines lines(dir.write("a.jsonl", "{\"a\": 1, \"a\": 2}\n"));
  CHECK_THROWS_WITH(lines.next_object(), EndsWith("a.jsonl:1: has the key `a` twice; remove one of the two"));
}

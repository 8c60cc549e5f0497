#include "core/json.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("JSON is read to a depth of 64, not counting brackets in strings", "[core]") {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(parse_json(nested(64)).is_array());
  CHECK(json_fault(nested(64)).empty());
  CHECK(parse_json(nested(65)).is_discarded());
  CHECK(json_fault("[\n" + nested(64) + "]") == " (line 2, column 64: nested deeper than 64 lists and objects)");
  const std::string quoted = R"({"a\\": "\"[[", "b": ")" + std::string(100, '{') + R"("})";
  CHECK(parse_json(quoted)["b"] == std::string(100, '{'));
  std::string siblings = "[";
  for (int i = 0; i < 100; ++i) siblings += "{},";
  CHECK(parse_json(siblings + "[]]").size() == 101);
  CHECK(too_deep("[[[]]]", 3) == std::string_view::npos);
  CHECK(too_deep("[[[]]]", 2) == 2);
}

TEST_CASE("invalid JSON is reported with line and column, and a line of JSON lines with its column", "[core]") {
  CHECK(json_fault("{\"a\": 1,\n \"b\": x}") == " (line 2, column 7: no JSON)");
  CHECK(json_fault("{\"a\": [1") == " (line 1, column 9: the text ends in the middle)");
  CHECK(json_fault("{\"a\": 1e999}") == " (it holds a number that is too large)");
  CHECK(json_line_fault("{\"a\": [1") == " (column 9: the text ends in the middle)");
  CHECK(json_line_fault("{\"a\": 1e999}") == " (it holds a number that is too large)");
  CHECK(json_line_fault("{}").empty());
  CHECK(json_fault("") == " (line 1, column 1: the text ends in the middle)");
}

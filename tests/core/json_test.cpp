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
  CHECK(json_line_fault("{\"a\": \"\\ud83d!\"}") ==
        " (column 14: an escaped half of a character, whose other half is missing)");
  CHECK(json_fault("\xFF\xFE{") == " (UTF-16, not UTF-8; convert it)");
  CHECK(json_line_fault("{}").empty());
  CHECK(json_fault("") == " (line 1, column 1: the text ends in the middle)");
}

TEST_CASE("JSON of more bytes or values than memory has room for is refused before it is parsed", "[core]") {
  std::string many = "[";
  for (size_t i = 0; i < max_json_values; ++i) many += "0,";
  many += "0]";
  CHECK(parse_json(many).is_discarded());
  CHECK(json_fault(many) == " (more than 20000000 values)");
  CHECK(parse_json_line(many, "a").is_discarded());
  many.assign(max_json_bytes + 1, ' ');
  CHECK(json_fault(many) == " (longer than 256 MiB)");
}

TEST_CASE("JSON is written with U+FFFD for what is not UTF-8, and its keys may keep their order", "[core]") {
  const nlohmann::json name{{"out", "caf\xe9"}};
  CHECK(json_text(name) == "{\"out\":\"caf\xef\xbf\xbd\"}");
  CHECK(json_text(name, 1) == "{\n \"out\": \"caf\xef\xbf\xbd\"\n}");
  const std::string ordered = R"({"b":1,"a":2})";
  CHECK(json_text(parse_ordered_json(ordered)) == ordered);
  CHECK(json_text(parse_json(ordered)) == R"({"a":2,"b":1})");
  CHECK(parse_ordered_json(std::string(65, '[') + std::string(65, ']')).is_discarded());
}

TEST_CASE("what a JSON pointer names is found, and nothing where there is no such value", "[json]") {
  const auto record = parse_json(R"({"data": {"tokens": 7, "folder": "a"}, "steps": [1, 2]})");
  CHECK(value_at(record, "/data/tokens") == 7);
  CHECK(value_at(record, "/steps/1") == 2);
  CHECK(string_at(record, "/data/folder") == "a");
  for (const auto* absent : {"/data/tokens/x", "/data/none", "/steps/9", "/steps/x"})
    CHECK(value_at(record, absent).is_null());
  CHECK(string_at(record, "/data/tokens").empty());
  CHECK(value_at(parse_json("[1"), "/data").is_null());
}

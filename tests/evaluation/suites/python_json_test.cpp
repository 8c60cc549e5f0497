// JSON against what Python's module json reads and writes.
#include "evaluation/suites/python_json.h"

#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "tests/evaluation/suites/reference.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

PythonJson parsed(const std::string& text) { return parse_python_json(text, "made-up.json"); }

void check_text_refused(const std::string& text, const std::string& sentence) {
  INFO(text.substr(0, 200));
  CHECK_THROWS_AS(parsed(text), DataError);
  CHECK_THROWS_WITH(parsed(text), Contains(sentence));
}

}  // namespace

TEST_CASE("what json.dumps writes is read and written again with the same bytes", "[suites][python]") {
  for (const auto& one : reference("python_files.json", "values")) {
    const auto line = one["line"].get<std::string>(), indented = one["indented"].get<std::string>();
    CHECK(python_json(parsed(line)) == line);
    CHECK(python_json(parsed(indented)) == line);
    CHECK(python_json(parsed(line), 2) == indented);
  }
}

TEST_CASE("JSON of other programs is written as Python writes it", "[suites][python]") {
  const auto spaced = reference("python_files.json", "spaced");
  CHECK(python_json(parsed(spaced["text"])) == spaced["line"].get<std::string>());
}

TEST_CASE("a float has the digits of its repr", "[suites][python]") {
  for (const auto& one : reference("python_files.json", "numbers"))
    CHECK(python_repr(parsed(one.get<std::string>()).number()) == one.get<std::string>());
}

TEST_CASE("members are found by their names, and values of another kind have none", "[suites][python]") {
  const auto json = parsed(R"({"a": [1, "x"], "b": {"c": 2.5}})");
  REQUIRE(json.find("b"));
  CHECK(json.find("b")->find("c")->number() == 2.5);
  CHECK(json.find("c") == nullptr);
  CHECK(json.find("a")->find("b") == nullptr);
  CHECK(json.find("a")->list()->at(0).number() == 1);
  CHECK(*json.find("a")->list()->at(1).text() == "x");
  CHECK(std::isnan(json.find("a")->number()));
  CHECK(json.find("a")->text() == nullptr);
}

TEST_CASE("a text that is no JSON is refused with its file and its line", "[suites][python]") {
  check_text_refused("{\"a\": 1,\n\"b\": [2", "made-up.json:2: the JSON ends in the middle");
  check_text_refused("", "made-up.json: the JSON ends in the middle");
  check_text_refused("\"abc", "the JSON ends in the middle");
  check_text_refused("\"abc\\", "the JSON ends in the middle");
  check_text_refused("{\"a\": 1,\n\n\"a\": 2}", "made-up.json:3: has the key 'a' twice");
  check_text_refused("[1] 2", "made-up.json: has text after its value");
  check_text_refused("[1, 2,]", "made-up.json: is no JSON");
  check_text_refused("{\"a\" 1}", "lacks ':'");
  check_text_refused("[01]", "lacks ']'");
  check_text_refused("[1. ]", "is no JSON");
  check_text_refused("\"a\nb\"", "has a control character in a string");
  check_text_refused(R"("\x41")", "has an unknown escape '\\x'");
  check_text_refused(R"("\u12g4")", "has an escape \\u without four hexadecimal digits");
  check_text_refused(R"("\ud83e")", "has half of a surrogate pair");
  check_text_refused(R"("\ud83e\u0041")", "has half of a surrogate pair");
  check_text_refused("\"\xff\"", "made-up.json: is not UTF-8");
  check_text_refused(std::string(100'000, '['), "is nested deeper than ");
  std::string values = "[0";
  for (size_t i = 0; i < max_json_values; ++i) values += ",0";
  check_text_refused(values + "]", "made-up.json: is longer than 256 MiB, or has more than 20000000 values");
}

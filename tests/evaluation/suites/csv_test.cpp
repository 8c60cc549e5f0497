// Tables against what pandas reads.
#include "evaluation/suites/csv.h"

#include <cmath>

#include "core/error.h"
#include "tests/evaluation/suites/reference.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;

TEST_CASE("a table has the columns, fields, numbers and gaps that pandas finds in it", "[suites][csv]") {
  for (const auto& one : reference("python_files.json", "tables")) {
    const auto text = one["text"].get<std::string>();
    INFO(text);
    const auto table = parse_csv(text, "made-up.csv");
    CHECK(table.columns == one["columns"].get<std::vector<std::string>>());
    CHECK(table.rows == one["rows"].get<std::vector<std::vector<std::string>>>());
    const auto found = table.numbers("a"), wanted = numbers_of(one["a"]);
    REQUIRE(found.size() == wanted.size());
    for (size_t i = 0; i < found.size(); ++i) CHECK((found[i] == wanted[i] || std::isnan(found[i] + wanted[i])));
    const auto fields = table.text("b");
    for (size_t i = 0; i < fields.size(); ++i) CHECK(is_missing(fields[i]) == one["missing_b"][i].get<bool>());
  }
}

TEST_CASE("a row knows the line at which it begins, also after fields of several lines", "[suites][csv]") {
  const auto table = parse_csv("a,b\n\n\"x\n\ny\",1\n2,3\n", "made-up.csv");
  CHECK(table.lines == std::vector<uint64_t>{3, 6});
  CHECK(table.find("b") == 1u);
  CHECK_FALSE(table.find("c"));
  CHECK(parse_csv("a,b\r\"1\"2,3\r", "made-up.csv").rows == std::vector<std::vector<std::string>>{{"12", "3"}});
}

TEST_CASE("a damaged table is refused with the line of the damage", "[suites][csv]") {
  const auto refused = [](const std::string& text, const std::string& sentence) {
    INFO(text);
    CHECK_THROWS_AS(parse_csv(text, "made-up.csv").numbers("a"), DataError);
    CHECK_THROWS_WITH(parse_csv(text, "made-up.csv").numbers("a"), Contains(sentence));
  };
  refused("", "made-up.csv: is empty; a table begins with a line of column names");
  refused("\n\n", "is empty");
  refused("a,b\n1,2\n3", "made-up.csv:3: has 1 of the 2 fields of the header; the file may be cut");
  refused("a,b\n1,2,3\n", "made-up.csv:2: has 3 of the 2 fields");
  refused("a,b\n1,2\n3,\"x\ny", "made-up.csv:3: a quote begins here and does not end; the file may be cut");
  refused("a,b\n1,2\n3x,4\n", "made-up.csv:3: column 'a' has '3x', which is no number");
  refused("b,c\n1,2\n", "made-up.csv: has no column 'a'");
}

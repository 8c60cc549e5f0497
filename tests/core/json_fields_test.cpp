// JSON files by one list of their fields.
#include "core/json_fields.h"

#include <cmath>
#include <map>

#include "core/json.h"
#include "tests/support/catch.h"

namespace cloze {

/// A struct inside another one, as in a list.
struct TestShelf {
  std::string name{};
  int64_t books = 0;
};
template <class V>
void describe(V& v, TestShelf& s) {
  v("name", s.name);
  v.unless("books", s.books, 7);
}

struct TestRoom {
  uint64_t visits = 0;
  double warmth = 0;
  std::vector<double> readings{};
  std::vector<TestShelf> shelves{};
  std::map<std::string, TestShelf> by_name{};
  std::optional<TestShelf> best{};
  bool is_open = true;
  std::string key{};
};
template <class V>
void describe(V& v, TestRoom& r) {
  v.count("visits", r.visits);
  v.number("warmth", r.warmth);
  v.numbers("readings", r.readings);
  v("shelves", r.shelves);
  v("by_name", r.by_name);
  v.maybe("best", r.best);
  v.or_else("is_open", r.is_open, false);
  v.section_if("door", !r.key.empty(), [&](auto& door) { door("key", r.key); });
}

}  // namespace cloze

using namespace cloze;
using nlohmann::json;

TEST_CASE("what is written by a list of fields is read by it, whatever its types are", "[core][json]") {
  const TestRoom room{.visits = 3,
                      .warmth = 20.5,
                      .readings = {1.5, NAN},
                      .shelves = {{"a", 1}, {"b", 7}},
                      .by_name = {{"c", {"c", 2}}},
                      .best = TestShelf{"d", 4},
                      .is_open = false,
                      .key = "k"};
  const auto text = json_text(json(room));
  CHECK(text ==
        R"({"best":{"books":4,"name":"d"},"by_name":{"c":{"books":2,"name":"c"}},"door":{"key":"k"},"is_open":false,)"
        R"("readings":[1.5,null],"shelves":[{"books":1,"name":"a"},{"name":"b"}],"visits":3,"warmth":20.5})");
  const auto read = parse_json(text).get<TestRoom>();
  CHECK(json_text(json(read)) == text);
  CHECK(std::isnan(read.readings[1]));
  CHECK(read.shelves[1].books == 7);
}

TEST_CASE("fields that may be missing keep what is said of them, and others are damage", "[core][json]") {
  const auto whole = parse_json(R"({"visits": 1, "warmth": null, "readings": [], "shelves": [], "by_name": {}})");
  const auto room = whole.get<TestRoom>();
  CHECK((!room.is_open && !room.best && room.key.empty() && std::isnan(room.warmth)));
  const auto refused = [&](const char* pointer, const json& value) {
    auto damaged = whole;
    damaged[json::json_pointer(pointer)] = value;
    CHECK_THROWS(parse_json(json_text(damaged)).get<TestRoom>());
  };
  refused("/visits", -1);
  refused("/visits", 1e300);
  refused("/visits", std::numeric_limits<uint64_t>::max());
  refused("/warmth", "warm");
  refused("/readings", 3);
  refused("/readings", json::array({"x"}));
  refused("/shelves", json::array({json::object()}));
  refused("/is_open", "yes");
  refused("/best", json::array());
  refused("/door", json::object());
  CHECK_THROWS(json("a room").get<TestRoom>());
  auto without = whole;
  without.erase("readings");
  CHECK_THROWS(without.get<TestRoom>());
}

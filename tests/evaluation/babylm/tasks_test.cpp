// Files of BabyLM's evaluation data that are damaged or of other kinds.
#include "evaluation/babylm/tasks.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;

namespace {

std::vector<BabylmItem> items_of(BabylmFormat format, const std::string& lines,
                                 const std::string& name = "made_up.jsonl") {
  const TempDir dir;
  dir.write("data/" + name, lines);
  dir.write("data/notes.txt", "no items");
  return read_babylm_items(dir / "data", {"task", "data", format});
}

void check_refused(BabylmFormat format, const std::string& lines, const std::string& sentence) {
  INFO(lines);
  CHECK_THROWS_AS(items_of(format, lines), DataError);
  CHECK_THROWS_WITH(items_of(format, lines), Contains(sentence));
}

const std::string pair = R"({"sentence_good": "the owl sleeps", "sentence_bad": "the owl sleep"})";

}  // namespace

TEST_CASE("a pair without a field is of the supplement, by the name of its file", "[babylm]") {
  const auto items = items_of(BabylmFormat::blimp, pair + "\n", "turns.jsonl");
  REQUIRE(items.size() == 1);
  CHECK(items[0].uid == "turns");
  CHECK(items[0].groups[0] == std::pair<std::string, std::string>{"field", "supplement"});
  CHECK(items[0].candidates[1].sentence == "the owl sleep");
  CHECK(items[0].candidates[1].completion == "the owl sleep");
  CHECK_FALSE(items[0].candidates[1].prefix);
}

TEST_CASE("both targets of EWoK follow the first context, and encoders read a context of their own", "[babylm]") {
  const auto items = items_of(
      BabylmFormat::ewok,
      R"({"Domain": "heat", "ContextType": "direct", "ContextDiff": "swap", "TargetDiff": "x", )"
      R"("Context1": "It burns.", "Context2": "It froze.", "Target1": "It is hot.", "Target2": "It is cold."})");
  REQUIRE(items[0].candidates.size() == 2);
  CHECK(items[0].candidates[1].sentence == "It burns. It is cold.");
  CHECK(items[0].candidates[1].completion == " It is cold.");
  CHECK(items[0].candidates[1].prefix == "It froze.");
}

TEST_CASE("an item that is cut, lacks a field or has an empty side is refused with its line", "[babylm]") {
  using enum BabylmFormat;
  check_refused(blimp, pair + "\n" + pair.substr(0, 30), "made_up.jsonl:2: the JSON ends in the middle");
  check_refused(blimp, R"({"sentence_good": "a"})", "made_up.jsonl:1: lacks 'sentence_bad'");
  check_refused(blimp, R"({"sentence_good": "a", "sentence_bad": 3})", "made_up.jsonl:1: 'sentence_bad' is no text");
  check_refused(blimp, pair + "\n" + R"({"sentence_good": "a", "sentence_bad": " "})",
                "made_up.jsonl:2: candidate 2 is empty");
  check_refused(wug, R"({"sentences": "a\tb\tc", "ratio": 0.5})", "'sentences' has 3 sentences; a pair has two");
  check_refused(wug, R"({"sentences": "a\tb", "ratio": "x"})", "'ratio' is no number");
  check_refused(wug, R"({"sentences": "a\t", "ratio": 0.5})", "candidate 2 is empty");
  check_refused(entity_tracking, R"({"numops": 1.5, "options": ["a", "b"], "input_prefix": "x"})",
                "'numops' is no whole number");
  check_refused(entity_tracking, R"({"numops": 1, "options": ["a"], "input_prefix": "x"})",
                "has 1 candidates; a choice needs 2 or more");
  check_refused(entity_tracking, R"({"numops": 1, "options": ["a", 2], "input_prefix": "x"})", "an option is no text");
  check_refused(comps, R"({"prefix_acceptable": "An owl", "prefix_unacceptable": "A cup", "property_phrase": ""})",
                "candidate 1 is empty");
  const TempDir dir;
  dir.write("data/notes.txt", "");
  CHECK_THROWS_WITH(read_babylm_items(dir / "data", {"blimp", "data", blimp}),
                    Contains("data: has no items; blimp reads .jsonl files in it"));
}

TEST_CASE("an empty file of a task is refused, not passed over", "[babylm]") {
  const TempDir dir;
  dir.write("data/agreement.jsonl", pair + "\n");
  dir.write("data/order.jsonl", "");
  const BabylmDataset dataset{"blimp", "data", BabylmFormat::blimp};
  CHECK_THROWS_AS(read_babylm_items(dir / "data", dataset), DataError);
  CHECK_THROWS_WITH(read_babylm_items(dir / "data", dataset), Contains("data/order.jsonl: is empty; get it again"));
}

TEST_CASE("sides that are the same are kept, as in the published BLiMP", "[babylm]") {
  const auto items = items_of(BabylmFormat::blimp, R"({"sentence_good": "an owl", "sentence_bad": "an owl"})");
  CHECK(items[0].candidates[0].sentence == items[0].candidates[1].sentence);
}

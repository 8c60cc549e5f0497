// Rows that were saved, and numbers in them that lead elsewhere.
#include "tasks/rows/prepared_task.h"

#include <functional>

#include "core/fingerprint.h"
#include "data/store/manifest.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

constexpr int64_t task_labels = 3;

/// An item with its rows.
struct ItemRows {
  TaskItem item{};
  std::vector<TaskRow> rows{};
};

using Change = std::function<void(ItemRows&)>;

ItemRows made_rows(AnyTaskKind kind, const TaskItem& item) {
  const TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  RowOptions options{.kind = kind, .num_labels = task_labels, .max_length = 12};
  if (kind->reads_windows) options.truncation = Windows{.stride = 2};
  ItemRows made{.item = item};
  RowCounts counts;
  TaskRowMaker(tokenizer, special_token_template(tokenizer), options).add(item, 0, made.rows, counts);
  return made;
}

/// Rows as they are made fit; after each of these changes they do not.
void check_changes(AnyTaskKind kind, const TaskItem& item, const std::vector<Change>& changes) {
  INFO(name_of(kind));
  const auto made = made_rows(kind, item);
  CHECK(rows_fit(made.item, made.rows, kind, task_labels));
  for (size_t i = 0; i < changes.size(); ++i) {
    INFO(i);
    auto changed = made;
    changes[i](changed);
    CHECK_FALSE(rows_fit(changed.item, changed.rows, kind, task_labels));
  }
}

/// The same prepared part with a text in the place of another, under the checksums of the new content.
void replace_in_part(const TempDir& dir, const std::string& from, const std::string& to) {
  auto content = read_file(dir / "rows/valid.jsonl");
  REQUIRE(content.find(from) != std::string::npos);
  content.replace(content.find(from), from.size(), to);
  dir.write("rows/valid.jsonl", content);
  auto manifest = read_manifest(dir / "rows");
  manifest.made_from["items"]["valid.jsonl"] = hash_hex(content);
  write_manifest(dir / "rows", manifest);
}

}  // namespace

TEST_CASE("rows fit their item where every number is a place, a word, a label or a byte of it", "[tasks]") {
  const auto pair = pair_item("a b c", "d e", label_answer(2));
  check_changes(
      "classification", pair,
      {[](ItemRows& of) { of.rows.clear(); }, [](ItemRows& of) { of.rows[0].ids.clear(); },
       [](ItemRows& of) { of.rows[0].class_token = 8; }, [](ItemRows& of) { of.rows[0].class_token = -1; },
       [](ItemRows& of) { of.rows[0].first_end = 9; },
       [](ItemRows& of) { of.rows[0].second_begin = of.rows[0].second_end + 1; },
       [](ItemRows& of) { of.rows[0].segments.push_back(0); }, [](ItemRows& of) { of.rows[0].segments[0] = 3; },
       [](ItemRows& of) { of.rows[0].gold.label = 3; }, [](ItemRows& of) { of.item.gold = label_answer(3); },
       [](ItemRows& of) { of.item.gold = value_answer(1); }});
  check_changes(
      "multilabel", text_item("a b", labels_answer({0, 2})),
      {[](ItemRows& of) { of.rows[0].gold.labels.pop_back(); }, [](ItemRows& of) { of.rows[0].gold.labels[0] = 2; },
       [](ItemRows& of) { of.item.gold = labels_answer({3}); }});
  check_changes(
      "regression", text_item("a", value_answer(1)),
      {[](ItemRows& of) { of.item.gold = label_answer(0); }, [](ItemRows& of) { of.rows[0].gold.labels = {1}; }});
  check_changes("tagging", TaskItem{.words = {"a", "b"}, .gold = labels_answer({0, 1})},
                {[](ItemRows& of) { of.rows[0].words[1] = 2; }, [](ItemRows& of) { of.rows[0].words.pop_back(); },
                 [](ItemRows& of) { of.rows[0].gold.labels[1] = 3; },
                 [](ItemRows& of) { of.rows[0].gold.labels.push_back(no_label); },
                 [](ItemRows& of) { of.item.gold = labels_answer({0}); }});
  const TaskItem choice{.text = "a", .candidates = {"b", "c d"}, .gold = label_answer(1)};
  check_changes("choice", choice,
                {[](ItemRows& of) { of.rows.pop_back(); }, [](ItemRows& of) { of.item.gold = label_answer(2); }});
}

TEST_CASE("rows of answers fit where their bytes are of the context and their answer is in the row", "[tasks]") {
  const TaskItem question{
      .text = "a b", .second = "c d e f a b c d e f", .is_pair = true, .gold = spans_answer({{"f a", 6}})};
  check_changes(
      "spans", question,
      {[](ItemRows& of) { of.rows[0].bytes[5] = {-1, 4}; }, [](ItemRows& of) { of.rows[0].bytes[5] = {2, 20}; },
       [](ItemRows& of) { of.rows[0].bytes.clear(); }, [](ItemRows& of) { of.rows[0].gold.labels[0] = 99; },
       [](ItemRows& of) { of.rows[0].gold.labels.pop_back(); },
       [](ItemRows& of) { of.item.gold = spans_answer({{"f a", 17}}); },
       [](ItemRows& of) { of.item.gold = spans_answer({{"f a", -1}}); }});
}

TEST_CASE("a prepared task whose rows lead elsewhere is refused, though its checksum is right", "[tasks]") {
  const std::pair<const char*, const char*> changes[] = {
      {R"("class_token":0)", R"("class_token":99)"},
      {R"("texts":[1)", R"("texts":[-1)"},
      {R"("texts":[)", R"("texts":[],"other":[)"},
      {R"("types":[)", R"("types":[1,0,0,)"},
      {R"("rows":[{)", R"("rows":[{"texts":[0,0,0,0],"class_token":0},{)"},
      {R"("rows":[)", R"("rows":[],"other":[)"}};
  for (const auto& [from, to] : changes) {
    INFO(to);
    const TaskFolder dir;
    dir.write("part.tsv", "text\tlabel\na b\tno\nc d e\tyes\nf\tyes\n");
    const auto task =
        dir.open(mood_task + "data: {train: part.tsv, valid: part.tsv, test: part.tsv, text: text, label: label}\n");
    const auto tokenizer = small_wordpiece(dir);
    prepare_task(task, tokenizer, special_token_template(tokenizer), dir / "rows");
    CHECK(read_prepared_split(dir / "rows", "valid").items.size() == 3);
    replace_in_part(dir, from, to);
    CHECK_THROWS_WITH(read_prepared_split(dir / "rows", "valid"),
                      Catch::Contains(" is damaged; restore it, or fine-tune"));
  }
}

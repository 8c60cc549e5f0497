#include <sys/stat.h>

#include "tests/support/catch.h"
#include "tests/support/table.h"
#include "tests/tasks/task_folder.h"

using namespace cloze;
using Catch::Contains;

namespace {

const std::string named_columns =
    mood_task + "data: {train: t.tsv, valid: test, test: t.tsv, text: text, label: label}\n";
const std::string numbered_columns = mood_task + "data: {train: t.tsv, valid: test, test: t.tsv, text: 0, label: 1}\n";

/// Why a file of this text cannot be the parts of a task.
std::string part_fault(const std::string& yaml, const std::string& text, const std::string& name = "t.tsv") {
  const TaskFolder folder;
  folder.write(name, text);
  return folder.fault(yaml);
}

std::string task_with(const std::string& kind, const std::string& file, const std::string& columns) {
  return "task: t\nkind: " + kind + "\ndata: {train: " + file + ", valid: test, test: " + file + ", " + columns + "}\n";
}

}  // namespace

TEST_CASE("a file that cannot be the parts of a task is refused with the place and what to do", "[tasks]") {
  for (const auto& row : table_of_tests("tasks/bad_task_files.tsv")) {
    const auto &kind = row.at(0), &columns = row.at(1), &more = row.at(2), &file = row.at(3), &text = row.at(4);
    INFO(kind << ", " << columns << ": " << text);
    check_is(part_fault(task_with(kind, file, columns) + more, text, file), row.at(5));
  }
}

TEST_CASE("names of columns have no white space around them", "[tasks]") {
  CHECK(part_fault(named_columns, "text\u00A0\t label\na\tx\nb\ty\n").empty());
}

TEST_CASE("lines with another number of cells are left out, and counted, where that is asked for", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.tsv", "text\tlabel\na\tx\nb\nc\ty\tz\nd\ty\n");
  const auto task = folder.open(named_columns, {.skip_bad = true});
  CHECK(task.train.items.size() == 2);
  CHECK_THAT(notes_of(task), Contains("train: 2 lines left out, first ") && Contains("t.tsv:3: has 1 cell"));
}

TEST_CASE("lines that are not UTF-8, or no JSON, are left out where bad ones are, whole records of them", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.tsv", "text\tlabel\na\tx\ncaf\xE9\tx\nd\ty\n");
  CHECK_THAT(folder.fault(named_columns), Contains("t.tsv:3: byte 4 of the line is not valid UTF-8"));
  const auto table = folder.open(named_columns, {.skip_bad = true});
  CHECK(table.train.items.size() == 2);
  CHECK_THAT(notes_of(table), Contains("train: 1 line left out, first ") && Contains("t.tsv:3: byte 4 of the line"));
  folder.write("t.csv", "text,label\n\"a\n\xE9\nb\",x\nc,x\nd,y\n");
  const auto quoted = folder.open(task_with("classification", "t.csv", "text: text, label: label"), {.skip_bad = true});
  REQUIRE(quoted.train.items.size() == 2);
  CHECK(quoted.train.items[0].text == "c");
  const auto lines = task_with("classification", "t.jsonl", "text: text, label: label");
  folder.write("t.jsonl", R"({"text": "a", "label": "x"})"
                          "\n"
                          R"({"text": "\ud83d", "label": "x"})"
                          "\n{\"text\": \"\xE9\", \"label\": \"x\"}\n[]\n"
                          R"({"text": "b", "label": "y"})"
                          "\n");
  CHECK_THAT(folder.fault(lines), Contains("t.jsonl:2: not a JSON object (column "));
  const auto objects = folder.open(lines, {.skip_bad = true});
  CHECK(objects.train.items.size() == 2);
  CHECK_THAT(notes_of(objects),
             Contains("train: 3 lines left out, first ") && Contains("t.jsonl:2: not a JSON object"));
}

TEST_CASE("a first label that no other item has is noted, since the line may be one of names", "[tasks]") {
  const TaskFolder folder;
  const auto notes = [&](const std::string& text) {
    folder.write("t.tsv", text);
    return notes_of(folder.open(numbered_columns));
  };
  CHECK_THAT(notes("Satz\tKlasse\na\tx\nb\ty\nc\tx\nd\ty\n"),
             Contains("t.tsv:1: its label is 'Klasse', as no other item's; if this is a line of names, write `header"));
  CHECK_THAT(notes("a\tx\nb\ty\nc\ty\nd\tz\n"), !Contains("line of names"));  // another label is rare, too
}

TEST_CASE("labels of which nothing can be learned are refused", "[tasks]") {
  std::string many = "text\tlabel\n";
  for (int i = 0; i < 60; ++i) many += concat("a\tx", i, "\n");
  CHECK_THAT(part_fault(named_columns, many),
             Contains("train has 60 labels for 60 uses of one; `data.label` names no column of labels"));
}

TEST_CASE("a million labels are refused", "[tasks]") {
  std::string many = "text\tlabel\n";
  for (int i = 0; i < 200'002; ++i) many += concat("a\tx", i % 100'001, "\n");
  CHECK_THAT(part_fault(named_columns, many), Contains("train has 100,001 labels for 200,002 uses of one"));
}

TEST_CASE("targets that are no numbers are refused", "[tasks]") {
  for (const std::string target : {"nan", "inf", "high", "", "1,5"})
    CHECK_THAT(part_fault(task_with("regression", "t.tsv", "text: text, label: label"),
                          "text\tlabel\na\t1\nb\t" + target + "\n"),
               Contains("t.tsv:3: its target is '" + target + "', which is no number; give it one"));
}

TEST_CASE("targets outside of the scale are counted, and stay as they are", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.tsv", "text\tlabel\na\t0\nb\t5.5\nc\t-1\nd\t5\n");
  const auto yaml = task_with("regression", "t.tsv", "text: text, label: label") + "scale: [0, 5]";
  const auto task = folder.open(yaml);
  CHECK_THAT(notes_of(task), Contains("train: 2 targets are outside of `scale`, first ") &&
                                 Contains("t.tsv:3 (5.5); all of them count"));
  CHECK(task.test.items[1].gold.value == 5.5);
  folder.write("t.tsv", "text\tlabel\na\t0\nb\t5\n");
  CHECK_THAT(notes_of(folder.open(yaml)), !Contains("scale"));
}

TEST_CASE("texts that are empty are counted", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.tsv", "text\tlabel\na\tx\n \ty\n\tx\n");
  CHECK_THAT(notes_of(folder.open(named_columns)),
             Contains("train: 2 items with an empty text or word, first ") && Contains("t.tsv:3; all of them count"));
}

TEST_CASE("what is no text is refused", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.tsv/inner.txt", "");
  CHECK(folder.fault(named_columns) ==
        "t.tsv: is a folder, not a file; name one in it, or write `format: folders` for a folder a label");
  CHECK_THAT(folder.fault(task_with("classification", "none.tsv", "text: text, label: label")),
             Contains("none.tsv is not there"));
  CHECK_THAT(part_fault(named_columns, "text\tlabel\ncaf\xE9\tx\n"),
             Contains("t.tsv:2: byte 4 of the line is not valid UTF-8"));
}

TEST_CASE("a file of another form than its kind has is refused", "[tasks]") {
  const TaskFolder folder;
  folder.write("a.jsonl", "{}\n");
  CHECK_THAT(folder.fault(task_with("classification", "a.jsonl + a.jsonl", "text: q, label: l")),
             Contains("a.jsonl: is read as jsonl; only lines of tables stand side by side"));
}

TEST_CASE("candidates may look like intervals", "[tasks]") {
  const auto yaml = task_with("choice", "t.tsv", "text: q, candidates: [a, b, c], label: label");
  CHECK(part_fault(yaml, "q\ta\tb\tc\tlabel\nwhy\t[0, 3]\t[3, 5]\t\t1\n") == "");
}

TEST_CASE("answers that do not stand where they are said to are refused, or left out and counted", "[tasks]") {
  const auto question = [](int number, const std::string& answer, int start) {
    return concat("{\"id\": \"q", number, "\", \"question\": \"Where?\", \"answers\": [{\"text\": \"", answer,
                  "\", \"answer_start\": ", start, "}]}");
  };
  const auto file = [](const std::string& questions) {
    return "{\"data\": [{\"paragraphs\": [{\"context\": \"It is in Rome.\", \"qas\": [" + questions + "]}]}]}";
  };
  const auto yaml = task_with("spans", "t.json", "text: q");
  const auto good = question(1, "Rome", 9);
  CHECK(
      part_fault(yaml, file(good + "," + question(2, "Rome", 8) + "," + question(3, "Rome", 99)), "t.json") ==
      "train: the answers of 2 questions do not stand where they are said to, first t.json, question 2 ('q2'): answer "
      "'Rome' is said to begin at 8, where its context has ' Rom'; mend them, or leave these questions out with "
      "--skip-bad");
  CHECK_THAT(part_fault(yaml, file(question(1, "Rome", 15)), "t.json"),
             Contains("answer 'Rome' begins at 15, outside of its context"));
  CHECK_THAT(part_fault(yaml, file(question(1, "", 2)), "t.json"), Contains("an answer at 2 is empty"));
  const TaskFolder folder;
  folder.write("t.json", file(good + "," + question(2, "Rome", 8)));
  const auto task = folder.open(yaml, {.skip_bad = true});
  CHECK(task.test.items.size() == 1);
  CHECK(task.test.bad == 1);
  CHECK_THAT(notes_of(task), Contains("test: 1 question left out, whose answers do not stand where they are said to"));
  CHECK_THAT(part_fault(yaml, file(good + "," + good), "t.json"), Contains("t.json: two items have the id 'q1'"));
}

TEST_CASE("a file that is not of SQuAD's form is refused", "[tasks]") {
  const auto fault = [](const std::string& text) {
    return part_fault(task_with("spans", "t.json", "text: q"), text, "t.json");
  };
  const std::string begin =
      "{\"data\": [{\"paragraphs\": [{\"context\": \"a\", \"qas\": [{\"id\": \"q\", \"question\": \"b\"";
  CHECK_THAT(fault(begin + "}]}]}]}"), Contains("question 1 ('q'): has no `answers`, and train is learned or judged"));
  CHECK_THAT(fault(begin + ", \"answers\": [{\"text\": \"a\"}]}]}]}]}"),
             Contains("has an answer without a number `answer_start`"));
  const std::string answer = ", \"answers\": [{\"text\": \"a\", \"answer_start\": 0}]";
  CHECK_THAT(fault(begin + answer + ", \"is_impossible\": true}]}]}]}"),
             Contains("question 1 ('q'): `is_impossible` is true, and it has an answer; remove one of the two"));
  CHECK_THAT(fault(begin + answer + ", \"is_impossible\": \"True\"}]}]}]}"),
             Contains("question 1 ('q'): `is_impossible` is \"True\"; write true or false"));
  CHECK_THAT(fault(begin + ", \"answers\": null}]}]}]}"), Contains("question 1 ('q'): has no `answers`"));
}

TEST_CASE("a file of a folder that is no text is told what it is", "[tasks]") {
  const TaskFolder folder;
  folder.write("all/neg/1.txt", {"\xFF\xFE"
                                 "d\0u\0",
                                 6});
  folder.write("all/pos/1.txt", "fine");
  CHECK_THAT(folder.fault(mood_task + "data: {train: all, valid: test, test: all, format: folders}"),
             Contains("all/neg/1.txt: is UTF-16; convert it: "));
}

TEST_CASE("a folder without texts, or a column that texts of one have not, is refused", "[tasks]") {
  const TaskFolder folder;
  folder.write("all/readme.txt", "a");
  CHECK_THAT(folder.fault(task_with("classification", "all", "format: folders")),
             Contains("all: has no folder with texts"));
  folder.write("all/x/1.txt", "a");
  CHECK_THAT(folder.fault(task_with("classification", "all", "format: folders, text: body")),
             Contains("has no column 'body'; a text of a folder has label, text and name"));
  folder.write("all/y/more/1.txt", "a");
  CHECK_THAT(folder.fault(task_with("classification", "all", "format: folders")),
             Contains("all/y/more: is a folder inside that of a label, whose texts have none; move them to "));
  REQUIRE(mkfifo((folder / "all/x/2.txt").c_str(), 0600) == 0);
  CHECK_THAT(folder.fault(task_with("classification", "all", "format: folders")),
             Contains("all/x/2.txt: is no file of a text (a pipe, a device or a link to nothing); remove it"));
}

TEST_CASE("texts that a few bytes unfold to more than memory has are refused before they are made", "[tasks]") {
  std::string braces;
  for (int i = 0; i < 80; ++i) braces += "{text}";
  const auto many = task_with("classification", "t.tsv", "text: '" + braces + "', label: label");
  CHECK(part_fault(many, "text\tlabel\n" + std::string(1 << 20, 'a') + "\tx\n") ==
        "t.tsv:2: a text that joins 80 columns has more than 64 MiB; name fewer columns in its template, or shorten "
        "them");
  // A text beside a list stands beside each of its elements, as a context beside each of its questions.
  const TaskFolder folder;
  std::string list, questions;
  for (int i = 0; i < 20; ++i) {
    list += (i > 0 ? ", {\"label\": \"" : "{\"label\": \"") + std::string(1, i % 2 == 0 ? 'x' : 'y') + "\"}";
    questions +=
        std::string(i > 0 ? ", " : "") + R"({"question": "q", "answers": [], "id": "q)" + std::to_string(i) + "\"}";
  }
  const std::string text(1000, 'a');
  folder.write("t.jsonl", R"({"text": ")" + text + R"(", "each": [)" + list + "]}\n");
  folder.write("t.json", R"({"data": [{"paragraphs": [{"context": ")" + text + R"(", "qas": [)" + questions + "]}]}]}");
  const auto nested =
      folder.write("nested.yaml", task_with("classification", "t.jsonl", "text: text, label: each.label, each: each"));
  const auto asked = folder.write("asked.yaml", task_with("spans", "t.json", "id: ''"));
  for (const auto& [yaml, file] : {std::pair(nested, "t.jsonl"), std::pair(asked, "t.json")}) {
    const auto config = read_task_config(yaml);
    const auto read = [&](uint64_t most_bytes) {
      LabelPool pool;
      return read_split(config, yaml, "train", file, pool, {.most_bytes = most_bytes}).items.size();
    };
    CHECK(read(30'000) == 20);
    CHECK_THROWS_WITH(read(15'000), Contains(std::string(file) + ": has more than 0 MiB, which are to be in memory"));
  }
}

TEST_CASE("labels that a run cannot keep are refused before anything is trained", "[tasks]") {
  std::string lines = "text\tlabel\n", bells = lines;
  for (int i = 0; i < 60; ++i) {
    lines += "text " + std::to_string(i) + "\tlabel " + std::to_string(i % 30) + std::string(10'000, 'x') + "\n";
    bells += "text " + std::to_string(i) + "\t" + (i % 2 == 0 ? "up" : "down\a") + "\n";
  }
  CHECK(part_fault(named_columns, lines) ==
        "t.tsv: the names of 30 labels have more than 256 KiB, which a run does not keep; give them shorter names with "
        "`labels`, or merge some");
  CHECK(part_fault(named_columns, bells) ==
        "t.tsv: the label 'down\\x07' has a tab, an end of a line or another control character; give it another name "
        "with `labels`");
  CHECK(part_fault(named_columns + "labels: {up: up, \"down\\a\": down}\n", bells).empty());
  LabelPool pool;
  pool.number(std::string(40 << 20, 'a'));
  CHECK_THROWS_WITH(pool.number(std::string(40 << 20, 'b')),
                    "the labels have more than 64 MiB; `data.label` names no column of labels");
}

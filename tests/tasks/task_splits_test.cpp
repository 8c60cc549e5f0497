#include <algorithm>
#include <set>

#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// Lines `text N<TAB>label` with labels in turns.
std::string numbered_lines(int first, int last, const std::vector<std::string>& labels) {
  std::string text = "text\tlabel\n";
  for (int i = first; i < last; ++i)
    text += concat("text ", i, "\t", labels[static_cast<size_t>(i) % labels.size()], "\n");
  return text;
}

std::string repeated_line(const std::string& line, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line;
  return text;
}

std::set<std::string> texts_in(const TaskSplit& split) {
  std::set<std::string> texts;
  for (const auto& item : split.items) texts.insert(item.text);
  return texts;
}

}  // namespace

TEST_CASE("labels are sorted as text where no order is given, and only the training part has a say", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "text\tlabel\nx\t9\ny\t10\nz\t9\n");
  folder.write("test.tsv", "text\tlabel\nx\t1\nz\t1\nw\t10\nv\t10\n");
  const auto task =
      folder.open(mood_task + "data: {train: train.tsv, valid: test, test: test.tsv, text: text, label: label}");
  CHECK(task.labels.names == std::vector<std::string>{"10", "9"});
  CHECK(label_ids(task.test) == std::vector<int64_t>{unknown_label, unknown_label, 0, 0});
  CHECK_THAT(notes_of(task),
             Contains("test: 1 label that the training part lacks, whose predictions are wrong whatever "
                      "they are: '1' (2)"));
  CHECK(counts_of(task.train, task.labels) == "train: 3 items, 10 1, 9 2");
}

TEST_CASE("a label that no item of the training part has is named", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "text\tlabel\nx\t1\ny\t2\n");
  const auto task = folder.open(mood_task +
                                "data: {train: train.tsv, valid: test, test: train.tsv, text: text, label: label}\n"
                                "labels: {\"0\": low, \"1\": mid, \"2\": high}");
  CHECK_THAT(notes_of(task), Contains("train: no item has 1 label of the task: 'low'\n"));
  CHECK(counts_of(task.train, task.labels) == "train: 2 items, low 0, mid 1, high 1");
}

TEST_CASE("the order of a model's labels is that of the task, and other labels are refused with both lists",
          "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 6, {"a", "b", "c"}));
  const auto yaml = mood_task + "data: {train: train.tsv, valid: test, test: train.tsv, text: text, label: label}\n";
  const auto task = folder.open(yaml, {.label_order = {"c", "a", "b"}});
  CHECK(task.labels.written == std::vector<std::string>{"c", "a", "b"});
  CHECK(label_ids(task.train) == std::vector<int64_t>{1, 2, 0, 1, 2, 0});
  const auto named = folder.open(yaml + "labels: {a: one, b: two, c: three}", {.label_order = {"three", "two", "one"}});
  CHECK(named.labels.written == std::vector<std::string>{"c", "b", "a"});
  CHECK(named.labels.names == std::vector<std::string>{"three", "two", "one"});
  CHECK_THAT(folder.fault(yaml, {.label_order = {"a", "b", "d"}}),
             Contains("the task has the labels 'a', 'b', 'c', the model has 'a', 'b', 'd'"));
}

TEST_CASE("a tenth of the training part is the valid part, whatever the order of its items", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 95, {"a", "b"}));
  folder.write("dev.tsv", numbered_lines(200, 210, {"a", "b"}));
  const auto yaml = mood_task + "data: {train: train.tsv, valid: dev.tsv, text: text, label: label}";
  const auto task = folder.open(yaml);
  CHECK(task.train.items.size() == 85);
  CHECK(task.valid.items.size() == 10);
  CHECK(task.test.items.size() == 10);
  CHECK(task.test.items[0].text == "text 200");
  CHECK_THAT(notes_of(task), Contains("valid is a tenth of train, by a hash of each item: 10 items of 95"));
  auto shuffled = numbered_lines(50, 95, {"a", "b"}) + numbered_lines(0, 50, {"a", "b"}).substr(11);
  folder.write("train.tsv", shuffled);
  CHECK(texts_in(folder.open(yaml).valid) == texts_in(task.valid));
}

TEST_CASE("a label whose items are all in the tenth is named, since nothing is learned of it", "[tasks]") {
  const TaskFolder folder;
  const auto yaml = mood_task + "data: {train: train.tsv, test: train.tsv, text: text, label: label, group: group}";
  std::string lines = "group\ttext\tlabel\n";
  for (int i = 0; i < 90; ++i) lines += concat("g", i / 3, "\ttext ", i, "\t", i % 3 == 2 ? "b" : "a", "\n");
  folder.write("train.tsv", lines);
  const auto task = folder.open(yaml);
  CHECK_THAT(notes_of(task), !Contains("nothing is learned"));
  const auto& moved = task.valid.items.at(2).text;  // of a group that has more of another label
  lines.replace(lines.find("\t" + moved + "\t") + moved.size() + 2, 1, "c");
  folder.write("train.tsv", lines);
  CHECK_THAT(notes_of(folder.open(yaml)),
             Contains("train: all items of 1 label are in the valid part, first 'c', so that nothing is learned of it; "
                      "give a part with `data.valid`"));
}

TEST_CASE("the tenth has a tenth of each label, and no more of it than one item a label", "[tasks]") {
  const TaskFolder folder;
  std::string text = "text\tlabel\n";
  for (int i = 0; i < 300; ++i)
    text += concat("text ", i, "\t", i < 200 ? "a" : i < 290 ? "b" : i < 299 ? "c" : "d", "\n");
  folder.write("train.tsv", text);
  const auto task = folder.open(mood_task + "data: {train: train.tsv, test: train.tsv, text: text, label: label}");
  CHECK(task.valid.items.size() == 30);
  CHECK(label_counts(task.valid, task.labels) == std::vector<uint64_t>{20, 9, 1, 0});
}

TEST_CASE("a tenth is one although a text is frequent, or is refused", "[tasks]") {
  const TaskFolder folder;
  const auto yaml = mood_task + "data: {train: train.tsv, test: train.tsv, text: text, label: label}";
  for (int spelling = 0; spelling < 12; ++spelling) {
    std::string text = "text\tlabel\n";
    for (int i = 0; i < 300; ++i) text += concat("text ", i, "\t", i % 2, "\nhey ", spelling, "\t2\n");
    folder.write("train.tsv", text);
    const auto task = folder.open(yaml);
    CHECK(task.valid.items.size() == 60);
    CHECK(label_counts(task.valid, task.labels)[2] == 0);
  }
  folder.write("train.tsv", "text\tlabel\n" + repeated_line("a\t0\n", 50) + repeated_line("b\t1\n", 50));
  CHECK_THAT(folder.fault(yaml),
             Contains("train.tsv: a tenth of it is 10 items, give or take 5; equal items and those of one group stay "
                      "together, and none of these sets add up to so many; give a part with `data.valid`"));
}

TEST_CASE("groups of many sizes make a tenth", "[tasks]") {
  const TaskFolder folder;
  std::string text = "group\ttext\tlabel\n";
  const std::vector<int> sizes{329, 71, 64, 58, 52, 47, 43, 38, 35, 31, 35};
  int number = 0;
  for (size_t g = 0; g < sizes.size(); ++g)
    for (int i = 0; i < sizes[g]; ++i, ++number)
      text += concat("article ", g, "\ttext ", number, "\t", number % 2, "\n");
  folder.write("train.tsv", text);
  const auto task =
      folder.open(mood_task + "data: {train: train.tsv, test: train.tsv, text: text, label: label, group: group}");
  CHECK(number == 803);
  CHECK(task.valid.items.size() == 81);  // the articles of 43 and 38
}

TEST_CASE("a part most of whose labels the training part lacks is refused", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 6, {"0", "1"}));
  const auto yaml = mood_task + "data: {train: train.tsv, valid: train.tsv, test: test.tsv, text: text, label: label}";
  folder.write("test.tsv", numbered_lines(0, 4, {"0.0", "1.0"}));
  CHECK_THAT(folder.fault(yaml),
             Contains("test.tsv: 4 of 4 items of test have a label that the training part lacks, '0.0', '1.0'; it has "
                      "'0', '1'; name a part with labels that are known, or write them as the training part does"));
  folder.write("test.tsv", numbered_lines(0, 4, {"0", "-1"}));
  CHECK_THAT(notes_of(folder.open(yaml)), Contains("test: 1 label that the training part lacks"));
  folder.write("test.tsv", numbered_lines(0, 4, {"-1"}));
  const auto named = yaml + "\nlabels: {\"0\": bad, \"1\": good, \"-1\": unknown}";
  CHECK_THAT(folder.fault(named),
             Contains("test.tsv: 4 of 4 labels are none that the training part has: what is right for test is not "
                      "given here; name a part whose answers are known"));
}

TEST_CASE("a part whose answers are held back is refused, whatever its kind", "[tasks]") {
  const TaskFolder folder;
  const auto yaml = [](const std::string& kind, const std::string& more) {
    return "task: t\nkind: " + kind + "\ndata: {train: train.jsonl, valid: train.jsonl, test: test.jsonl, " + more +
           "}\n";
  };
  const auto write = [&](const std::string& train, const std::string& test) {
    folder.write("train.jsonl", train);
    folder.write("test.jsonl", test);
  };
  const auto numbers = yaml("regression", "text: text, label: score");
  const std::string two = "{\"text\": \"a\", \"score\": 0}\n{\"text\": \"b\", \"score\": 4.5}\n";
  write(two, "{\"text\": \"c\", \"score\": -1}\n{\"text\": \"d\", \"score\": -1}\n");
  CHECK_THAT(folder.fault(numbers),
             Contains("test.jsonl: 2 of 2 targets are -1, and those of the training part are 0 to 4.5: what is right "
                      "for test is not given here; name a part whose answers are known"));
  write(two, "{\"text\": \"c\", \"score\": 4}\n{\"text\": \"d\", \"score\": 4}\n");
  CHECK(folder.fault(numbers) == "");
  write(two, "{\"text\": \"c\", \"score\": 4.9}\n{\"text\": \"d\", \"score\": 4.9}\n");
  CHECK(folder.fault(numbers) == "");
  write(two, "{\"text\": \"c\", \"score\": -1}\n{\"text\": \"d\", \"score\": 5}\n");
  CHECK(folder.fault(numbers) == "");
  const auto sets = yaml("multilabel", "text: text, label: labels");
  const std::string set = "{\"text\": \"a\", \"labels\": [\"x\"]}\n", none = "{\"text\": \"c\", \"labels\": []}\n";
  write(set + "{\"text\": \"b\", \"labels\": [\"y\"]}\n", none + none);
  CHECK_THAT(
      folder.fault(sets),
      Contains("test.jsonl: no item has a label, of 2, and of the training part 0 of 2 have none: what is right"));
  write(set + none, none + none);
  CHECK(folder.fault(sets) == "");
  const auto times = [](int count, const std::string& line) {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += line;
    return lines;
  };
  write(times(20, set) + times(10, none), times(40, none));  // a chance of less than 1e-18
  CHECK_THAT(folder.fault(sets), Contains("no item has a label, of 40, and of the training part 10 of 30 have none"));
  const auto questions = yaml("spans", "text: question, second: context, answers: answers");
  const std::string answered =
      "{\"question\": \"q\", \"context\": \"the sea\", \"answers\": [{\"text\": \"sea\", \"answer_start\": 4}]}\n";
  const std::string unanswered = "{\"question\": \"r\", \"context\": \"the sea\", \"answers\": []}\n";
  write(answered, unanswered + unanswered);
  CHECK_THAT(folder.fault(questions),
             Contains("test.jsonl: no question has an answer, of 2, and of the training part 0 of 1 have none"));
  write(answered + unanswered, unanswered);
  CHECK(folder.fault(questions) == "");
  write(times(99, answered) + unanswered, times(30, unanswered));
  CHECK_THAT(folder.fault(questions), Contains("of 30, and of the training part 1 of 100 have none"));
}

TEST_CASE("a valid part for which one answer is right is noted", "[tasks]") {
  const TaskFolder folder;
  const auto yaml = mood_task + "data: {train: train.tsv, valid: valid.tsv, test: train.tsv, text: text, label: label}";
  folder.write("train.tsv", numbered_lines(0, 6, {"0", "1"}));
  folder.write("valid.tsv", numbered_lines(10, 13, {"1"}));
  CHECK_THAT(
      notes_of(folder.open(yaml)),
      Contains("valid: '1' is right for all of its 3 items, so that nothing is better on it than to predict that; "
               "give another with `data.valid`"));
  folder.write("valid.tsv", numbered_lines(10, 13, {"0", "1"}));
  CHECK_THAT(notes_of(folder.open(yaml)), !Contains("is right for all"));
}

TEST_CASE("who scores predictions needs no training part", "[tasks]") {
  const TaskFolder folder;
  folder.write("test.tsv", numbered_lines(0, 4, {"b", "a"}));
  for (const std::string train : {"train: none.tsv, ", ""}) {
    const auto yaml = mood_task + "data: {" + train + "test: test.tsv, text: text, label: label}\n";
    const auto task = folder.open(yaml, {.may_lack_train = true});
    CHECK(label_ids(task.test) == std::vector<int64_t>{1, 0, 1, 0});
    CHECK(task.train.items.empty());
    CHECK_THAT(notes_of(task),
               Contains("there is no training part") && Contains("and labels are those of test") && !Contains("floor"));
  }
}

TEST_CASE("no part divides a group, nor two items that are equal", "[tasks]") {
  const TaskFolder folder;
  std::string text = "group\ttext\tlabel\n";
  for (int i = 0; i < 100; ++i) text += concat("g", i / 10, "\ttext ", i, "\t", i % 2, "\n");
  folder.write("train.tsv", text);
  folder.write("test.tsv", "group\ttext\tlabel\ng\tx\t0\n");
  const auto yaml = mood_task + "data: {train: train.tsv, test: test.tsv, text: text, label: label, group: group}";
  const auto task = folder.open(yaml);
  REQUIRE(task.valid.items.size() == 10);
  for (const auto& item : task.valid.items) CHECK(item.group == task.valid.items[0].group);
  folder.write("train.tsv", "group\ttext\tlabel\ng\ta\t0\ng\tb\t1\n");
  CHECK_THAT(folder.fault(yaml), Contains("cannot be divided, since its items are equal or of one group"));
}

TEST_CASE("where valid is test, every figure is chosen on its own items, and this is said", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 6, {"a", "b"}));
  folder.write("test.tsv", numbered_lines(10, 14, {"a", "b"}));
  const auto task =
      folder.open(mood_task + "data: {train: train.tsv, valid: test, test: test.tsv, text: text, label: label}");
  CHECK(task.is_chosen_on_test);
  CHECK(task.valid.name == "valid");
  CHECK(texts_in(task.valid) == texts_in(task.test));
  CHECK(notes_of(task) == "valid is test: every figure is chosen on the items that it is of\n");
}

TEST_CASE("items that two parts share are counted", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 6, {"a", "b"}));
  folder.write("valid.tsv", numbered_lines(5, 8, {"a", "b"}));
  folder.write("test.tsv", numbered_lines(2, 10, {"b", "a"}));  // other labels: the items are still the same
  const auto task =
      folder.open(mood_task + "data: {train: train.tsv, valid: valid.tsv, test: test.tsv, text: text, label: label}");
  CHECK(notes_of(task) ==
        "4 of 8 items of test stand in train too, first test:0 as train:2; they count\n"
        "1 of 3 items of valid stands in train too, first valid:0 as train:5; it counts\n"
        "3 of 8 items of test stand in valid too, first test:3 as valid:0; they count\n");
}

TEST_CASE("weights of labels are given, or balance their shares", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 8, {"a", "a", "a", "b"}));
  const auto yaml = mood_task + "data: {train: train.tsv, valid: test, test: train.tsv, text: text, label: label}\n";
  const auto weights = [&](const std::string& given) {
    const auto task = folder.open(yaml + "class_weights: " + given);
    return class_weights_of(task.config, task.labels, task.train);
  };
  CHECK(weights("[]").empty());
  CHECK(weights("[1, 2.5]") == std::vector<double>{1, 2.5});
  CHECK(weights("balanced") == std::vector<double>{8.0 / 12, 2});
  CHECK_THROWS_WITH(weights("[1, 2, 3]"), Contains("'class_weights' has 3 weights for 2 labels, 'a', 'b'"));
}

TEST_CASE("who trains nothing needs no training part but for its labels", "[tasks]") {
  const TaskFolder folder;
  folder.write("test.tsv", numbered_lines(0, 4, {"a", "b"}));
  const auto yaml = mood_task + "data: {train: none.tsv, test: test.tsv, text: text, label: label}\n";
  const auto task = folder.open(yaml + "labels: {b: x, a: y}", {.test_only = true});
  CHECK(label_ids(task.test) == std::vector<int64_t>{1, 0, 1, 0});
  CHECK(task.train.items.empty());
  CHECK_THAT(folder.fault(yaml, {.test_only = true}), Contains("none.tsv is not there"));
}

TEST_CASE("items to predict for need no labels, and have them where they stand there", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 4, {"a", "b"}));
  const auto task =
      folder.open(mood_task + "data: {train: train.tsv, valid: test, test: train.tsv, text: text, label: label}");
  const auto bare = read_items(task, folder.write("new.tsv", "text\none\ntwo\n"));
  CHECK(!bare.items[1].gold.is_known());
  CHECK(bare.items[1].id == "items:1");
  CHECK(label_ids(read_items(task, folder.write("new.tsv", "label\ttext\nb\tone\n"))) == std::vector<int64_t>{1});
  const auto blank = read_items(task, folder.write("new.tsv", "label\ttext\n\tone\n"));
  CHECK(!blank.items[0].gold.is_known());
  folder.write("t.conll", "a X\nb Y\n");
  const auto tags = folder.open("task: t\nkind: tagging\ndata: {train: t.conll, valid: test, test: t.conll}");
  const auto bare_words = read_items(tags, folder.write("new.conll", "a\nb\n\nc\n"));
  CHECK(bare_words.items[0].words == std::vector<std::string>{"a", "b"});
  CHECK(!bare_words.items[1].gold.is_known());
}

TEST_CASE("a .txt of items is a text a line where a label of one text is asked for, and no table", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 4, {"a", "b"}));
  const auto splits = "data: {train: train.tsv, valid: test, test: train.tsv, text: text, label: label";
  const auto task = folder.open(mood_task + splits + "}");
  const auto items = read_items(task, folder.write("new.txt", "one, two\nthree\n"));
  REQUIRE(items.items.size() == 2);
  CHECK(items.items[0].text == "one, two");
  CHECK(!items.items[1].gold.is_known());
  const auto unsaid = Contains("its name does not say how it is written");
  CHECK_THROWS_WITH(read_items(task, folder.write("new.txt", "text\tlabel\none\ta\n")), unsaid);
  const auto pairs = folder.open(mood_task + splits + ", second: text}");
  CHECK_THROWS_WITH(read_items(pairs, folder.write("new.txt", "one\n")), unsaid);
}

TEST_CASE("items are read as their name says where the parts, whose form is said, are called otherwise", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.txt", numbered_lines(0, 4, {"a", "b"}));
  const auto splits = "data: {train: train.txt, valid: test, test: train.txt, format: tsv, text: text, label: label}";
  const auto task = folder.open(mood_task + splits);
  const auto text_of_first = [&](const Task& of, const std::string& name, const std::string& content) {
    return read_items(of, folder.write(name, content)).items.at(0).text;
  };
  CHECK(text_of_first(task, "new.jsonl", "{\"text\": \"quite good\"}\n") == "quite good");
  CHECK(text_of_first(task, "new.csv", "text,id\n\"one, two\",1\n") == "one, two");
  CHECK(text_of_first(task, "new.txt", "id\ttext\n1\tone\n") == "one");
  folder.write("train.csv", numbered_lines(0, 4, {"a", "b"}));
  const auto tabs = folder.open(
      mood_task + "data: {train: train.csv, valid: test, test: train.csv, format: tsv, text: text, label: label}");
  CHECK(text_of_first(tabs, "new.csv", "id\ttext\n1\tone, two\n") == "one, two");
}

TEST_CASE("items of a task of TREC or of folders may be a text a line, a table or JSON lines", "[tasks]") {
  const TaskFolder folder;
  folder.write("q.label", "NUM:count How many ?\nHUM:ind Who was it ?\n");
  const auto trec =
      folder.open(mood_task + "data: {train: q.label, valid: test, test: q.label, format: trec, label: coarse}");
  const auto text_of_first = [&](const Task& task, const std::string& name, const std::string& content) {
    return read_items(task, folder.write(name, content)).items.at(0).text;
  };
  CHECK(text_of_first(trec, "new.txt", "Where is it ?\nWhy ?\n") == "Where is it ?");
  CHECK(text_of_first(trec, "new.tsv", "id\ttext\n7\tWhere is it ?\n") == "Where is it ?");
  CHECK(text_of_first(trec, "new.jsonl", "{\"text\": \"Where is it ?\"}\n") == "Where is it ?");
  CHECK(label_ids(read_items(trec, folder.write("new.txt", "NUM:count How far ?\n"))) == std::vector<int64_t>{1});
  folder.write("all/pos/1.txt", "fine\n");
  folder.write("all/neg/2.txt", "dull");
  const auto folders = folder.open(mood_task + "data: {train: all, valid: test, test: all, format: folders}");
  CHECK(text_of_first(folders, "new.txt", "quite good\n") == "quite good");
  CHECK(read_items(folders, folder / "all").items.size() == 2);
}

TEST_CASE("items in windows are those of the whole file, in their order and by the same names", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 7, {"a", "b"}));
  const auto task =
      folder.open(mood_task + "data: {train: train.tsv, valid: test, test: train.tsv, text: text, label: label}");
  const auto file = folder.write("new.tsv", numbered_lines(0, 7, {"b", "a"}));
  std::vector<size_t> sizes;
  std::vector<TaskItem> all;
  const auto split = read_items_in_windows(task, file, 3, [&](TaskSplit& window) {
    sizes.push_back(window.items.size());
    all.insert(all.end(), window.items.begin(), window.items.end());
  });
  CHECK(sizes == std::vector<size_t>{3, 3, 1});
  CHECK(split.items.empty());
  const auto whole = read_items(task, file).items;
  REQUIRE(all.size() == whole.size());
  for (size_t i = 0; i < all.size(); ++i)
    CHECK((all[i].id == whole[i].id && all[i].text == whole[i].text && all[i].gold == whole[i].gold));
  const auto other = folder.write("other.tsv", numbered_lines(0, 7, {"b", "c"}));
  const auto counted = read_items_in_windows(task, other, 3, [](TaskSplit&) {});
  CHECK(counted.notes == read_items(task, other).notes);
  CHECK(counted.notes == std::vector<std::string>{"items: 1 label that the training part lacks, whose predictions are "
                                                  "wrong whatever they are: 'c' (3)"});
}

TEST_CASE("few items of each label, or a part of all, are drawn by the seed, and the smaller part lies in the larger",
          "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", numbered_lines(0, 60, {"a", "b", "c"}));
  folder.write("test.tsv", numbered_lines(60, 66, {"a", "b", "c"}));
  const auto with = [&](const std::string& keys, uint64_t seed) {
    return folder.open(
        mood_task + "data: {train: train.tsv, valid: test, test: test.tsv, text: text, label: label, " + keys + "}",
        {.seed = seed});
  };
  const auto four = with("few: 4", 1);
  CHECK(label_counts(four.train, four.labels) == std::vector<uint64_t>{4, 4, 4});
  CHECK_THAT(notes_of(four), Contains("train: 12 of 60 items are trained on, drawn by train.seed 1\n"));
  CHECK(texts_in(with("few: 4", 1).train) == texts_in(four.train));
  CHECK(texts_in(with("few: 4", 2).train) != texts_in(four.train));
  CHECK(four.test.items.size() == 6);
  const auto less = texts_in(with("fraction: 0.25", 1).train), more = texts_in(with("fraction: 0.5", 1).train);
  CHECK(less.size() == 15);
  CHECK(more.size() == 30);
  CHECK(std::ranges::includes(more, less));
  CHECK(std::ranges::includes(texts_in(with("few: 8", 1).train), texts_in(four.train)));
  CHECK(with("few: 100", 1).train.items.size() == 60);
  CHECK_THAT(
      folder.fault(mood_task + "data: {train: train.tsv, test: test.tsv, text: text, label: label, fraction: 0}"),
      Contains("data.fraction"));
}

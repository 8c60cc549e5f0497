#include <zlib.h>

#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"

using namespace cloze;
using Catch::Contains;

namespace {

const std::string two_files = "train: train.tsv, valid: test, test: test.tsv";

}  // namespace

TEST_CASE("a table between tabs is read by the names of its first line, quotes and all", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "mark\tsentence\ngood\tshe said \"yes\"\nbad\t\"no\" he said\n");
  folder.write("test.tsv", "sentence\tmark\r\n\"quoted\"\tbad\r\n");
  const auto task = folder.open(mood_task + "data: {" + two_files + ", text: sentence, label: mark}");
  CHECK(task.train.items[0].text == "she said \"yes\"");
  CHECK(task.train.items[1].text == "\"no\" he said");
  CHECK(task.train.items[1].line == 3);
  CHECK(task.train.items[1].id == "train:1");
  CHECK(task.test.items[0].text == "\"quoted\"");
  CHECK(task.labels.names == std::vector<std::string>{"bad", "good"});
  CHECK(label_ids(task.train) == std::vector<int64_t>{1, 0});
  CHECK(label_ids(task.test) == std::vector<int64_t>{0});
  CHECK_FALSE(task.train.items[0].is_pair);
}

TEST_CASE("columns without names are called by position, those from the end too", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "1\tone\tx\n0\ttwo\ty\n");
  folder.write("test.tsv", "0\tthree\tz\n1\tfour\tz\n");
  const auto task = folder.open(mood_task + "data: {" + two_files + ", text: 1, second: -1, label: 0}");
  CHECK(task.train.items.size() == 2);
  CHECK(task.train.items[0].text == "one");
  CHECK(task.train.items[0].second == "x");
  CHECK(task.train.items[0].is_pair);
  folder.write("train.tsv", "mark\ttext\n1\tone\n0\ttwo\n");
  folder.write("test.tsv", "mark\t1\n1\tone\n");
  const auto below = folder.open(mood_task + "data: {" + two_files + ", text: 1, label: 0, header: true}");
  CHECK(below.train.items.size() == 2);
  CHECK(below.train.items[1].text == "two");
  CHECK(below.test.items[0].text == "one");
}

TEST_CASE("an empty line of a table of one column is an empty text, and of other tables no item", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "sentence\tmark\none\tgood\n\ntwo\tbad\n");
  const auto task =
      folder.open(mood_task + "data: {train: train.tsv, valid: test, test: train.tsv, text: sentence, label: mark}");
  CHECK(task.train.items.size() == 2);
  const auto part = read_items(task, folder.write("new.tsv", "sentence\none\n\nthree\n"));
  REQUIRE(part.items.size() == 3);
  CHECK(part.items[1].text.empty());
  CHECK(part.items[2].text == "three");
}

TEST_CASE("a table with commas is read by RFC 4180, and columns are joined by a template", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.csv", "\"1\",\"A \"\"big\"\" one\",\"of two\nlines\"\n\"2\",\"B\",\"b\"\n");
  folder.write("test.csv", "2,C,c\n");
  const auto task =
      folder.open(mood_task + "data: {train: train.csv, valid: test, test: test.csv, text: \"{1}: {2}!\", label: 0}");
  CHECK(task.train.items[0].text == "A \"big\" one: of two\nlines!");
  CHECK(task.train.items[1].text == "B: b!");
  CHECK(task.train.items[1].line == 3);
}

TEST_CASE("lines of two tables stand side by side", "[tasks]") {
  const TaskFolder folder;
  folder.write("a.data", "one\tx\ntwo\ty\n");
  folder.write("a.gold", "T\nF\n");
  const std::string data =
      "data: {train: a.data + a.gold, valid: test, test: a.data + a.gold, format: tsv, text: 0, label: 2}";
  const auto task = folder.open(mood_task + data);
  CHECK(task.labels.names == std::vector<std::string>{"F", "T"});
  CHECK(label_ids(task.train) == std::vector<int64_t>{1, 0});
  folder.write("a.gold", "T\n");
  CHECK_THAT(folder.fault(mood_task + data),
             Contains("a.gold: ends before ") && Contains("a.data, beside which it stands"));
}

TEST_CASE("JSON lines are read by paths, and nested lists give an item each", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.jsonl",
               "{\"n\": 7, \"text\": {\"body\": \"rain\"}, \"asked\": ["
               "{\"q\": \"wet?\", \"said\": [{\"a\": \"yes\", \"right\": true}, {\"a\": \"no\", \"right\": false}]},"
               "{\"q\": \"dry?\", \"said\": []}, {\"q\": \"cold?\", \"said\": [{\"a\": 3.5, \"right\": false}]}]}\n");
  const auto task = folder.open(mood_task +
                                "data: {train: train.jsonl, valid: test, test: train.jsonl, each: asked.said, text: "
                                "\"{asked.q} {asked.said.a}\", second: text.body, label: asked.said.right, group: "
                                "\"{n}/{asked.q}\"}\nlabels: {\"true\": right, \"false\": wrong}");
  REQUIRE(task.train.items.size() == 3);
  CHECK(task.train.items[1].text == "wet? no");
  CHECK(task.train.items[1].second == "rain");
  CHECK(task.train.items[1].group == "7/wet?");
  CHECK(task.train.items[2].text == "cold? 3.5");
  CHECK(label_ids(task.train) == std::vector<int64_t>{0, 1, 1});
}

TEST_CASE("a file that is one list of objects is read as JSON lines are", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.json", "[{\"text\": \"rain\", \"mood\": \"low\"},\n {\"text\": \"sun\", \"mood\": \"high\"}]\n");
  const auto task =
      folder.open(mood_task + "data: {train: train.json, valid: test, test: train.json, text: text, label: mood}");
  REQUIRE(task.train.items.size() == 2);
  CHECK(task.train.items[1].text == "sun");
  CHECK(label_ids(task.train) == std::vector<int64_t>{1, 0});
}

TEST_CASE("a compressed file is read as it is", "[tasks]") {
  const TaskFolder folder;
  const auto file = gzopen((folder / "train.tsv.gz").c_str(), "wb");
  gzputs(file, "text\tlabel\none\ta\ntwo\tb\n");
  gzclose(file);
  const auto task =
      folder.open(mood_task + "data: {train: train.tsv, valid: test, test: train.tsv.gz, text: text, label: label}");
  CHECK(task.train.items.size() == 2);
  CHECK(task.test.items[1].text == "two");
}

TEST_CASE("questions of TREC and folders of labels are read", "[tasks]") {
  const TaskFolder folder;
  folder.write("q.label", "NUM:count How many ?\nHUM:ind Who was it ?\n");
  const auto coarse =
      folder.open(mood_task + "data: {train: q.label, valid: test, test: q.label, format: trec, label: coarse}");
  CHECK(coarse.labels.names == std::vector<std::string>{"HUM", "NUM"});
  CHECK(coarse.train.items[0].text == "How many ?");
  const auto fine =
      folder.open(mood_task + "data: {train: q.label, valid: test, test: q.label, format: trec, label: fine}");
  CHECK(fine.labels.names == std::vector<std::string>{"HUM:ind", "NUM:count"});
  folder.write("all/pos/2_9.txt", "fine\n");
  folder.write("all/neg/1_1.txt", "dull");
  folder.write("all/neg/2_9.txt", "\uFEFFslow");
  folder.write("all/unsup/3.txt", "unknown");
  const auto films =
      folder.open(mood_task + "data: {train: all, valid: test, test: all, format: folders, skip_labels: unsup}");
  CHECK(films.labels.names == std::vector<std::string>{"neg", "pos"});
  CHECK(films.train.items[1].text == "slow");
  CHECK(films.train.items[2].text == "fine\n");
  CHECK(films.train.items[2].id == "pos/2_9");
  CHECK(films.train.skipped == 1);
  CHECK_THAT(notes_of(films), Contains("train: 1 item left out, with a label of `data.skip_labels`"));
}

TEST_CASE("several labels stand in a cell or in a list", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "text\tlabels\none\tb, a\ntwo\t\nthree\tc\n");
  folder.write("test.jsonl", "{\"text\": \"four\", \"labels\": [\"a\", \"x\"]}\n");
  const auto task = folder.open(
      "task: t\nkind: multilabel\ndata: {train: train.tsv, valid: test, test: test.jsonl, text: text, label: labels}");
  CHECK(task.labels.names == std::vector<std::string>{"a", "b", "c"});
  CHECK(gold_ids(task.train.items[0]) == std::vector<int64_t>{0, 1});
  CHECK(gold_ids(task.train.items[1]).empty());
  CHECK(gold_ids(task.test.items[0]) == std::vector<int64_t>{unknown_label, 0});
}

TEST_CASE("targets are numbers, also where all of them are whole", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "text\tscore\none\t1\ntwo\t3\nthree\t2.5e0\n");
  const auto task = folder.open(
      "task: t\nkind: regression\nscale: [1, 5]\ndata: {train: train.tsv, valid: test, test: train.tsv, text: text, "
      "label: score}");
  CHECK(std::get<GoldValue>(task.train.items[1].gold).value == 3);
  CHECK(std::get<GoldValue>(task.train.items[2].gold).value == 2.5);
  CHECK(task.labels.size() == 0);
}

TEST_CASE("candidates stand in columns or in a list, and their number may differ", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "q\ta\tb\tc\tlabel\nwhy\tx\ty\t\t1\nhow\tx\ty\tz\t2\n");
  const auto columns = folder.open(
      "task: t\nkind: choice\ndata: {train: train.tsv, valid: test, test: train.tsv, text: q, candidates: [a, b, c], "
      "label: label}");
  CHECK(columns.train.items[0].candidates == std::vector<std::string>{"x", "y"});
  CHECK(columns.train.items[1].candidates == std::vector<std::string>{"x", "y", "z"});
  CHECK(label_ids(columns.train) == std::vector<int64_t>{1, 2});
  folder.write("train.jsonl", "{\"q\": \"why\", \"of\": [\"x\", \"y\"], \"right\": \"B\"}\n");
  const auto lists = folder.open(
      "task: t\nkind: choice\nlabels: {A: first, B: second}\ndata: {train: train.jsonl, valid: test, test: "
      "train.jsonl, text: q, "
      "candidates: of, label: right}");
  CHECK(label_ids(lists.train) == std::vector<int64_t>{1});
}

TEST_CASE("sentences of a word a line are read by columns", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.conll", "-DOCSTART- -X- O\n\nJean NNP B-per\nde IN I-per\n\t\nruns VB O\n\n\n");
  const std::string tagging = "task: t\nkind: tagging\ndata: {train: train.conll, valid: test, test: train.conll, ";
  const auto task = folder.open(tagging + "scheme: bio}");
  REQUIRE(task.train.items.size() == 2);
  CHECK(task.train.items[0].words == std::vector<std::string>{"Jean", "de"});
  CHECK(task.train.items[0].line == 3);
  CHECK(task.labels.names == std::vector<std::string>{"B-per", "I-per", "O"});
  CHECK(gold_ids(task.train.items[1]) == std::vector<int64_t>{2});
  CHECK(folder.open(tagging + "label: 1}").labels.names == std::vector<std::string>{"IN", "NNP", "VB"});
}

TEST_CASE("a word that is empty stays a word", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.conll", "a\tX\n\tY\n\xE2\x80\x8B\tX\n");
  const auto task = folder.open("task: t\nkind: tagging\ndata: {train: train.conll, valid: test, test: train.conll}");
  CHECK(task.train.items[0].words == std::vector<std::string>{"a", "", "\xE2\x80\x8B"});
  CHECK(gold_ids(task.train.items[0]) == std::vector<int64_t>{0, 1, 0});
  CHECK_THAT(notes_of(task), Contains("train: 1 item with an empty text or word, first ") && Contains("train.conll:1"));
}

TEST_CASE("a word that is a no-break space ends no sentence", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.conll", "a X\nb Y\n");
  const auto task = folder.open("task: t\nkind: tagging\ndata: {train: t.conll, valid: test, test: t.conll}");
  const auto part = read_items(task, folder.write("new.conll", "a\n\xC2\xA0\nb\n \t\nc\n"));
  REQUIRE(part.items.size() == 2);
  CHECK(part.items[0].words == std::vector<std::string>{"a", "\xC2\xA0", "b"});
}

TEST_CASE("CoNLL-U has words, and neither ranges of them nor empty ones", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.conllu",
               "# text = zum Haus\n1-2\tzum\t_\t_\t_\t_\t_\t_\t_\t_\n1\tzu\tzu\tADP\tAPPR\t_\t3\tcase\t_\t_\n"
               "2\tdem\tder\tDET\tART\t_\t3\tdet\t_\t_\n2.1\tx\tx\tX\tX\t_\t_\t_\t_\t_\n3\tHaus\tHaus\tNOUN\tNN\t_"
               "\t0\troot\t_\t_\n");
  const std::string tagging = "task: t\nkind: tagging\ndata: {train: t.conllu, valid: test, test: t.conllu";
  const auto task = folder.open(tagging + "}");
  CHECK(task.train.items[0].words == std::vector<std::string>{"zu", "dem", "Haus"});
  CHECK(task.labels.names == std::vector<std::string>{"ADP", "DET", "NOUN"});
  CHECK(folder.open(tagging + ", text: lemma, label: deprel}").train.items[0].words[1] == "der");
  CHECK_THAT(folder.fault(tagging + ", label: pos}"),
             Contains("'data.label' is 'pos', which CoNLL-U has not; choose one of id"));
}

TEST_CASE("tags in JSON lines are lists", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.jsonl", "{\"tokens\": [\"a\", \"b\"], \"tags\": [0, 3]}\n");
  const auto task = folder.open(
      "task: t\nkind: tagging\ndata: {train: t.jsonl, valid: test, test: t.jsonl, text: tokens, label: tags}");
  CHECK(task.train.items[0].words == std::vector<std::string>{"a", "b"});
  CHECK(task.labels.names == std::vector<std::string>{"0", "3"});
}

TEST_CASE("tags that break their scheme are counted, and tags of another form refused", "[tasks]") {
  const TaskFolder folder;
  const std::string tagging = "task: t\nkind: tagging\ndata: {train: t.conll, valid: test, test: t.conll, scheme: ";
  folder.write("t.conll", "a I-x\nb I-x\nc B-x\nd I-y\ne O\n\nf I-a-b\n");
  CHECK_THAT(notes_of(folder.open(tagging + "bio}")),
             Contains("train: 3 tags break bio, first ") && Contains("t.conll:1 ('I-x')"));
  folder.write("t.conll", "a B-x\nb I-x\nc O\n\nd S-x\ne E-x\n\nf B-x\n");
  CHECK_THAT(notes_of(folder.open(tagging + "bioes}")),
             Contains("train: 3 tags break bioes, first ") && Contains("t.conll:1 ('O')"));
  folder.write("t.conll", "a B-x\nb E-x\n\nc S-x\nd O\n");
  CHECK_THAT(notes_of(folder.open(tagging + "bioes}")), !Contains("break"));
  folder.write("t.conll", "a B-x\nb NOUN\n");
  CHECK_THAT(folder.fault(tagging + "bio}"),
             Contains("t.conll:1: tag 'NOUN' is none of bio, O, B-TYPE or I-TYPE; name another `data.scheme`"));
}

TEST_CASE("answers of SQuAD are found by code points and kept by bytes", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.json",
               "{\"version\": \"v2.0\", \"data\": [{\"title\": \"Caf\\u00e9\", \"paragraphs\": [{\"context\": "
               "\"\\u00c9t\\u00e9 \\ud83d\\ude00 in Rome\", \"qas\": [{\"id\": \"q1\", \"question\": \"Where?\", "
               "\"is_impossible\": false, \"answers\": [{\"text\": \"Rome\", \"answer_start\": 9}]}, {\"id\": \"q2\", "
               "\"question\": \"Who?\", \"is_impossible\": true, \"answers\": []}]}]}]}");
  const auto task = folder.open("task: t\nkind: spans\ndata: {train: t.json, valid: test, test: t.json}");
  const auto& item = task.test.items[0];
  CHECK(item.id == "q1");
  CHECK(item.group == "Caf\xC3\xA9");
  CHECK(item.text == "Where?");
  const auto& answers = std::get<GoldAnswers>(item.gold).answers;
  CHECK(answers == std::vector<AnswerSpan>{{"Rome", 14}});
  CHECK(item.second.substr(14, 4) == "Rome");
  CHECK(std::get<GoldAnswers>(task.test.items[1].gold).answers.empty());
}

TEST_CASE("answers stand in JSON lines as lists of answers, or as columns", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.jsonl",
               "{\"q\": \"Who?\", \"c\": \"It was Ann.\", \"a\": {\"text\": [\"Ann\"], \"answer_start\": [7]}}\n"
               "{\"q\": \"What?\", \"c\": \"It was.\", \"a\": [{\"text\": \"It\", \"start\": 0}]}\n");
  const auto task = folder.open(
      "task: t\nkind: spans\ndata: {train: t.jsonl, valid: test, test: t.jsonl, text: q, second: c, answers: a}");
  CHECK(std::get<GoldAnswers>(task.train.items[0].gold).answers == std::vector<AnswerSpan>{{"Ann", 7}});
  CHECK(std::get<GoldAnswers>(task.train.items[1].gold).answers == std::vector<AnswerSpan>{{"It", 0}});
}

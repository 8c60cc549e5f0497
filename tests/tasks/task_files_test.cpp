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
  const auto split = read_items(task, folder.write("new.tsv", "sentence\none\n\nthree\n"));
  REQUIRE(split.items.size() == 3);
  CHECK(split.items[1].text.empty());
  CHECK(split.items[2].text == "three");
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
  CHECK(task.train.items[1].gold.value == 3);
  CHECK(task.train.items[2].gold.value == 2.5);
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
  const auto split = read_items(task, folder.write("new.conll", "a\n\xC2\xA0\nb\n \t\nc\n"));
  REQUIRE(split.items.size() == 2);
  CHECK(split.items[0].words == std::vector<std::string>{"a", "\xC2\xA0", "b"});
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

TEST_CASE("JSON lines of tags and of answers have usual keys, where a task names none", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.jsonl", "{\"tokens\": [\"a\", \"b\"], \"tags\": [\"X\", \"Y\"]}\n");
  folder.write("t.conll", "c\tX\nd\tY\n");
  const auto tags = folder.open("task: t\nkind: tagging\ndata: {train: t.conll, valid: test, test: t.jsonl}");
  CHECK(tags.test.items[0].words == std::vector<std::string>{"a", "b"});
  CHECK(tags.test.items[0].gold == tags.train.items[0].gold);
  folder.write("s.jsonl",
               "{\"question\": \"Who?\", \"context\": \"It was Ann.\", "
               "\"answers\": {\"text\": [\"Ann\"], \"answer_start\": [7]}}\n");
  const auto spans = folder.open("task: s\nkind: spans\ndata: {train: s.jsonl, valid: test, test: s.jsonl}");
  CHECK(spans.train.items[0].second == "It was Ann.");
  CHECK(spans.train.items[0].gold.spans == std::vector<AnswerSpan>{{"Ann", 7}});
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
  const auto& answers = item.gold.spans;
  CHECK(answers == std::vector<AnswerSpan>{{"Rome", 14}});
  CHECK(item.second.substr(14, 4) == "Rome");
  CHECK(task.test.items[1].gold.spans.empty());
}

TEST_CASE("answers stand in JSON lines as lists of answers, or as columns", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.jsonl",
               "{\"q\": \"Who?\", \"c\": \"It was Ann.\", \"a\": {\"text\": [\"Ann\"], \"answer_start\": [7]}}\n"
               "{\"q\": \"What?\", \"c\": \"It was.\", \"a\": [{\"text\": \"It\", \"start\": 0}]}\n");
  const auto task = folder.open(
      "task: t\nkind: spans\ndata: {train: t.jsonl, valid: test, test: t.jsonl, text: q, second: c, answers: a}");
  CHECK(task.train.items[0].gold.spans == std::vector<AnswerSpan>{{"Ann", 7}});
  CHECK(task.train.items[1].gold.spans == std::vector<AnswerSpan>{{"It", 0}});
}

TEST_CASE("white space around labels is no part of them, in files and in `labels`", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.csv", "text,label\none,pos\ntwo,pos \nthree,\" neg\"\nfour,neg\u00A0\nfive,skip \n");
  const auto splits =
      "data: {train: t.csv, valid: test, test: t.csv, text: text, label: label, skip_labels: \" skip\"}";
  CHECK(folder.open(mood_task + splits).labels.names == std::vector<std::string>{"neg", "pos"});
  const auto named = folder.open(mood_task + splits + "\nlabels: {\"pos \": good, neg: bad}");
  CHECK(label_ids(named.train) == std::vector<int64_t>{0, 0, 1, 1});
  CHECK_THAT(folder.fault(mood_task + splits + "\nlabels: {\"pos \": good, pos: bad}"),
             Contains("'labels' has 'pos' twice, white space around it aside; keep one of them"));
  folder.write("t.jsonl", "{\"tokens\": [\"a\", \"b\"], \"tags\": [\"X \", \" Y\"]}\n");
  const auto tags = folder.open(
      "task: t\nkind: tagging\ndata: {train: t.jsonl, valid: test, test: t.jsonl, text: tokens, label: tags}");
  CHECK(tags.labels.names == std::vector<std::string>{"X", "Y"});
}

namespace {

const std::string several =
    "task: t\nkind: multilabel\ndata: {train: t.jsonl, valid: test, test: t.jsonl, text: text, ";

/// A line of JSON for each list.
std::string lines_of_lists(const std::vector<std::string>& lists) {
  std::string text;
  for (const auto& list : lists) text += "{\"text\": \"a\", \"labels\": " + list + "}\n";
  return text;
}

}  // namespace

TEST_CASE("lists of 0 and 1 have a place for each label that `labels` names", "[tasks]") {
  const TaskFolder folder;
  const auto yaml = several + "label: labels}\n";
  folder.write("t.jsonl", lines_of_lists({"[1, 0, 1]", "[0.0, 1.0, 0.0]", "[true, true, false]", "[0, 0, 0]"}));
  CHECK_THAT(folder.fault(yaml),
             Contains("t.jsonl:1: has 3 numbers 0 and 1, one in the place of each label; name so many, in this order, "
                      "with `labels`: {FIRST: FIRST, SECOND: SECOND}"));
  const auto task = folder.open(yaml + "labels: {joy: joy, fear: fear, anger: anger}");
  CHECK(gold_ids(task.train.items[0]) == std::vector<int64_t>{0, 2});
  CHECK(gold_ids(task.train.items[1]) == std::vector<int64_t>{1});
  CHECK(gold_ids(task.train.items[2]) == std::vector<int64_t>{0, 1});
  CHECK(gold_ids(task.train.items[3]).empty());
  const auto numbered = folder.open(yaml + "labels: {\"0\": joy, \"1\": fear, \"2\": anger}");
  CHECK(gold_ids(numbered.train.items[0]) == std::vector<int64_t>{0, 2});
  folder.write("t.jsonl", lines_of_lists({"[1, 0]", "[0, 1]"}));
  CHECK_THAT(folder.fault(yaml), Contains("t.jsonl: every item has all labels, '0', '1', of which nothing can be "
                                          "learned; if these are lists of 0 and 1, one in the place of each label"));
  CHECK(gold_ids(folder.open(yaml + "labels: {yes: yes, no: no}").train.items[1]) == std::vector<int64_t>{1});
  folder.write("t.jsonl", lines_of_lists({"[1, 0]", "[0]", "[]"}));
  CHECK(gold_ids(folder.open(yaml + "labels: {\"0\": a, \"1\": b}").train.items[0]) == std::vector<int64_t>{0, 1});
}

TEST_CASE("cells of 0 and 1 have a place for each label that `labels` names", "[tasks]") {
  const TaskFolder folder;
  const std::string yaml =
      "task: t\nkind: multilabel\ndata: {train: t.tsv, valid: test, test: t.tsv, text: text, label: labels";
  folder.write("t.tsv", "text\tlabels\none\t1,0,1\ntwo\t0,1,0\nthree\t0,0,0\n");
  CHECK_THAT(folder.fault(yaml + "}"),
             Contains("t.tsv:2: has 3 numbers 0 and 1, one in the place of each label; name so "
                      "many, in this order, with `labels`"));
  const auto task = folder.open(yaml + "}\nlabels: {joy: joy, fear: fear, anger: anger}");
  CHECK(gold_ids(task.train.items[0]) == std::vector<int64_t>{0, 2});
  CHECK(gold_ids(task.train.items[1]) == std::vector<int64_t>{1});
  CHECK(gold_ids(task.train.items[2]).empty());
  folder.write("t.tsv", "text\tlabels\none\t1 0\ntwo\t0 1\n");
  const auto spaced = folder.open(yaml + ", label_separator: \" \"}\nlabels: {joy: joy, fear: fear}");
  CHECK(gold_ids(spaced.train.items[1]) == std::vector<int64_t>{1});
}

TEST_CASE("columns of 0 and 1 are labels, in the order in which they are named", "[tasks]") {
  const TaskFolder folder;
  const std::string yaml =
      "task: t\nkind: multilabel\ndata: {train: t.csv, valid: test, test: t.csv, text: text, label: [toxic, insult]}";
  folder.write("t.csv", "text,insult,toxic\na,0,1\nb,True,1.0\nc,0,0\n");
  const auto task = folder.open(yaml);
  CHECK(task.labels.names == std::vector<std::string>{"toxic", "insult"});
  CHECK(gold_ids(task.train.items[0]) == std::vector<int64_t>{0});
  CHECK(gold_ids(task.train.items[1]) == std::vector<int64_t>{0, 1});
  CHECK(gold_ids(task.train.items[2]).empty());
  CHECK(folder.open(yaml + "\nlabels: {insult: rude, toxic: bad}").labels.names ==
        std::vector<std::string>{"rude", "bad"});
  CHECK_THAT(folder.fault(yaml + "\nlabels: {insult: rude, tocsic: bad}"),
             Contains("'labels' names 'tocsic', and is no column of 'data.label', toxic, insult; name those"));
  folder.write("t.csv", "text,insult,toxic\na,0,2\n");
  CHECK_THAT(folder.fault(yaml), Contains("t.csv:2: 'toxic' is '2'; a column of `data.label`, of which there are "
                                          "several, has 1 where an item has the label, else 0"));
  CHECK_THAT(folder.fault(mood_task + "data: {train: t.csv, test: t.csv, text: text, label: [toxic, insult]}"),
             Contains("'data.label' names 2 columns, and 'kind' is classification; columns of 0 and 1"));
  CHECK_THAT(folder.fault(mood_task + "data: {train: t.csv, test: t.csv, text: toxic, label: toxic}"),
             Contains("'data.text' and 'data.label' are both 'toxic'; name a column of the text and another one"));
}

TEST_CASE("lists as Python prints them are told from labels", "[tasks]") {
  const TaskFolder folder;
  const std::string yaml =
      "task: t\nkind: multilabel\ndata: {train: t.tsv, valid: test, test: t.tsv, text: text, label: labels}";
  for (const std::string list : {"['a', 'b']", "[1, 0]", "[]", "[ \"a\" ]"}) {
    folder.write("t.tsv", "text\tlabels\none\t" + list + "\n");
    CHECK_THAT(folder.fault(yaml), Contains("t.tsv:2: '" + list +
                                            "' is a list as Python prints it; write the labels "
                                            "with `label_separator` between them, or write JSON lines"));
  }
  folder.write("t.tsv", "text\tlabels\none\t{'a', 'c'}\n");
  CHECK_THAT(folder.fault(yaml), Contains("t.tsv:2: '{'a', 'c'}' is a set as Python prints it; write the labels with"));
  using Pair = std::pair<std::string, std::string>;
  for (const auto& [cell, type] :
       {Pair{"[False, True]", "a list"}, Pair{"[a, c]", "a list"}, Pair{"('a',)", "a tuple"},
        Pair{"array(['a'], dtype=object)", "an array"}, Pair{"{'a': 1, 'b': 0}", "a dictionary"}}) {
    folder.write("t.tsv", "text\tlabels\none\t" + cell + "\n");
    CHECK_THAT(folder.fault(yaml), Contains("t.tsv:2: '" + cell + "' is " + type + " as Python prints it"));
  }
  folder.write("t.tsv", "text\tlabels\none\t(a), (b)\ntwo\t[a]\nthree\t(b)\n");
  CHECK(folder.fault(yaml) == "");
  folder.write("t.tsv", "text\tlabels\none\t0 1\ntwo\t1 0\n");
  CHECK_THAT(folder.fault(yaml), Contains("t.tsv:2: '0 1' has several numbers 0 and 1, and `label_separator` is ','"));
  folder.write("t.tsv", "text\tlabel\none\t['a']\ntwo\t['b']\n");
  CHECK_THAT(folder.fault(mood_task + "data: {train: t.tsv, valid: test, test: t.tsv, text: text, label: label}"),
             Contains("t.tsv:2: '['a']' is a list as Python prints it; write one label, or `kind: multilabel`"));
  folder.write("t.csv", "words,tags\n\"['a', 'b']\",\"['O', 'O']\"\n");
  CHECK_THAT(
      folder.fault("task: t\nkind: tagging\ndata: {train: t.csv, valid: test, test: t.csv, text: words, label: tags}"),
      Contains("t.csv: is read as csv, which has no words with tags; write `format: conll`, or lists in JSON lines"));
  folder.write("t.tsv", "text\tlabels\none\t[x], [y]\ntwo\t[x]\n");
  CHECK(folder.open(yaml).labels.names == std::vector<std::string>{"[x]", "[y]"});
}

TEST_CASE("a first line of the numbers of columns is one of names", "[tasks]") {
  const TaskFolder folder;
  const auto splits = "data: {train: t.csv, valid: test, test: t.csv, text: 0, label: 1}";
  for (const std::string names : {"0,1", ",0,1", "\"0\",\"1\""}) {
    const std::string before = names[0] == ',' ? "7," : "";
    folder.write("t.csv", names + "\n" + before + "one,x\n" + before + "two,y\n");
    const auto task = folder.open(mood_task + splits);
    REQUIRE(task.train.items.size() == 2);
    CHECK(task.train.items[0].text == "one");
    CHECK_FALSE(task.train.first_line_may_be_header);
  }
  for (const std::string names : {",0,1", "id,0,1"}) {
    folder.write("t.csv", names + "\n7,one,x\n8,two,y\n");
    CHECK_THAT(folder.fault(mood_task + "data: {header: true, train: t.csv, test: t.csv, text: 1, label: 2}"),
               Contains("t.csv:1: no column is named '2'; its first line has ") &&
                   Contains("0, 1, of which numbers are names; call all columns by their names"));
  }
  folder.write("t.csv", "1,0\n0,1\n");
  const auto task = folder.open(mood_task + splits);
  CHECK(task.train.items.size() == 2);
  CHECK_THAT(notes_of(task), Contains("train: the cells of the first line, ") &&
                                 Contains("t.csv:1, are numbers; if they are names of columns, write `header: true`"));
  folder.write("t.csv", "1,2\na,x\nb,y\n");
  CHECK_THAT(
      folder.fault(mood_task + "data: {train: t.csv, valid: test, test: t.csv, text: 1, label: 2}"),
      Contains("t.csv:1: has 2 cells, none at position 2; positions count from 0; if this is a line of names, write "
               "`header: true`"));
}

TEST_CASE("comments of column files are no words, and are counted", "[tasks]") {
  const TaskFolder folder;
  const std::string tagging = "task: t\nkind: tagging\ndata: {train: t.conll, valid: test, test: t.conll}";
  folder.write("t.conll",
               "# sent_id = 7\nAda _ _ X\n# _ _ Y\nsaw _ _ X\n\n# text = # it\n# a remark\n# _ _ Y\n\n#end document\n");
  const auto task = folder.open(tagging);
  REQUIRE(task.train.items.size() == 2);
  CHECK(task.train.items[0].words == std::vector<std::string>{"Ada", "#", "saw"});
  CHECK(task.train.items[1].words == std::vector<std::string>{"#"});
  CHECK_THAT(notes_of(task), Contains("train: 4 lines are comments and no words, first ") && Contains("t.conll:1\n"));
  folder.write("t.conll", "# newdoc\nAda X\nsaw Y\n\n# 7\n#id: 7\n# X\n#x B-Z\n# 7\n");
  const auto two = folder.open(tagging);
  CHECK(two.train.items[0].words == std::vector<std::string>{"Ada", "saw"});
  CHECK(two.train.items[1].words == std::vector<std::string>{"#", "#x", "#"});
  CHECK_THAT(notes_of(two), Contains("train: 3 lines are comments and no words, first "));
}

TEST_CASE("a path of nested lists is refused where the file has none", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.tsv", "text\tlabel\na\tx\nb\ty\n");
  CHECK_THAT(
      folder.fault(mood_task + "data: {train: t.tsv, valid: test, test: t.tsv, text: text, label: label, each: a.b}"),
      Contains("t.tsv: is read as tsv, and 'data.each' is 'a.b'; only JSON lines nest"));
}

TEST_CASE("tags that are numbers are held to their scheme by the names that `labels` gives", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.jsonl", "{\"tokens\": [\"a\", \"b\", \"c\"], \"tags\": [1, 2, 0]}\n");
  const std::string yaml =
      "task: t\nkind: tagging\ndata: {train: t.jsonl, valid: test, test: t.jsonl, text: tokens, label: tags, scheme: ";
  CHECK_THAT(notes_of(folder.open(yaml + "bio}\nlabels: {\"0\": O, \"1\": B-x, \"2\": I-x}")), !Contains("break"));
  CHECK_THAT(notes_of(folder.open(yaml + "bio}\nlabels: {\"0\": O, \"1\": B-x, \"2\": I-y}")),
             Contains("train: 1 tag breaks bio"));
  CHECK_THAT(folder.fault(yaml + "bio}"), Contains("or name tags that are numbers with `labels`"));
}

TEST_CASE("schemes have the names of seqeval, too, and tags of one kind of phrase no type", "[tasks]") {
  const TaskFolder folder;
  const auto notes = [&](const std::string& scheme, const std::string& tags) {
    folder.write("t.conll", tags);
    return notes_of(folder.open(
        "task: t\nkind: tagging\ndata: {train: t.conll, valid: test, test: t.conll, scheme: " + scheme + "}"));
  };
  CHECK_THAT(notes("bmes", "a B\nb M\nc E\nd S\n"), !Contains("break"));
  CHECK_THAT(notes("bmes", "a B-x\nb M-x\nc S-x\n"), Contains("train: 1 tag breaks bmes, first "));
  CHECK_THAT(notes("BILOU", "a B-x\nb I-x\nc L-x\nd U-y\ne O\n"), !Contains("break"));
  CHECK_THAT(notes("IOB2", "a I-x\nb O\n"), Contains("train: 1 tag breaks bio"));
  CHECK_THAT(notes("IOB1", "a I-x\nb O\n"), !Contains("break"));
  CHECK_THAT(notes("ioe2", "a I-x\nb E-x\nc I-x\nd O\n"), Contains("train: 1 tag breaks ioe2"));
}

TEST_CASE("a candidate may be called in several ways, which have one name", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.jsonl",
               "{\"q\": \"why\", \"of\": [\"x\", \"y\"], \"right\": \"B\"}\n"
               "{\"q\": \"how\", \"of\": [\"x\", \"y\"], \"right\": 1}\n");
  const std::string yaml =
      "task: t\nkind: choice\ndata: {train: t.jsonl, valid: test, test: t.jsonl, text: q, candidates: of, label: "
      "right}\nlabels: ";
  const auto task = folder.open(yaml + "{A: first, B: second, \"1\": first, \"2\": second}");
  CHECK(label_ids(task.train) == std::vector<int64_t>{1, 0});
  CHECK(task.labels.names == std::vector<std::string>{"first", "second"});
  CHECK_THAT(
      folder.fault(yaml + "{A: first, B: second}"),
      Contains("t.jsonl:2: its label is '1', and it has candidates 0 to 1; if they are called otherwise, say so, "
               "and where one is called in two ways give both its name: labels: {A: first, B: second, \"1\": "));
}

TEST_CASE("items without a text or a label are left out, and counted, where that is asked for", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.jsonl",
               "{\"text\": \"one\", \"label\": \"x\"}\n{\"text\": null, \"label\": \"x\"}\n"
               "{\"text\": \"two\", \"label\": null}\n{\"text\": \"three\", \"label\": \"\"}\n"
               "{\"text\": \"four\", \"label\": \"y\"}\n");
  const auto yaml = mood_task + "data: {train: t.jsonl, valid: test, test: t.jsonl, text: text, label: label}";
  CHECK_THAT(folder.fault(yaml), Contains("t.jsonl:2: 'text' is null; give it a value, or leave such items out with"));
  const auto task = folder.open(yaml, {.skip_bad = true});
  CHECK(task.train.items.size() == 2);
  CHECK_THAT(notes_of(task), Contains("train: 3 items without a text or a label left out, first ") &&
                                 Contains("t.jsonl:2: 'text' is null"));
}

TEST_CASE("ids of SQuAD's questions may be numbers", "[tasks]") {
  const TaskFolder folder;
  folder.write("t.json",
               "{\"data\": [{\"title\": \"t\", \"paragraphs\": [{\"context\": \"in Rome\", \"qas\": [{\"id\": 17, "
               "\"question\": \"Where?\", \"answers\": [{\"text\": \"Rome\", \"answer_start\": 3}]}]}]}]}");
  CHECK(folder.open("task: t\nkind: spans\ndata: {train: t.json, valid: test, test: t.json}").test.items[0].id == "17");
}

#include "tasks/scores/predictions.h"

#include <sys/stat.h>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;

namespace {

const TaskLabels moods{.names = {"negative", "positive"}, .written = {"0", "1"}};

std::vector<TaskItem> three_reviews() {
  return {{.id = "test:0", .gold = label_answer(0)},
          {.id = "test:1", .gold = label_answer(1)},
          {.id = "test:2", .gold = label_answer(1)}};
}

std::vector<int64_t> labels_in(const std::string& name, const std::string& text) {
  const TempDir folder;
  std::vector<int64_t> found;
  for (const auto& one :
       read_predictions(folder.write(name, text), "classification", three_reviews(), moods).predictions)
    found.push_back(one.answer.label);
  return found;
}

/// Why a file of predictions is refused.
std::string prediction_fault(const std::string& name, const std::string& text, AnyTaskKind kind = "classification") {
  const TempDir folder;
  try {
    read_predictions(folder.write(name, text), kind, three_reviews(), moods);
    return "";
  } catch (const DataError& error) {
    const std::string message = error.what(), path = folder.path.string() + "/";
    const auto at = message.find(path);
    return at == std::string::npos ? message : message.substr(0, at) + message.substr(at + path.size());
  }
}

const std::vector<int64_t> one_zero_one{1, 0, 1};

}  // namespace

TEST_CASE("labels are read by name, as they are written, or by number, in lines, JSON lines and JSON") {
  CHECK((labels_in("p.txt", "positive\n0\n1\n") == one_zero_one));
  CHECK((labels_in("p.tsv", "index\tprediction\n0\tpositive\n1\tnegative\n2\tpositive\n") == one_zero_one));
  CHECK((labels_in("p.jsonl",
                   "{\"item\": 2, \"label\": \"positive\"}\n{\"item\": \"test:1\", \"label\": 0}\n"
                   "{\"id\": \"test:0\", \"label\": \"1\"}\n") == one_zero_one));
  CHECK((labels_in("p.jsonl", "{\"label\": 1}\n{\"label\": 0}\n{\"label\": 1}\n") == one_zero_one));
  CHECK((labels_in("p.json",
                   "{\"sst2\": {\"predictions\": [{\"id\": \"sst2_0\", \"pred\": 1}, {\"id\": \"sst2_2\", "
                   "\"pred\": 1}, {\"id\": \"sst2_1\", \"pred\": 0}]}}") == one_zero_one));
}

TEST_CASE("predictions are read as predict writes them") {
  CHECK((labels_in("p.tsv", "item\tprediction\nitems:0\tpositive\nitems:1\tnegative\nitems:2\tpositive\n") ==
         one_zero_one));
  CHECK((labels_in("p.tsv", "text\tprediction\tprediction_2\na\tx\t1\nb\tx\t0\nc\tx\t1\n") == one_zero_one));
  CHECK((labels_in("p.jsonl",
                   "{\"item\": \"items:2\", \"label\": 1}\n{\"item\": \"items:1\", \"label\": 0}\n"
                   "{\"item\": \"items:0\", \"label\": 1}\n") == one_zero_one));
  CHECK(prediction_fault("p.jsonl", "{\"item\": \"items:3\", \"label\": 1}\n") ==
        "p.jsonl:1: there is no item 3; the part has 3 items, numbered from 0");
  const TempDir folder;
  std::vector<TaskItem> items(2);
  const TaskLabels topics{.names = {"world news", "sport", "a"}, .written = {}};
  const auto several = [&](const std::string& text) {
    return read_predictions(folder.write("p.tsv", text), "multilabel", items, topics).predictions;
  };
  const auto found = several("item\tprediction\nitems:0\tworld news,sport\nitems:1\tworld news\n");
  CHECK(found[0].answer.labels == std::vector<int64_t>{0, 1});
  CHECK(found[1].answer.labels == std::vector<int64_t>{0});
  CHECK(several("sport a\n\n")[0].answer.labels == std::vector<int64_t>{1, 2});
  const TaskLabels tags{.names = {"O", "B-x"}, .written = {}};
  const auto tagged =
      read_predictions(folder.write("t.tsv", "item\tprediction\nitems:0\tO B-x\nitems:1\tO\n"), "tagging", items, tags);
  CHECK(tagged.predictions[0].answer.labels == std::vector<int64_t>{0, 1});
  CHECK(tagged.predictions[1].answer.labels == std::vector<int64_t>{0});
}

TEST_CASE("predictions are read from CSV, as predict writes it and as one column") {
  CHECK((labels_in("p.csv", "id,text,label,prediction\n0,\"one,\nand \"\"two\"\"\",x,1\n1,b,x,0\n2,c,x,1\n") ==
         one_zero_one));
  CHECK((labels_in("p.csv", "text;prediction\na;positive\nb;negative\nc;1\n") == one_zero_one));
  CHECK((labels_in("p.csv", "prediction\npositive\nnegative\npositive\n") == one_zero_one));
  CHECK((labels_in("p.csv", "\"positive\"\nnegative\n1\n") == one_zero_one));
  CHECK((labels_in("p.txt", "prediction\npositive\nnegative\npositive\n") == one_zero_one));
  CHECK_THAT(prediction_fault("p.csv", "prediction\n1\n0\n1\n1\n"),
             Contains("p.csv:5: here is prediction 4 of 3 items; each has one"));
}

TEST_CASE("of two columns the first says which item a prediction is for") {
  CHECK((labels_in("p.tsv", "index\tprediction\n2\t1\n1\t0\n0\t1\n") == one_zero_one));
  CHECK((labels_in("p.tsv", "index\tprediction\n1\t0\n2\t1\n0\t1\n") == one_zero_one));
  for (const std::string names : {"id\tlabel", "Id\tCategory", "idx\tlabel"})
    CHECK((labels_in("p.tsv", names + "\n1\t0\n2\t1\n0\t1\n") == one_zero_one));
  CHECK((labels_in("p.csv", "Id,Label\n1,0\n2,1\n0,1\n") == one_zero_one));
  CHECK((labels_in("p.csv", "item,prediction\ntest:1,0\ntest:0,1\ntest:2,1\n") == one_zero_one));
  CHECK_THAT(prediction_fault("p.tsv", "index\tprediction\n0\t1\n1\t0\n3\t1\n"),
             Contains("p.tsv:4: there is no item 3; the part has 3 items, numbered from 0"));
  CHECK_THAT(prediction_fault("p.tsv", "index\tprediction\n0\t1\n0\t0\n2\t1\n"),
             Contains("p.tsv:3: item 'test:0' has a prediction already; keep one"));
  CHECK_THAT(prediction_fault("p.tsv", "index\tprediction\n0\t1\nx\t0\n2\t1\n"),
             Contains("p.tsv:3: the part has no item 'x'"));
  CHECK_THAT(prediction_fault("p.jsonl", "{\"item\": 18446744073709551615, \"label\": 1}\n"),
             Contains("p.jsonl:1: there is no item 18446744073709551615; the part has 3 items"));
}

TEST_CASE("of two columns without names the first one names the items where it has all of them, in any order") {
  CHECK((labels_in("p.tsv", "0\t1\n1\t0\n2\t1\n") == one_zero_one));
  CHECK((labels_in("p.csv", "0,1\n1,0\n2,1\n") == one_zero_one));
  CHECK((labels_in("p.tsv", "1\t0\n2\t1\n0\t1\n") == one_zero_one));
  CHECK((labels_in("p.txt", "2\t0\n3\t1\n1\t1\n") == one_zero_one));
  CHECK((labels_in("p.csv", "test:1,0\ntest:0,1\ntest:2,1\n") == one_zero_one));
  CHECK((labels_in("p.tsv", "0\t1\n0\t0\n1\t1\n") == one_zero_one));  // what is right beside what is predicted
  const TempDir folder;
  const auto notes = [&](const std::string& text) {
    return read_predictions(folder.write("p.tsv", text), "classification", three_reviews(), moods).notes;
  };
  CHECK(notes("0\t1\n1\t0\n2\t1\n").empty());
  REQUIRE(notes("2\t0\n1\t1\n0\t1\n").size() == 1);
  CHECK_THAT(
      notes("2\t0\n1\t1\n0\t1\n")[0],
      Contains("p.tsv: its first column names the items, in another order than theirs, and each line is read for "
               "the item that it names"));
}

TEST_CASE("a JSON list of predictions is refused with what is read") {
  CHECK_THAT(
      prediction_fault("p.json", "[1, 0, 1]"),
      Contains("p.json: this is no JSON object of predictions; write {ID: answer}, or an object a line in a .jsonl"));
}

TEST_CASE("an answer that is no label is a wrong prediction, and said") {
  CHECK((labels_in("p.txt", "positive\nperhaps\n1\n") == std::vector<int64_t>{1, unknown_label, 1}));
  const TempDir folder;
  const auto notes = [&](const std::string& text) {
    const auto path = folder.write("p.txt", text);
    return read_predictions(path, "classification", three_reviews(), moods).notes;
  };
  CHECK(notes("positive\n1\n0\n").empty());
  CHECK_THAT(notes("positive\nperhaps\n\n").at(0),
             Catch::EndsWith("p.txt: 2 predictions with a label that the task does not have, first " +
                             folder.path.string() + "/p.txt:2; they count as wrong"));
}

TEST_CASE("probabilities are read by label") {
  const TempDir folder;
  const auto path = folder.write("p.jsonl",
                                 "{\"label\": 1, \"probabilities\": [0.25, 0.75]}\n"
                                 "{\"label\": 0, \"probabilities\": {\"positive\": 0.125, \"negative\": 0.875}}\n"
                                 "{\"label\": 1}\n");
  const auto read = read_predictions(path, "classification", three_reviews(), moods).predictions;
  CHECK((read[0].probabilities == std::vector<double>{0.25, 0.75}));
  CHECK((read[1].probabilities == std::vector<double>{0.875, 0.125}));
  CHECK(read[2].probabilities.empty());
}

TEST_CASE("tags are read from columns, from lines and from JSON lines alike") {
  const TempDir folder;
  const TaskLabels tags{.names = {"O", "B-a"}, .written = {"O", "B-a"}};
  const std::vector<TaskItem> items{{.id = "a", .words = {"x", "y"}}, {.id = "b", .words = {"z"}}};
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"p.conll", "x\tO\ny\tB-a\n\nz\tO\n"},
           {"p.txt", "O B-a\nO\n"},
           {"p.jsonl", "{\"id\": \"a\", \"tags\": [\"O\", \"B-a\"]}\n{\"id\": \"b\", \"tags\": [\"O\"]}\n"}}) {
    const auto read = read_predictions(folder.write(name, text), "tagging", items, tags).predictions;
    CHECK((read[0].answer.labels == std::vector<int64_t>{0, 1}));
    CHECK((read[1].answer.labels == std::vector<int64_t>{0}));
  }
}

TEST_CASE("answers of SQuAD's form may be missing, and the order of no-answer scores is that of their file") {
  const TempDir folder;
  const auto answers = folder.write("p.json", "{\"test:2\": \"sky\", \"test:0\": \"\", \"other\": \"x\"}");
  const auto scores = folder.write("n.json", "{\"test:2\": 0.5, \"test:0\": -1}");
  const auto read = read_predictions(answers, "spans", three_reviews(), {}, scores);
  REQUIRE(read.notes.size() == 2);
  CHECK_THAT(read.notes[0], Contains("p.json: 2 of 3 questions have a prediction; 1 has none, 'test:1', and count as "
                                     "wrong, as SQuAD's program does"));
  CHECK_THAT(read.notes[1], Contains("p.json: 1 prediction for questions that the part does not have, 'other'; it "
                                     "counts nothing"));
  CHECK(read.predictions[2].answer.text() == "sky");
  CHECK(read.predictions[1].id.empty());
  CHECK(read.predictions[0].no_answer == -1);
  CHECK((read.no_answer_order == std::vector<size_t>{2, 0}));
  CHECK_THROWS_WITH(read_predictions(answers, "spans", three_reviews(), {}, folder.write("m.json", "{}")),
                    Contains("m.json: there is no score for item 'test:0', which has a prediction"));
}

TEST_CASE("a file of another length, and ids that are doubled, unknown or missing, are refused with the place") {
  CHECK(prediction_fault("p.txt", "1\n0\n") ==
        "p.txt: there is no prediction for 1 of 3 items, the first of which is 'test:2'; each item has one");
  CHECK(prediction_fault("p.txt", "1\n0\n1\n1\n") == "p.txt:4: here is prediction 4 of 3 items; each has one");
  CHECK(prediction_fault("p.jsonl", "{\"item\": 1, \"label\": 0}\n{\"item\": 1, \"label\": 0}\n") ==
        "p.jsonl:2: item 'test:1' has a prediction already; keep one");
  CHECK(prediction_fault("p.jsonl", "{\"id\": \"test:9\", \"label\": 0}\n") ==
        "p.jsonl:1: the part has no item 'test:9'");
  CHECK(prediction_fault("p.jsonl", "{\"item\": 3, \"label\": 0}\n") ==
        "p.jsonl:1: there is no item 3; the part has 3 items, numbered from 0");
}

TEST_CASE("a choice that is none of an item's candidates counts as wrong and is noted") {
  const TempDir folder;
  const std::vector<TaskItem> items{{.id = "test:0", .candidates = {"a", "b"}, .gold = label_answer(0)},
                                    {.id = "test:1", .candidates = {"a", "b", "c"}, .gold = label_answer(2)}};
  const auto read = [&](const std::string& name, const std::string& text) {
    const auto file = read_predictions(folder.write(name, text), "choice", items, moods);
    std::vector<int64_t> found;
    for (const auto& one : file.predictions) found.push_back(one.answer.label);
    CHECK_THAT(file.notes.at(0),
               Contains(name + ": 1 prediction with a candidate that the item does not have, first "));
    return found;
  };
  const std::vector<int64_t> second{unknown_label, 2};
  for (const std::string none : {"-1", "2", "18446744073709551615", "9223372036854775807"}) {
    CHECK(read("p.jsonl", "{\"choice\": " + none + "}\n{\"choice\": 2}\n") == second);
    CHECK(read("p.txt", none + "\n2\n") == second);
  }
  CHECK(prediction_fault("p.txt", "0.5\n", "choice") == "p.txt:1: 0.5 is no number of a candidate, counted from 0");
}

TEST_CASE("what is no prediction of the kind is refused with the place") {
  CHECK(prediction_fault("p.jsonl", "{\"item\": 0, \"value\": 1}\n") ==
        "p.jsonl:1: a prediction of classification is an object with the key 'label', or 'probabilities'");
  CHECK(prediction_fault("p.jsonl", "{\"label\": 7}\n") ==
        "p.jsonl:1: label 7 is none of the task's, which has 2 labels, numbered from 0");
  CHECK(prediction_fault("p.jsonl", "{\"label\": 0.5}\n") == "p.jsonl:1: 0.5 is no label; write its name or number");
  CHECK(prediction_fault("p.jsonl", "{\"labels\": [1, \"negative\", \"1\"]}\n", "multilabel") ==
        "p.jsonl:1: has the label 'positive' twice; a set of labels has each once");
  CHECK(prediction_fault("p.txt", "1\nnan\n", "regression") == "p.txt:2: 'nan' is no number");
  CHECK(prediction_fault("p.jsonl", "{\"answer\": 3}\n", "spans") == "p.jsonl:1: 3 is no answer, which is a text");
  CHECK(prediction_fault("p.jsonl", "{\"tags\": \"O\"}\n", "tagging") == "p.jsonl:1: \"O\" is no list of labels");
  CHECK(prediction_fault("p.jsonl", "{\"choice\": \"a\"}\n", "choice") ==
        "p.jsonl:1: \"a\" is no number of a candidate, counted from 0");
  CHECK(prediction_fault("p.jsonl", "{\"value\": \"a\"}\n", "regression") == "p.jsonl:1: \"a\" is no number");
  CHECK_THAT(prediction_fault("p.json", "[1]"), Contains("p.json: this is no JSON object of predictions"));
  CHECK(prediction_fault("p.json", "{\"t\": {\"predictions\": [{\"id\": \"t_x\", \"pred\": 1}]}}") ==
        "p.json: prediction 0: 't_x' does not end with the number of an item, as TASK_0 does");
  CHECK(prediction_fault("p.jsonl", "{\"label\": 1, \"probabilities\": {\"none\": 1}}\n") ==
        "p.jsonl:1: 'none' is no label of the task");
}

TEST_CASE("questions without a prediction are named, and a file that has none of them is refused") {
  const TempDir folder;
  std::vector<TaskItem> questions(3);
  for (size_t i = 0; i < 3; ++i) questions[i] = {.id = std::to_string(i), .gold = spans_answer({})};
  CHECK_THROWS_WITH(read_predictions(folder.write("p.json", "{}"), "spans", questions, {}),
                    Contains("has no prediction for any of the 3 questions of the part; write one for each"));
  const auto read = read_predictions(folder.write("p.json", R"({"1": "sky"})"), "spans", questions, {});
  CHECK_THAT(read.notes.at(0), Contains("1 of 3 questions have a prediction; 2 have none, '0', '2', and figures leave "
                                        "them out"));
  for (auto& question : questions) question.gold = spans_answer({{.text = "sky"}});
  const auto note = [&](SquadVersion version) {
    return read_predictions(folder / "p.json", "spans", questions, {}, "", version).notes.at(0);
  };
  CHECK_THAT(note(SquadVersion::automatic), Contains("'2', and count as wrong"));
  CHECK_THAT(note(SquadVersion::v2_0), Contains("'2', and figures leave them out"));
  CHECK_THROWS_WITH(read_predictions(folder.write("q.json", R"({"x": "sky"})"), "spans", questions, {}),
                    Contains("q.json: has no prediction for any of the 3 questions of the part, and ids that it does "
                             "not have, 'x'"));
  const auto numbers = folder.write("p.jsonl",
                                    "{\"id\": 2, \"answer\": \"c\"}\n{\"id\": 0, \"answer\": \"a\"}\n"
                                    "{\"id\": 1, \"answer\": \"b\"}\n");
  CHECK(read_predictions(numbers, "spans", questions, {}).predictions[2].answer.text() == "c");
}

TEST_CASE("probabilities without a label are predictions, and those that contradict one or are none are noted") {
  const TempDir folder;
  const auto read = [&](AnyTaskKind kind, const std::string& text) {
    return read_predictions(folder.write("p.jsonl", text), kind, three_reviews(), moods);
  };
  const auto alone = read("classification",
                          "{\"probabilities\": [0.25, 0.75]}\n{\"probabilities\": {\"negative\": 0.5, \"positive\": "
                          "0.25}}\n{\"label\": 1, \"probabilities\": [0.5, 0.5]}\n");
  CHECK(alone.predictions[0].answer.label == 1);
  CHECK(alone.predictions[1].answer.label == 0);
  CHECK(alone.notes.empty());
  const auto sets = read("multilabel",
                         "{\"probabilities\": [0.5, 0.75]}\n{\"probabilities\": [0.1, 0.2]}\n"
                         "{\"labels\": [0], \"probabilities\": [0.4, 0.3]}\n");
  CHECK(sets.predictions[0].answer.labels == std::vector<int64_t>{1});
  CHECK(sets.predictions[1].answer.labels.empty());
  CHECK(sets.notes.empty());
  const auto odd = read("classification",
                        "{\"label\": 0, \"probabilities\": [0.25, 0.75]}\n{\"label\": 1, \"probabilities\": [0, 1.5]}\n"
                        "{\"label\": 1, \"probabilities\": [0, 1]}\n");
  REQUIRE(odd.notes.size() == 2);
  CHECK_THAT(odd.notes[0], Contains("p.jsonl: 1 prediction whose label is not the likeliest one, first ") &&
                               Contains("p.jsonl:1; it counts by the label"));
  CHECK_THAT(odd.notes[1], Contains("1 prediction with a probability outside of [0, 1], first ") &&
                               Contains("p.jsonl:2; it counts as scores"));
  auto items = three_reviews();
  for (auto& item : items) item.candidates = {"good", "bad", "fair"};
  const auto scores = folder.write("c.jsonl", "{\"scores\": [3, 4, 5]}\n{\"scores\": [2, 1]}\n{\"choice\": 0}\n");
  const auto choice = read_predictions(scores, "choice", items, moods);
  CHECK(choice.predictions[0].answer.label == 2);
  CHECK(choice.predictions[1].answer.label == 0);
  CHECK(choice.notes.empty());
  const auto odd_choice = read_predictions(
      folder.write("c.jsonl", "{\"choice\": 0, \"scores\": [1, 2]}\n{\"choice\": 0}\n{\"choice\": 0}\n"), "choice",
      items, moods);
  CHECK_THAT(odd_choice.notes.at(0), Contains("1 prediction whose score is not the greatest, first ") &&
                                         Contains("c.jsonl:1; it counts by the choice"));
}

TEST_CASE("a pipe of predictions and standard input are refused, and numbers of items are whole") {
  const TempDir folder;
  const auto pipe = folder / "p.jsonl";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_predictions(pipe, "classification", three_reviews(), moods),
                    pipe + ": is a pipe or a device, and predictions are read from a file; write them to one");
  CHECK_THROWS_WITH(read_predictions("-", "classification", three_reviews(), moods),
                    "-: is a pipe or a device, and predictions are read from a file; write them to one");
  CHECK(prediction_fault("p.jsonl", "{\"item\": \"items:1.7\", \"label\": 0}\n") ==
        "p.jsonl:1: the part has no item 'items:1.7'");
  CHECK(prediction_fault("p.jsonl", "{\"item\": 1.7, \"label\": 0}\n") ==
        "p.jsonl:1: 1.7 names no item; write its id, or its number from 0");
}

#include "tasks/task_config.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"

using namespace cloze;
using Catch::Contains;

namespace {

const std::string whole_task =
    "task: mood\nkind: classification\ndata: {train: a.tsv, valid: b.tsv, test: c.tsv, text: text, label: label}\n";

/// Why a task file cannot be read; `more`: lines after those of a whole one.
std::string config_fault(const std::string& more, const std::vector<std::string>& changes = {}) {
  const TempDir folder;
  try {
    read_task_config(folder.write("task.yaml", whole_task + more), changes);
    return "";
  } catch (const ConfigError& error) {
    std::string text = error.what();
    replace_all(text, folder.path.string() + "/", "");
    return text;
  }
}

TaskConfig config_of(const std::string& more, const std::vector<std::string>& changes = {}) {
  const TempDir folder;
  return read_task_config(folder.write("task.yaml", whole_task + more), changes);
}

}  // namespace

TEST_CASE("a task file is decoded, with labels in the order in which they stand", "[tasks]") {
  const auto config = config_of("labels: {\"1\": good, \"0\": bad}\nmetric: [f1, accuracy]\nlike: turc-2019\n");
  CHECK(config.task == "mood");
  CHECK(config.kind == "classification");
  CHECK(given_labels(config).names == std::vector<std::string>{"good", "bad"});
  CHECK(given_labels(config).written == std::vector<std::string>{"1", "0"});
  CHECK(config.metric == std::vector<std::string>{"f1", "accuracy"});
  CHECK(kind_in(config.truncation) == "longest");
}

TEST_CASE("a cut is one of five kinds, with its own number", "[tasks]") {
  CHECK(std::get<HeadTailTruncation>(config_of("cut: head_tail\nhead_tail: 96\n").truncation).head_tail == 96);
  CHECK(std::get<Windows>(config_of("cut: windows\nstride: 32\n").truncation).stride == 32);
  CHECK(std::holds_alternative<SecondTruncation>(config_of("cut: second\n").truncation));
  CHECK_THAT(config_fault("stride: 32\n"), Contains("'stride' is an option of windows, and 'cut' is longest"));
}

TEST_CASE("texts of tags and of answers are read in windows", "[tasks]") {
  const std::vector<std::string> spans{"kind=spans", "data.format=squad"};
  CHECK(std::get<Windows>(config_of("stride: 64\n", spans).truncation).stride == 64);
  CHECK(std::holds_alternative<Windows>(config_of("", spans).truncation));
  CHECK_THAT(config_fault("cut: first\n", spans), Contains("'cut' is first, and of spans no word is cut"));
}

TEST_CASE("a task file says what is wrong with it, all at once", "[tasks]") {
  CHECK_THAT(config_fault("metrik: accuracy\n"), Contains("unknown key 'metrik'; did you mean 'metric'?"));
  CHECK_THAT(config_fault("", {"kind=clasification"}), Contains("did you mean 'classification'?"));
  CHECK_THAT(config_fault("max_length: long\n"), Contains("'max_length' must be a whole number, not 'long'"));
  const auto both = config_fault("scale: [5, 0]\nclass_weights: [1, heavy]\n");
  CHECK_THAT(both, Contains("task.yaml: 'scale' is given, and 'kind' is classification; targets of regression"));
  CHECK_THAT(both, Contains("task.yaml: 'class_weights' has 'heavy', which is no weight"));
}

TEST_CASE("each rule of a task file has its sentence", "[tasks]") {
  const std::pair<std::vector<std::string>, const char*> rules[] = {
      {{"task=\"\""}, "'task' is empty; name the task"},
      {{"task=/../../a"}, "'task' is '/../../a', and folders of runs are named by it; write it without a slash"},
      {{"task=\"a\\nb\""},
       "'task' is 'a\\nb', and folders of runs are named by it; write it without tabs and ends of lines"},
      {{"data.test=\"\"", "data.valid=test"}, "'data' has neither test nor valid; name the file that is judged"},
      {{"kind=regression", "scale=[5, 0]"}, "'scale' is no range; write the least target and the greatest: [0, 5]"},
      {{"data.format=squad"}, "'data.format' is squad, and 'kind' is classification; answers in a context are spans"},
      {{"data.format=conll"}, "'data.format' is conll, and 'kind' is classification; a word a line is of tagging"},
      {{"kind=tagging", "data.format=csv"}, "'data.format' is csv, which has no words; write conll, conllu or jsonl"},
      {{"kind=spans", "data.format=csv"}, "'data.format' is csv, which has no places of answers; write squad or jsonl"},
      {{"data.text=\"\""}, "'data.text' is empty; name the column of the text"},
      {{"data.label=\"\""}, "'data.label' is empty; name the column of the label"},
      {{"kind=choice"}, "'data.candidates' is empty; name the columns of the candidates"},
      {{"data.candidates=[a, b]"}, "'data.candidates' is given, and 'kind' is classification; a choice has candidates"},
      {{"data.answers=a"}, "'data.answers' is given, and 'kind' is classification; spans have answers"},
      {{"data.each=a.b", "data.format=tsv"}, "'data.each' is 'a.b', and 'data.format' is tsv; only JSON lines nest"},
      {{"max_answer=30"}, "'max_answer' is given, and 'kind' is classification; spans have questions and answers"},
      {{"max_question=9"}, "'max_question' is given, and 'kind' is classification"},
      {{"data.label_separator=+"},
       "'data.label_separator' is given, and 'kind' is classification; cells of several labels have a separator"},
      {{"kind=tagging", "data.skip_labels=[a]"},
       "'data.skip_labels' is given, and 'kind' is tagging, whose items have no label each"},
      {{"data.scheme=bio"}, "'data.scheme' is bio, and 'kind' is classification; tags have a scheme"},
      {{"kind=multilabel", "data.label_separator=\"\""}, "'data.label_separator' is empty"},
      {{"data.text=\"{a\""},
       "'data.text': the pattern '{a' has a brace without a field; write {FIELD}, or {{ for the brace itself"},
      {{"kind=regression", "labels.a=b"}, "'labels' are given, and 'kind' is regression, which has none"},
      {{"labels.a=[b]", "labels.c=d"}, "'labels' names 'a' by a list; write a text"},
      {{"labels.a=x", "labels.b=x"}, "'labels' gives two of them the name 'x'; give each a name of its own"},
      {{"labels.a=x"}, "'labels' has one label only, of which nothing can be learned; name all"},
      {{"kind=regression", "class_weights=balanced"}, "'class_weights' are given, and 'kind' is regression"}};
  for (const auto& [changes, sentence] : rules) CHECK_THAT(config_fault("", changes), Contains(sentence));
  const TempDir folder;
  const auto file = folder.write("task.yaml", "task: a\ndata: {test: a.tsv, text: text, label: label}\n");
  CHECK_THROWS_WITH(read_task_config(file), Contains("'kind' is not given; write one of classification, multilabel"));
}

TEST_CASE("a file of a task is looked for beside it, then in the folder of tasks, compressed or not", "[tasks]") {
  const TempDir folder;
  const auto task = folder.write("mine/task.yaml", whole_task);
  folder.write("all/set/far.tsv.xz", "");
  folder.write("all/near.tsv", "");
  folder.write("mine/near.tsv", "");
  setenv("CLOZE_TASKS", (folder / "all").c_str(), 1);
  CHECK(find_task_data("near.tsv", task) == folder / "mine/near.tsv");
  CHECK(find_task_data("set/far.tsv", task) == folder / "all/set/far.tsv.xz");
  CHECK(find_task_data(folder / "all/near.tsv", task) == folder / "all/near.tsv");
  CHECK_THROWS_WITH(find_task_data("none.tsv", task),
                    Contains("none.tsv is not there (looked for " + (folder / "mine/none.tsv") + " or " +
                             (folder / "all/none.tsv") + "); nothing is downloaded"));
  REQUIRE(mkfifo((folder / "mine/pipe.tsv").c_str(), 0600) == 0);
  for (const auto* file : {"pipe.tsv", "/dev/zero"})
    CHECK_THROWS_WITH(find_task_data(file, task),
                      Contains(" is a pipe or a device, and data of a task is a file or a folder"));
  unsetenv("CLOZE_TASKS");
  CHECK(tasks_folder() == "tasks");
}

TEST_CASE("every task of the repository can be read", "[tasks]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SOURCE_DIR "/configs/tasks")) {
    INFO(entry.path());
    const auto config = read_task_config(entry.path().string());
    CHECK(config.task == entry.path().stem().string());
    CHECK_FALSE(config.metric.empty());
    ++count;
  }
  CHECK(count >= 30);
}

TEST_CASE("every task in the documentation can be read", "[tasks]") {
  std::ifstream page(SOURCE_DIR "/docs/tasks.md");
  const TempDir folder;
  int count = 0;
  for (std::string line, block; std::getline(page, line);) {
    if (line != "```yaml") continue;
    for (block.clear(); std::getline(page, line) && line != "```";) block += line + "\n";
    INFO(block);
    CHECK_NOTHROW(read_task_config(folder.write("task.yaml", block)));
    ++count;
  }
  CHECK(count >= 6);
}

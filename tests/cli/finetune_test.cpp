// The verbs finetune and predict, and figures of fine-tuned runs.
#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// Texts about cats, and texts about numbers.
std::string animals(int items) {
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < items; ++i)
    lines += i % 2 == 0 ? "The cat sat and slept " + std::to_string(i) + "\tcat\n"
                        : "number " + std::to_string(i) + " on mat\tnumber\n";
  return lines;
}

/// A fine-tuned run, made once.
struct TaskWorld {
  TempDir dir;
  std::string task, run;
  TaskWorld() {
    dir.write("train.tsv", animals(101));
    dir.write("test.tsv", animals(12));
    task = dir.write("animals.yaml",
                     "task: animals\nkind: classification\nlike: turc-2019\n"
                     "data: {train: train.tsv, test: test.tsv, text: text, label: label}\n");
    run = dir / "run";
    const auto tuned = cloze(tune(run));
    INFO(tuned.text);
    REQUIRE(tuned.code == 0);
    log = tuned.text;
  }
  std::string tune(const std::string& out) const {
    return "finetune " + world().run + " " + task + " --run " + out +
           " --set optimizer.learning_rate=0.005 --set train.batch_size=8 --set train.budget.epochs=8";
  }
  std::string log{};
};
TaskWorld& task_world() {
  static TaskWorld made;
  return made;
}

}  // namespace

TEST_CASE("finetune makes a run of a pretrained one and a task file, and says what it is made of", "[cli][tasks]") {
  auto& w = task_world();
  INFO(w.log);
  CHECK_THAT(w.log, Catch::Contains("train: 90 items, cat ") && Catch::Contains("test: 12 items, cat 6, number 6") &&
                        Catch::Contains("valid is a tenth of train, by a hash of each item: ") &&
                        Catch::Contains("differs from the recipe: optimizer.learning_rate is 0.005, turc-2019 has") &&
                        Catch::Contains("accuracy 1.0000 on the test part of animals, by the best step, ") &&
                        Catch::Contains("animals test of step-"));
  const auto config = read_file(w.run + "/run.yaml");
  CHECK_THAT(config, Catch::Contains("name: animals") && Catch::Contains("like: turc-2019") &&
                         Catch::Contains("metric: accuracy") && Catch::Contains("labels: [cat, number]"));
  const auto summary = json::parse(read_file(w.run + "/summary.json"));
  CHECK(summary["task"]["learned"] == true);
  CHECK(summary["suites"]["animals"]["accuracy"]["value"] == 1);
  CHECK(cloze("verify run " + w.run).code == 0);
  CHECK(cloze("verify data " + w.run + "/task").code == 0);
  check_refused(w.tune(w.run), 2,
                w.run + ": exists; continue it with `cloze pretrain --run " + w.run +
                    " --resume`, or name another folder with --run");
  const auto more = cloze("pretrain --run " + w.run + " --resume --set train.budget.epochs=9");
  INFO(more.text);
  CHECK(more.code == 0);
}

TEST_CASE("a fine-tuned run that was moved finds its rows, and evaluate prints the figures of its test part",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto moved = w.dir / "moved";
  REQUIRE(cloze(w.tune(w.dir / "elsewhere") + " --set train.budget.epochs=1").code == 0);
  fs::rename(w.dir / "elsewhere", moved);
  const auto text = cloze("evaluate " + moved);
  INFO(text.text);
  CHECK(text.code == 0);
  CHECK_THAT(text.text, Catch::Contains("test part of animals") && Catch::Contains("majority"));
  const auto found = json_of(cloze("evaluate " + w.run + " --json"));
  CHECK(found["task"] == "animals");
  CHECK(found["metrics"][0]["metric"] == "accuracy");
  CHECK(found["metrics"][0]["value"] == 1);
  CHECK(found["metrics"][0]["count"] == 12);
  CHECK(found["metrics"][0]["floors"]["majority"] == 0.5);
  const auto both = cloze("evaluate " + w.run + " " + moved);
  INFO(both.text);
  CHECK_THAT(both.text, Catch::Contains(w.run + " less " + moved));
  const auto scored =
      json_of(cloze("evaluate --task " + w.task + " --predictions " + w.run + "/predictions.jsonl --json"));
  CHECK(scored["metrics"][0]["value"] == 1);
}

TEST_CASE("predict answers in the order asked, as JSON lines and as a table with one cell more", "[cli][tasks]") {
  auto& w = task_world();
  const auto file =
      w.dir.write("new.tsv", "id\ttext\n1\tnumber 3 on mat\n2\tThe cat sat\n3\tnumber 9 on mat and number\n");
  const auto lines = cloze("--quiet predict " + w.run + " " + file + " --json");
  INFO(lines.text);
  REQUIRE(lines.code == 0);
  std::istringstream in(lines.text);
  std::vector<json> found;
  for (std::string line; std::getline(in, line);) found.push_back(json::parse(line));
  REQUIRE(found.size() == 3);
  CHECK(found[0]["label"] == "number");
  CHECK(found[1]["label"] == "cat");
  CHECK(found[1]["item"] == "items:1");
  const auto& shares = found[1]["probabilities"];
  CHECK(shares["cat"].get<double>() + shares["number"].get<double>() == Approx(1));
  REQUIRE(cloze("predict " + w.run + " " + file + " --out " + (w.dir / "out.tsv")).code == 0);
  CHECK(
      read_file(w.dir / "out.tsv") ==
      "id\ttext\tprediction\n1\tnumber 3 on mat\tnumber\n2\tThe cat sat\tcat\n3\tnumber 9 on mat and number\tnumber\n");
  const auto piped = cloze("--quiet predict " + w.run + " - --json", "cat " + file + " | ");
  CHECK(piped.text == lines.text);
  const auto judged = cloze("predict " + w.run + " " + (w.dir / "test.tsv") + " --out " + (w.dir / "out.jsonl"));
  CHECK_THAT(judged.text, Catch::Contains("the items have labels:") && Catch::Contains("accuracy"));
}

TEST_CASE("what fine-tuning and its runs cannot do is refused in a sentence", "[cli][tasks]") {
  auto& w = task_world();
  const auto& base = world().run;
  check_refused("finetune " + base, 2, "no task file is given; name both: cloze finetune RUN TASK.yaml");
  check_refused("finetune " + w.task, 2, "no run is given; name both: cloze finetune RUN TASK.yaml");
  check_refused("finetune " + base + " " + w.task + " " + w.task, 2,
                "several runs or tasks are not fine-tuned by one command yet; name one of each");
  check_refused("finetune " + base + " " + w.task + " --seeds 5", 2,
                "--seeds 5: several seeds are not fine-tuned by one command yet; repeat it with --set train.seed=N and "
                "another --run");
  check_refused("finetune " + base + " " + w.task + " --like bert --run " + (w.dir / "a"), 2,
                "there is no recipe 'bert'");
  check_refused("finetune " + base + " " + w.task + " --set train.batchsize=3 --run " + (w.dir / "a"), 2,
                "did you mean 'train.batch_size'?");
  check_refused("finetune " + base + " " + w.task + " --set task.metric=f7 --run " + (w.dir / "a"), 2,
                "'metric' is f7, and the figures of its valid part are accuracy");
  CHECK_FALSE(fs::exists(w.dir / "a"));
  check_refused("predict " + base + " " + (w.dir / "test.tsv"), 2,
                base + ": is not fine-tuned on a task; do that first with `cloze finetune " + base + " TASK.yaml`");
  check_refused("predict " + w.run + " none.tsv", 1,
                "none.tsv: no such file; name a file with items, or - for standard");
  check_refused("predict " + w.run + " " + (w.dir / "test.tsv") + " --out x.txt", 2,
                "--out x.txt: predictions are written as .tsv, .jsonl, .conll or .json; name such a file");
  check_refused("predict " + w.run + " " + (w.dir / "test.tsv") + " --out " + (w.dir / "x.conll"), 2,
                "the task is classification, and a .conll has tags of words; name a .tsv or a .jsonl");
  check_refused("predict " + w.run + " " + (w.dir / "test.tsv") + " --out " + (w.dir / "x.json"), 2,
                "the task is classification, and a .json has answers, as SQuAD's files; name a .tsv or a .jsonl");
  check_refused("predict " + w.run + " " + (w.dir / "test.tsv") + " --out x.tsv --json", 2,
                "--json prints, and --out writes; leave one of them out");
  check_refused("evaluate " + w.run + " --text " + (w.dir / "test.tsv"), 2,
                w.run + ": is fine-tuned on a task, whose test part it is judged on; leave out --text");
  check_refused("evaluate " + w.run + " " + base, 2,
                base + ": is not fine-tuned, and " + w.run + " is; evaluate them by commands of their own");
  check_refused("inspect objective " + w.run + "/run.yaml", 2,
                "is of a run that is fine-tuned on animals, whose rows `cloze inspect task` shows");
  check_refused("score " + w.run + " " + world().dir.write("line.txt", "The cat sat\n"), 2, "cannot be scored");
  CHECK(cloze("generate " + w.run + " cat").code == 2);
}

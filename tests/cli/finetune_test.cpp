// The verbs finetune and predict, and scores of fine-tuned runs.
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

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
           " --set optimizer.learning_rate=0.002 --set train.batch_size=8 --set train.budget.epochs=8" +
           " --set model.hidden_dropout_prob=0";
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
                        Catch::Contains("differs from the recipe: optimizer.learning_rate is 0.002, turc-2019 has") &&
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

TEST_CASE("rows of a task are as long as a model reads that reads less than is usual", "[cli][tasks]") {
  auto& w = task_world();
  const auto base = w.dir / "short-rows", tuned = w.dir / "short-rows-tuned";
  REQUIRE(cloze("pretrain " + world().config() + " --set model.max_position_embeddings=48 --run " + base).code == 0);
  const auto answer = cloze("finetune " + base + " " + w.task + " --set train.budget.epochs=1 --run " + tuned);
  INFO(answer.text);
  CHECK(answer.code == 0);
}

TEST_CASE("a recipe that is a grid makes a run of every setting, and one with those of the best on the valid part",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto out = w.dir / "chosen";
  const auto command = "finetune " + world().run + " " + w.task + " --run " + out +
                       " --set train.batch_size=8 --set train.budget.epochs=1";
  const auto made = cloze(command);
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.text, Catch::Contains("turc-2019 is a grid of 4 settings: each is a run in " + out + "-grid, then "));
  std::string best;
  double most = -1;
  for (const auto* name : {"rate-3e-04", "rate-1e-04", "rate-5e-05", "rate-3e-05"}) {
    const auto summary = json::parse(read_file(out + "-grid/" + name + "/summary.json"));
    const auto value = summary["task"]["best"].get<double>();
    if (value > most) most = value, best = name;
  }
  CHECK_THAT(made.text, Catch::Contains("the best of the grid is " + best));
  const std::string weights = "/step-00000012/weights.safetensors";
  CHECK(read_file(out + weights) == read_file(out + "-grid/" + best + weights));
  const auto written = fs::last_write_time(out + "-grid/" + best + "/summary.json");
  fs::remove_all(out);
  CHECK(cloze(command).code == 0);
  CHECK(fs::last_write_time(out + "-grid/" + best + "/summary.json") == written);
  fs::remove_all(out);
  check_refused(
      command + " --set train.seed=2", 2,
      out + "-grid/rate-3e-04: is a run of another grid (train.seed: 1 -> 2); name another folder with --run");
}

TEST_CASE("--grid makes a run of every setting, tells what it costs, and one with the best on the valid part",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto out = w.dir / "searched";
  const auto base =
      "finetune " + world().run + " " + w.task + " --run " + out + " --set train.budget.epochs=1 --few 6 ";
  const auto command = base + "--grid optimizer.learning_rate=1e-4,2e-3 --grid train.batch_size=4,8 --tries 3";
  const auto made = cloze(command);
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.text,
             Catch::Contains("optimizer.learning_rate=1e-4,2e-3, train.batch_size=4,8 is a grid of 3 settings") &&
                 Catch::Contains("train: 12 of 90 items are trained on, drawn by train.seed 1") &&
                 Catch::Contains(" on the valid part; about ") && Catch::Contains("the best of the grid is "));
  std::istringstream lines(read_file(out + "-grid/grid.csv"));
  std::string line, best;
  std::getline(lines, line);
  CHECK(line == "setting,valid");
  int settings = 0;
  for (double most = -1; std::getline(lines, line); ++settings) {
    const auto comma = line.find(',');
    const auto value = std::stod(line.substr(comma + 1));
    if (value > most) most = value, best = line.substr(0, comma);
  }
  CHECK(settings == 3);
  CHECK_THAT(made.text, Catch::Contains("the best of the grid is " + best));
  CHECK(fs::exists(out + "-grid/" + best + "/summary.json"));
  const auto config = read_file(out + "/run.yaml");
  CHECK((config.find("batch_size: 4") != config.npos) == best.ends_with("batch_size-4"));
}

TEST_CASE("a threshold is not chosen for probes of layers", "[cli][tasks]") {
  auto& w = task_world();
  check_refused(w.tune(w.dir / "no-probes") +
                    " --set task.choose_threshold=true --set init.probe=true --set objectives.0.layer=all",
                2, "choose_threshold is true, and probes of layers (objectives.0.layer) predict at one half");
}

TEST_CASE("a grid with one value, of the task, given twice, or of several fine-tunings is refused", "[cli][tasks]") {
  auto& w = task_world();
  const auto base = "finetune " + world().run + " " + w.task + " --run " + (w.dir / "no-grid") + " ";
  check_refused(base + "--grid optimizer.learning_rate=1e-4", 2,
                "--grid optimizer.learning_rate=1e-4: names no two values; write KEY=VALUE,VALUE");
  check_refused(base + "--grid task.max_length=16,32", 2, "--grid task.max_length=16,32: the settings of a grid are");
  check_refused(base + "--grid train.batch_size=4,8 --grid train.batch_size=16,32", 2,
                "--grid train.batch_size=16,32: its key is given twice; name all values once");
  check_refused(base + "--grid train.batch_sise=4,8", 2, "train.batch_sise");
  check_refused(base + "--tries 3", 2, "--tries 3: draws settings of --grid, which is not given; leave it out");
  check_refused("finetune " + world().run + " " + w.task + " --seeds 2 --out " + (w.dir / "no-table") +
                    " --grid train.batch_size=4,8",
                2, "--grid searches for one fine-tuning, and several are made; search with `tasks.tune` of a study");
}

TEST_CASE("predict gives no figures of a part whose answers are held back", "[cli][tasks]") {
  auto& w = task_world();
  w.dir.write("values.jsonl", R"({"text": "The cat", "value": 0.5}
{"text": "number 3", "value": 4}
)");
  const auto task = w.dir.write("hidden.yaml",
                                "task: hidden\nkind: regression\n"
                                "data: {train: values.jsonl, valid: values.jsonl, test: values.jsonl, text: text, "
                                "label: value}\n");
  const auto run = w.dir / "hidden";
  REQUIRE(cloze("finetune " + world().run + " " + task + " --run " + run + " --set train.budget.steps=1").code == 0);
  const auto predicted = [&](const std::string& value) {
    const auto line = "{\"text\": \"a\", \"value\": " + value + "}\n";
    return cloze("predict " + run + " " + w.dir.write("held.jsonl", line + line)).text;
  };
  CHECK_THAT(predicted("-1"), Catch::Contains("no figures: 2 of 2 targets are -1, and those of the training part are "
                                              "0.5 to 4: what is right for the items is not given here") &&
                                  !Catch::Contains("the items have labels"));
  CHECK_THAT(predicted("3"), Catch::Contains("the items have labels"));
}

TEST_CASE("a figure that is no share is better than its floor by more than its interval, or nothing was learned",
          "[cli][tasks]") {
  auto& w = task_world();
  std::string lines;
  for (int i = 0; i < 24; ++i)
    lines += R"({"text": "The cat sat )" + std::to_string(i) + R"(", "value": )" + std::to_string(i * i % 7) +
             R"(, "label": ")" + (i * i % 7 > 3 ? "rare" : "common") + "\"}\n";
  w.dir.write("chance.jsonl", lines);
  const auto learned = [&](const std::string& kind, const std::string& label, const std::string& metric) {
    const auto task = w.dir.write(metric + ".yaml",
                                  "task: chance\nkind: " + kind + "\nmetric: " + metric +
                                      "\ndata: {train: chance.jsonl, valid: chance.jsonl, test: chance.jsonl, text: "
                                      "text, label: " +
                                      label + "}\n");
    const auto tuned = cloze("finetune " + world().run + " " + task + " --run " + (w.dir / metric) +
                             " --set optimizer.learning_rate=0 --set train.budget.steps=1");
    INFO(tuned.text);
    REQUIRE(tuned.code == 0);
    const auto said = json::parse(read_file(w.dir / metric + "/summary.json"))["task"];
    CHECK(said["learned"].get<bool>() == (tuned.text.find("did not learn: its " + metric) == std::string::npos));
    CHECK(json::parse(read_file(w.dir / metric + "/step-00000001/state.json"))["learned"] == said["learned"]);
    return said["learned"].get<bool>();
  };
  CHECK_FALSE(learned("regression", "value", "pearson"));
  CHECK_FALSE(learned("regression", "value", "spearman"));
  CHECK_FALSE(learned("classification", "label", "f1_macro"));
  CHECK_FALSE(learned("classification", "label", "mcc"));
  CHECK_FALSE(learned("classification", "label", "f1"));
  const auto floor = json::parse(read_file(w.dir / "f1/summary.json"))["task"]["floor"];
  CHECK(floor["name"] == "always rare");
  CHECK(floor["value"].get<double>() == Approx(2 * 7. / (24 + 7)));
}

TEST_CASE("keys of the task file, and their overrides, are in the run", "[cli][tasks]") {
  auto& w = task_world();
  const auto run = w.dir / "weighted";
  REQUIRE(cloze(w.tune(run) + " --like huggingface --set train.budget.epochs=1 --set task.class_weights=[balanced] "
                              "--set task.max_length=5")
              .code == 0);
  const auto config = read_file(run + "/run.yaml");
  CHECK_THAT(config, Catch::Contains("like: huggingface") && Catch::Contains("max_seq_length: 5\n"));
  CHECK_THAT(config, Catch::Contains("class_weights: [1, 1]"));
  w.dir.write("numbers.jsonl", R"({"id": "a\nb\t9", "text": "The cat", "value": 0.5}
{"id": "c", "text": "number 3", "value": 4}
{"id": "d", "text": "The cat slept", "value": 1}
{"id": "e", "text": "number 5 on mat", "value": 5}
)");
  const auto rated = w.dir.write("rated.yaml",
                                 "task: rated\nkind: regression\nscale: [0, 5]\nmetric: mse\n"
                                 "data: {train: numbers.jsonl, valid: numbers.jsonl, test: numbers.jsonl, text: text, "
                                 "label: value, id: id}\n");
  const auto made =
      cloze("finetune " + world().run + " " + rated + " --run " + (w.dir / "rated") + " --set train.budget.epochs=1");
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(read_file(w.dir / "rated/run.yaml"), Catch::Contains("scale: [0, 5]") && Catch::Contains("metric: mse"));
  CHECK_THAT(made.text,
             Catch::Contains("rated-valid mse ") && Catch::Contains("(mean ") && !Catch::Contains("accuracy"));
  const auto table = w.dir / "rated.tsv";
  REQUIRE(cloze("predict " + (w.dir / "rated") + " " + (w.dir / "numbers.jsonl") + " --out " + table).code == 0);
  const auto lines = read_file(table);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 5);  // that of names, and one for each item
  CHECK_THAT(lines, Catch::Contains("\na b 9\t"));

  // Whole rows with the same labels, which are those of another run, and then own ones with a changed item.
  const TempDir elsewhere;
  fs::rename(run + "/task", elsewhere / "rows");
  fs::copy(w.run + "/task", run + "/task", fs::copy_options::recursive);
  for (const auto& command : {"evaluate " + run, "verify run " + run, "predict " + run + " " + (w.dir / "test.tsv")})
    check_refused(command, 1,
                  run + "/task: has other rows than those that " + run +
                      " was fine-tuned on; restore it, or fine-tune "
                      "again in another folder");
  fs::remove_all(run + "/task");
  fs::rename(elsewhere / "rows", run + "/task");
  const auto whole = cloze("verify run " + run);
  INFO(whole.text);
  CHECK(whole.code == 0);
  CHECK_THAT(whole.text, Catch::Contains("/task: rows and items are those that the run was fine-tuned on") &&
                             Catch::Contains("figures and predictions of the task are those that the run wrote"));
  auto edited = read_file(run + "/run.yaml");
  const auto yaml = edited;
  const std::string metric = "  metric: accuracy\n";
  REQUIRE(edited.find(metric) != std::string::npos);
  edited.replace(edited.find(metric), metric.size(), "  metric: mcc\n");
  std::ofstream(run + "/run.yaml") << edited;
  check_refused("verify run " + run, 1, "was trained (task.metric: accuracy -> mcc); restore it");
  std::ofstream(run + "/run.yaml") << yaml;
  std::ofstream(run + "/predictions.jsonl", std::ios::app) << "\n";
  check_refused("verify run " + run, 1, "predictions.jsonl: is not what the run predicted; resume the run with");
  std::ofstream(run + "/task/test.jsonl", std::ios::app) << "\n";
  check_refused("verify run " + run, 1, "test.jsonl: its content does not match its checksum");
}

TEST_CASE("a task is inspected as an imported network reads it that has no head", "[cli][tasks]") {
  auto& w = task_world();
  const auto folder = w.dir / "bare-hf", imported = w.dir / "bare";
  REQUIRE(cloze("export " + world().run + " --to huggingface --out " + folder).code == 0);
  auto config = json::parse(read_file(folder + "/config.json"));
  config["architectures"] = {"BertModel"};
  std::ofstream(folder + "/config.json") << config;
  fs::remove(folder + "/cloze_export.json");
  REQUIRE(cloze("import " + folder + " --out " + imported).code == 0);
  const auto bare = cloze("inspect task " + imported + " " + w.task + " --json");
  INFO(bare.text);
  CHECK(bare.code == 0);
  CHECK_THAT(bare.text, Catch::Contains("\"input_ids\""));
}

TEST_CASE("predict says what it met in the items that it reads", "[cli][tasks]") {
  auto& w = task_world();
  const auto items = w.dir.write("strange.tsv", "text\tlabel\nThe cat sat\tcat\nThe dog sat\tdog\n \tcat\n");
  for (const auto& command : {"predict " + w.run + " " + items, "predict " + w.run + " - < " + items}) {
    const auto found = cloze(command + " --json");
    INFO(found.text);
    CHECK(found.code == 0);
    CHECK_THAT(found.text, Catch::Contains("items: 1 item with an empty text or word, first ") &&
                               Catch::Contains("items: 1 label that the training part lacks, whose predictions are "
                                               "wrong whatever they are: 'dog' (1)"));
    CHECK_THAT(found.text,
               Catch::Contains(command.find(" - ") != std::string::npos ? "first standard input:4" : "strange.tsv:4"));
  }
}

TEST_CASE("predict says how sure it is: at the temperature, by passes with dropout, over runs, and by sets of labels",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto items = w.dir / "test.tsv", dropping = w.dir / "with-dropout", still = w.dir / "without-dropout";
  const auto tune = "finetune " + world().run + " " + w.task + " --like google-bert --set train.budget.epochs=1";
  const std::string none =
      " --set model.hidden_dropout_prob=0 --set model.attention_probs_dropout_prob=0 "
      "--set objectives.0.classifier_dropout=0";
  REQUIRE(cloze(tune + " --run " + dropping).code == 0);
  REQUIRE(cloze(tune + none + " --run " + still).code == 0);
  const auto predicted = [&](const std::string& run, const std::string& options) {
    const auto file = w.dir / "sure.jsonl";
    const auto answer = cloze("predict " + run + " " + items + " --out " + file + " " + options);
    INFO(answer.text);
    REQUIRE(answer.code == 0);
    std::ifstream lines(file);
    std::string first;
    std::getline(lines, first);
    return std::pair(json::parse(first), answer.text);
  };
  const auto cat = [](const json& line) { return line["probabilities"]["cat"].get<double>(); };
  const auto plain = predicted(dropping, "").first;
  CHECK_FALSE(plain.contains("entropy"));
  const auto state = json::parse(read_file(w.run + "/summary.json"));
  const double temperature = state["task"]["calibrated"]["temperature"];
  const double p = cat(predicted(w.run, "").first), odds = std::pow(p / (1 - p), 1 / temperature);
  CHECK(cat(predicted(w.run, "--calibrated").first) == Approx(odds / (1 + odds)).epsilon(1e-6));
  const auto some = predicted(dropping, "--samples 4").first;
  CHECK(some["mutual_information"].get<double>() > 0);
  CHECK(some == predicted(dropping, "--samples 4 --seed 1").first);
  CHECK(some != predicted(dropping, "--samples 4 --seed 2").first);
  CHECK_THAT(predicted(still, "--samples 2").second,
             Catch::Contains("all passes are alike: the network was trained without dropout"));
  const auto both = predicted(w.run, "--ensemble " + dropping).first;
  CHECK(cat(both) == Approx((p + cat(plain)) / 2).epsilon(1e-9));
  CHECK_THAT(predicted(w.run, "--coverage 0.8 --calibrated --ensemble " + dropping).second,
             Catch::Contains("the sets hold what is right for ") && Catch::Contains(" of 12 items (asked for: 80 %)"));
  CHECK(fs::exists(dropping + "/reliability.svg"));
  const auto predict = "predict " + w.run + " " + items;
  check_refused(predict + " --coverage 0.99", 2, "need at least 99 items of the valid part, which has ");
  check_refused(predict + " --ensemble " + world().run, 2, "is not fine-tuned on a task");
}

TEST_CASE("predict refuses what the predictions of a run do not have", "[cli][tasks]") {
  auto& w = task_world();
  const auto tuned = [&](const std::string& name, const std::string& task, const std::string& options) {
    const auto run = w.dir / name;
    const auto made = cloze("finetune " + world().run + " " + task + " --like google-bert --run " + run +
                            " --set train.budget.epochs=1 " + options);
    INFO(made.text);
    REQUIRE(made.code == 0);
    return run;
  };
  const auto refused = [&](const std::string& run, const std::string& items, const std::string& options,
                           const std::string& sentence) {
    check_refused("predict " + run + " " + (w.dir / items) + " " + options, 2, sentence);
  };
  w.dir.write("marks.jsonl", R"({"text": "The cat", "value": 0.5})"
                             "\n"
                             R"({"text": "on mat", "value": 4})"
                             "\n");
  const auto parts = [](const std::string& file) { return "{train: " + file + ", valid: " + file + ", test: " + file; };
  const auto marks =
      tuned("marks",
            w.dir.write("marks.yaml", "task: marks\nkind: regression\nscale: [0, 5]\ndata: " + parts("marks.jsonl") +
                                          ", text: text, label: value}\n"),
            "");
  refused(marks, "marks.jsonl", "--calibrated",
          "--calibrated: a temperature is of the probabilities of one label, and the task is of regression");
  refused(marks, "marks.jsonl", "--coverage 0.5",
          "--coverage: sets are of labels, of which an item has one, and the task is of regression");
  refused(w.run, "test.tsv", "--ensemble " + marks, "its task is of regression, and that of the run of classification");
  w.dir.write("tags.jsonl", R"({"words": ["The", "cat"], "tags": ["O", "B-X"]})"
                            "\n"
                            R"({"words": ["on", "mat"], "tags": ["O", "B-X"]})"
                            "\n");
  const auto tags = tuned("tags",
                          w.dir.write("tags.yaml", "task: tags\nkind: tagging\ndata: " + parts("tags.jsonl") +
                                                       ", text: words, label: tags}\n"),
                          "");
  refused(tags, "tags.jsonl", "--samples 2", "--samples: a task of tagging has no mean of several predictions");
  refused(tags, "tags.jsonl", "--ensemble " + tags, "--ensemble: a task of tagging has no mean of several predictions");
  w.dir.write("moods.tsv", "text\tlabel\nThe cat sat\tgood\nnumber on mat\tbad\nThe cat slept\tgood\n");
  const auto moods = tuned("moods",
                           w.dir.write("moods.yaml", "task: moods\nkind: classification\ndata: " + parts("moods.tsv") +
                                                         ", text: text, label: label}\n"),
                           "");
  refused(w.run, "test.tsv", "--ensemble " + moods,
          "its labels are bad, good, and those of the run are cat, number; name runs of one task");
  const auto probe = tuned("one-probe", w.task, "--set init.probe=true --set objectives.0.layer=1");
  refused(probe, "test.tsv", "--samples 2", "a probe has no dropout; leave out --samples");
  REQUIRE(cloze("export " + w.run + " --to huggingface --out " + (w.dir / "sure-hf")).code == 0);
  REQUIRE(cloze("import " + (w.dir / "sure-hf") + " --out " + (w.dir / "sure")).code == 0);
  refused(w.dir / "sure", "test.tsv", "--task " + w.task + " --calibrated",
          "has no temperature, which a fine-tuning fits");
  refused(w.dir / "sure", "test.tsv", "--task " + w.task + " --coverage 0.5",
          "--coverage: looks at the valid part of a task, and ");
}

TEST_CASE("finetune trains thin matrices beside a base, says how few, and names no key that came with the choice",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto made = cloze(w.tune(w.dir / "lora") + " --set adaptation.kind=lora --set train.budget.epochs=1");
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.text, Catch::Contains("differs from the recipe: adaptation.kind is lora, turc-2019 has full") &&
                            !Catch::Contains("adaptation.rank is") && Catch::Contains(" of them are trained ("));
}

TEST_CASE("an imported classifier predicts with the task that its head came with", "[cli][tasks]") {
  auto& w = task_world();
  const auto folder = w.dir / "animals-hf", imported = w.dir / "imported", items = w.dir / "test.tsv";
  REQUIRE(cloze("export " + w.run + " --to huggingface --out " + folder).code == 0);
  REQUIRE(cloze("import " + folder + " --out " + imported).code == 0);
  const auto own = cloze("predict " + w.run + " " + items + " --json");
  const auto found = cloze("predict " + imported + " " + items + " --task " + w.task + " --json");
  INFO(found.text);
  REQUIRE(found.code == 0);
  CHECK_THAT(found.text, Catch::Contains("accuracy"));
  const auto labels_in = [](const std::string& text) {
    std::vector<std::string> labels;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("{")) labels.push_back(json::parse(line).at("label"));
    return labels;
  };
  CHECK(labels_in(found.text).size() == 12);
  CHECK(labels_in(found.text) == labels_in(own.text));
  check_refused("predict " + imported + " " + items, 2, "or name the task that its head came with by --task");
  check_refused("predict " + w.run + " " + items + " --task " + w.task, 2,
                w.run + ": is fine-tuned on animals, which it predicts; leave out --task");
  check_refused("predict " + world().run + " " + items + " --task " + w.task, 2,
                "animals.yaml: the network has no head of a task; fine-tune it first");
  check_refused("predict " + imported + " " + items + " --task none.yaml", 2,
                "--task none.yaml: no such file, and no ready task");
  w.dir.write("values.yaml", "task: values\nkind: regression\ndata: {test: test.tsv, text: text, label: label}\n");
  check_refused("predict " + imported + " " + items + " --task " + (w.dir / "values.yaml"), 2,
                "is of the kind regression, and the head of the network of the kind classification");
  w.dir.write("others.yaml",
              "task: others\nkind: classification\nlabels: {a: dog, b: number}\n"
              "data: {test: test.tsv, text: text, label: label}\n");
  check_refused("predict " + imported + " " + items + " --task " + (w.dir / "others.yaml"), 1, "the model has ");
}

TEST_CASE("the notes of a task stand beside the figures of anybody's predictions", "[cli][tasks]") {
  auto& w = task_world();
  const auto task = w.dir.write("everybody.yaml",
                                "task: animals\nkind: classification\n"
                                "data: {train: train.tsv, valid: test, test: test.tsv, text: text, label: label}\n");
  const auto command = "evaluate --task " + task + " --predictions " + w.run + "/predictions.jsonl";
  CHECK_THAT(cloze(command).text, Catch::Contains("valid is test: every figure is chosen on the items that it is of"));
  const auto notes = json_of(cloze(command + " --json"))["notes"];
  CHECK(std::any_of(notes.begin(), notes.end(),
                    [](const json& note) { return note.get<std::string>().starts_with("valid is test"); }));
}

TEST_CASE("a plan of a study says the steps and tokens that a fine-tuning has, whatever its network is trained on",
          "[cli][tasks]") {
  const auto& w = task_world();
  const auto study = w.dir.write(
      "study.yaml",
      "study: s\nbase: " SOURCE_DIR
      "/configs/bert/tiny.yaml\nbudget: {steps: 2}\npoints: 1\nseeds: 2\n"
      "set: {data.tokens: " +
          world().tokens +
          ", model.hidden_size: 32, model.intermediate_size: 32, data.max_seq_length: 32, train.batch_size: 4}\n"
          "arms: {first: {objectives.0.mlm_probability: 0.15}, other: {objectives.0.mlm_probability: 0.5}}\n"
          "tasks: {files: [animals.yaml], set: {train.batch_size: 8, optimizer.learning_rate: 0.005, "
          "train.budget.epochs: 8}}\n");
  const auto plan = cloze("study plan " + study + " --out " + (w.dir / "study"));
  INFO(plan.text);
  REQUIRE(plan.code == 0);
  std::istringstream lines(plan.text);
  std::vector<std::string> costs;
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find("turc-2019"); at != std::string::npos) costs.push_back(line.substr(at));
  REQUIRE(costs.size() == 2);
  CHECK(costs[0] == costs[1]);
  REQUIRE(cloze(w.tune(w.dir / "planned")).code == 0);
  const auto trained = json::parse(read_file(w.dir / "planned/summary.json"));
  std::istringstream of_plan(costs[0]);
  std::string recipe, items, steps, tokens;
  of_plan >> recipe >> items >> steps >> tokens;
  CHECK(steps == std::to_string(trained["steps"].get<int>()));
  CHECK(1000 * std::stod(tokens) == Approx(trained["tokens"].get<double>()).epsilon(0.005));  // three digits of them
}

TEST_CASE("finetune of several runs and seeds ends in a table, and the same command does nothing twice",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto other = w.dir / "other";
  fs::copy(world().run, other, fs::copy_options::recursive);
  const auto command = "finetune " + world().run + " " + other + " " + w.task + " --seeds 2 --jobs 1 --out " +
                       (w.dir / "table") +
                       " --set optimizer.learning_rate=0.005 --set train.batch_size=8 --set train.budget.epochs=2";
  const auto made = cloze(command);
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.text, Catch::Contains("animals accuracy %") && Catch::Contains("average rank") &&
                            Catch::Contains("Differences to ") && Catch::Contains("4 runs done, 0 failed"));
  CHECK_THAT(read_file(w.dir / "table/table.tex"),
             Catch::Contains("\\item test parts: animals of ") &&
                 Catch::Contains("\\item differences are paired by the seeds of fine-tuning; their 95 \\% intervals"));
  const auto table = json::parse(read_file(w.dir / "table/table.json"));
  const auto& rows = table["tables"][0]["rows"];
  REQUIRE(rows.size() == 4);  // of one run and its copy, whose fine-tunings have equal bits, and of the floors
  CHECK(rows[0]["animals accuracy %"] == rows[1]["animals accuracy %"]);
  CHECK(rows[0]["average rank"] == "1.50");
  CHECK(rows[2]["arm"] == "floor: majority");
  CHECK(rows[2]["animals accuracy %"] == "50.00");
  CHECK(rows[3]["arm"] == "floor: words");
  CHECK(table["tables"][1]["rows"][0]["difference"] == "+0.00");
  for (const auto* name : {"table.md", "table.csv", "table.tex"})
    CHECK(fs::exists(w.dir / ("table/" + std::string(name))));
  const auto record = w.dir / "table/runs/other/animals/seed-2/summary.json";
  const auto before = fs::last_write_time(record);
  CHECK(json_of(cloze(command + " --json")) == table);
  CHECK(fs::last_write_time(record) == before);

  // Predictions that were changed are made again, and a run that was changed on its way is an arm of its own.
  const auto one = w.dir / "table/runs/other/animals/seed-2", predicted = one + "/predictions.jsonl";
  const auto predictions = read_file(predicted);
  std::ofstream(predicted) << predictions.substr(predictions.find('\n') + 1);
  CHECK(json_of(cloze(command + " --json")) == table);
  CHECK(read_file(predicted) == predictions);
  const auto longer = cloze("pretrain --run " + one + " --resume --allow-config-change --set " +
                            "optimizer.learning_rate=0.004 --set train.budget.epochs=3");
  INFO(longer.text);
  REQUIRE(longer.code == 0);
  const auto apart = json_of(cloze(command + " --json"));
  const auto& arms = apart["tables"][0]["rows"];
  REQUIRE(arms.size() == 5);
  CHECK(arms[2]["arm"] == arms[1]["arm"].get<std::string>() + ", changed at step 24");
  CHECK_THAT(apart["notes"].dump(), Catch::Contains("optimizer.learning_rate 0.004 (was 0.005)") &&
                                        Catch::Contains("it is held apart from fine-tunings that never changed"));
}

TEST_CASE("what a network made is not believed of another one that was trained at its path", "[cli][tasks]") {
  auto& w = task_world();
  const auto base = w.dir / "again", step = base + "/step-00000006";
  const auto train = [&](const std::string& seed) {
    fs::remove_all(base);
    REQUIRE(cloze("pretrain " + world().config() + " --set train.seed=" + seed + " --run " + base).code == 0);
  };
  train("1");
  const std::string few = " --set train.batch_size=8 --set train.budget.steps=1";
  const auto table = [&](const std::string& of, const std::string& out) {
    return "finetune " + of + " " + w.task + few + " --set optimizer.learning_rate=1e-3 --out " + (w.dir / out);
  };
  const auto grid = "finetune " + base + " " + w.task + few + " --run " + (w.dir / "of-grid");
  for (const auto& command : {table(base, "of-run"), table(step, "of-step"), grid}) REQUIRE(cloze(command).code == 0);
  fs::remove_all(w.dir / "of-grid");
  train("1");  // equal weights
  CHECK(cloze(table(step, "of-step")).code == 0);
  train("2");
  for (const auto& command : {table(base, "of-run"), table(step, "of-step")})
    check_refused(command, 2, "or from other weights: ");
  check_refused(grid, 2,
                "of-grid-grid/rate-3e-04: is not known to begin with the weights that " + base +
                    " has now; name another folder with --run, or remove that one");
}

TEST_CASE("a copied run has rows of its own, whatever becomes of the run that it was copied from", "[cli][tasks]") {
  auto& w = task_world();
  const auto original = w.dir / "original", copy = w.dir / "copy";
  REQUIRE(cloze(w.tune(original) + " --set train.budget.epochs=1").code == 0);
  for (const auto& to : {copy, w.dir / "altered"}) fs::copy(original, to, fs::copy_options::recursive);
  const auto items = read_file(w.dir / "altered/task/test.jsonl");
  std::ofstream(w.dir / "altered/task/test.jsonl") << items.substr(items.find('\n') + 1);
  check_refused("verify run " + (w.dir / "altered"), 1, "altered/task/test.jsonl");
  std::ofstream(original + "/task/train-00000.tokens", std::ios::app) << "damaged";
  check_refused("verify run " + original, 1, "original/task/train-00000.tokens");
  for (const std::string verb : {"verify run ", "evaluate "}) {
    const auto answer = cloze(verb + copy);
    INFO(answer.text);
    CHECK(answer.code == 0);
  }
  const auto longer = cloze("pretrain --run " + copy + " --resume --set train.budget.epochs=2");
  INFO(longer.text);
  CHECK(longer.code == 0);
  CHECK_THAT(read_file(copy + "/run.yaml"), Catch::Contains("tokens: " + copy + "/task"));
}

TEST_CASE("a fine-tuning has the dropout of the head that its run brings, unless the recipe or the user says another",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto tune = [&](const std::string& from, const std::string& name, const std::string& more) {
    const auto made =
        cloze("finetune " + from + " " + w.task + " --set train.budget.steps=1 --run " + (w.dir / name) + " " + more);
    INFO(made.text);
    REQUIRE(made.code == 0);
    return made.text + read_file(w.dir / (name + "/run.yaml"));
  };
  const std::string dropout = "objectives.0.classifier_dropout";
  tune(w.run, "half", "--like huggingface --set " + dropout + "=0.5");
  const auto folder = w.dir / "half-hf", brought = w.dir / "half-imported";
  REQUIRE(cloze("export " + (w.dir / "half") + " --to huggingface --out " + folder).code == 0);
  REQUIRE(cloze("import " + folder + " --out " + brought).code == 0);
  CHECK_THAT(tune(brought, "brought", "--like huggingface"),
             Catch::Contains("classifier_dropout: 0.5") &&
                 Catch::Contains("differs from the recipe: " + dropout + " is 0.5, huggingface has -1"));
  CHECK_THAT(tune(brought, "said", "--like huggingface --set " + dropout + "=0.25"),
             Catch::Contains("classifier_dropout: 0.25"));
  CHECK_THAT(
      tune(brought, "by-recipe", "--like fairseq-roberta"),
      Catch::Contains("classifier_dropout: 0\n") &&
          Catch::Contains("has a dropout of 0.5, and fairseq-roberta has its own; --set " + dropout + "=0.5 keeps it"));
}

TEST_CASE("a base model has the dropout of its config.json in a new head, and so has a run that goes on from it",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto folder = w.dir / "base-hf", base = w.dir / "base-imported", on = w.dir / "base-on";
  REQUIRE(cloze("export " + world().run + " --to huggingface --out " + folder).code == 0);
  auto config = json::parse(read_file(folder + "/config.json"));
  config["classifier_dropout"] = 0.3;
  w.dir.write("base-hf/config.json", config.dump());
  fs::remove(folder + "/cloze_export.json");
  REQUIRE(cloze("import " + folder + " --out " + base).code == 0);
  REQUIRE(cloze("pretrain " + world().config() + " --set init.from=" + base + " --run " + on).code == 0);
  const auto tune = [&](const std::string& from, const std::string& more) {
    fs::remove_all(w.dir / "of-base");
    const auto made = cloze("finetune " + from + " " + w.task + " --set train.budget.steps=1 --run " +
                            (w.dir / "of-base") + " " + more);
    INFO(made.text);
    REQUIRE(made.code == 0);
    return made.text + read_file(w.dir / "of-base/run.yaml");
  };
  for (const auto& from : {base, on})
    CHECK_THAT(tune(from, "--like google-bert"), Catch::Contains("classifier_dropout: 0.3\n"));
  const std::string probe = "--like google-bert --set init.probe=true --set objectives.0.layer=all";
  CHECK_THAT(tune(base, probe), Catch::Contains("layer: all\n") && !Catch::Contains("classifier_dropout: 0.3"));
  CHECK_THAT(tune(base, "--like fairseq-roberta"), Catch::Contains("has a dropout of 0.3, and fairseq-roberta has"));
}

TEST_CASE("a table with a fine-tuning that failed ends in the sentence of an error, after the table", "[cli][tasks]") {
  auto& w = task_world();
  const auto made = cloze("finetune " + world().run + " " + w.task + " --seeds 2 --out " + (w.dir / "failing") +
                          " --set train.budget.steps=12 --set optimizer.learning_rate=30 --set schedule.warmup=0"
                          " --set train.on_divergence=stop");
  INFO(made.text);
  CHECK(made.code == 1);
  CHECK_THAT(made.text, Catch::Contains("table.md, .csv, .tex, .json: 0 runs done, 2 failed") &&
                            Catch::Contains("cloze: error: 2 of 2 runs have failed, the first of them ") &&
                            Catch::Contains("training has diverged"));
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
  CHECK_THAT(both.text, Catch::Contains(w.run + " less " + moved) && Catch::Contains("McNemar's exact p"));
  const std::string note = "valid is a tenth of train";
  REQUIRE_THAT(both.text, Catch::Contains(note));
  CHECK(both.text.find(note) == both.text.rfind(note));
  const auto scored =
      json_of(cloze("evaluate --task " + w.task + " --predictions " + w.run + "/predictions.jsonl --json"));
  CHECK(scored["metrics"][0]["value"] == 1);
}

TEST_CASE("two fine-tuned runs without a common test part are refused, and tasks of a benchmark have its average",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto tuned_on = [&](const std::string& name, const std::string& task) {
    const auto run = w.dir / name, file = w.dir.write(name + ".yaml", "base: animals.yaml\n" + task);
    const auto tuned = cloze("finetune " + world().run + " " + file + " --run " + run +
                             " --set train.budget.epochs=1 --set train.batch_size=8");
    INFO(tuned.text);
    REQUIRE(tuned.code == 0);
    return run;
  };
  w.dir.write("fewer.tsv", animals(10));
  w.dir.write("changed.tsv", animals(11) + "The cat slept\tnumber\n");
  const auto fewer = tuned_on("fewer", "data: {test: fewer.tsv}\n"),
             changed = tuned_on("changed", "data: {test: changed.tsv}\n"), first = tuned_on("first", "task: sst2\n"),
             second = tuned_on("second", "task: rte\n");
  check_refused("evaluate " + w.run + " " + fewer, 2,
                "their test parts of animals have 12 and 10 items; evaluate them by commands of their own");
  check_refused("evaluate " + w.run + " " + changed, 2,
                "their test parts of animals differ, first in item 'test:11'; evaluate them by commands of their own");
  check_refused("evaluate " + w.run + " " + first, 2,
                "they are fine-tuned on other tasks, animals and sst2; evaluate them by commands of their own");
  const auto average = cloze("evaluate " + first + " " + second);
  INFO(average.text);
  CHECK(average.code == 0);
  CHECK_THAT(average.text, Catch::Contains("glue average of " + world().run) && Catch::Contains("over 2 tasks") &&
                               Catch::Contains("without cola mcc"));
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
  CHECK_THAT(cloze("predict " + w.run + " -", "printf 'id\\tx\\n1\\ta\\n' | ").text,
             Catch::Contains("error: standard input:1: no column is named 'text'"));
  const auto device = cloze("predict " + w.run + " - < /dev/zero");
  CHECK(device.code == 1);
  CHECK_THAT(device.text, Catch::Contains("error: standard input: is a device, which has no text; name a file"));
  const auto cut = cloze("predict " + w.run + " - --out " + (w.dir / "cut.tsv"),
                         "trap '' 25; ulimit -f 1; (printf 'id\\ttext\\n'; yes 'number' | head -n 9000) | ");
  CHECK(cut.code == 1);
  CHECK_THAT(cut.text, Catch::Contains("error: standard input: cannot be copied to ") &&
                           Catch::Contains("); set TMPDIR to a folder with more room, or name a file"));
  const auto gaps = w.dir.write("gaps.tsv", "id\ttext\n\n1\tnumber 3 on mat\n\n2\tThe cat sat\n");
  REQUIRE(cloze("predict " + w.run + " " + gaps + " --out " + (w.dir / "gaps-out.tsv")).code == 0);
  CHECK(read_file(w.dir / "gaps-out.tsv") == "id\ttext\tprediction\n1\tnumber 3 on mat\tnumber\n2\tThe cat sat\tcat\n");
  const auto judged = cloze("predict " + w.run + " " + (w.dir / "test.tsv") + " --out " + (w.dir / "out.jsonl"));
  CHECK_THAT(judged.text, Catch::Contains("the items have labels:") && Catch::Contains("accuracy"));
}

TEST_CASE("the column of predictions has a name of its own", "[cli][tasks]") {
  auto& w = task_world();
  const auto file = w.dir.write("twice.tsv", "text\tprediction\tprediction_2\nnumber 3 on mat\tx\ty\n");
  REQUIRE(cloze("predict " + w.run + " " + file + " --out " + (w.dir / "thrice.tsv")).code == 0);
  CHECK(read_file(w.dir / "thrice.tsv") ==
        "text\tprediction\tprediction_2\tprediction_3\nnumber 3 on mat\tx\ty\tnumber\n");
}

TEST_CASE("records of a CSV are repeated with a cell more, as they stand", "[cli][tasks]") {
  auto& w = task_world();
  const auto predicted = [&](const std::string& name, const std::string& text) {
    REQUIRE(cloze("predict " + w.run + " " + w.dir.write(name, text) + " --out " + (w.dir / "out.csv")).code == 0);
    return read_file(w.dir / "out.csv");
  };
  CHECK(predicted("new.csv", "\uFEFFid,text,prediction\n7,\"number \"\"3\"\",\non mat\",x\n\n8,The cat sat,y\n") ==
        "id,text,prediction,prediction_2\n7,\"number \"\"3\"\",\non mat\",x,number\n8,The cat sat,y,cat\n");
  CHECK(predicted("semicolons.csv", "id;text\n1;The cat sat\n") == "id;text;prediction\n1;The cat sat;cat\n");
  CHECK(predicted("new.jsonl", "{\"text\": \"The cat sat\"}\n") == "item,prediction\nitems:0,cat\n");
}

TEST_CASE("predict says what is wrong with items, and leaves out those that are bad where that is asked for",
          "[cli][tasks]") {
  auto& w = task_world();
  check_refused("predict " + w.run + " " + w.dir.write("none.tsv", "text\n"), 1, "none.tsv: has no item; give it some");
  const auto bad = w.dir.write("bad.tsv", "id\ttext\n1\n2\tnumber 3 on mat\n3\tThe cat sat\tx\n4\t\n");
  check_refused("predict " + w.run + " " + bad, 1, "or leave such lines out with --skip-bad");
  const auto skipped = cloze("predict " + w.run + " " + bad + " --skip-bad --out " + (w.dir / "good.tsv"));
  INFO(skipped.text);
  REQUIRE(skipped.code == 0);
  CHECK_THAT(skipped.text,
             Catch::Contains("items: 2 lines left out, first ") && Catch::Contains("bad.tsv:2: has 1 cell"));
  CHECK_THAT(skipped.text, Catch::Contains("items: 1 item with an empty text or word, first "));
  const auto good = read_file(w.dir / "good.tsv");
  CHECK(good.starts_with("id\ttext\tprediction\n2\tnumber 3 on mat\tnumber\n4\t\t"));
}

TEST_CASE("an item may have none of several labels, unless the column is empty", "[cli][tasks]") {
  auto& w = task_world();
  const auto task = w.dir.write("sets.yaml",
                                "task: sets\nkind: multilabel\n"
                                "data: {train: train.tsv, test: test.tsv, text: text, label: label}\n");
  const auto tuned = cloze("finetune " + world().run + " " + task + " --run " + (w.dir / "sets") +
                           " --like huggingface --set train.budget.steps=1");
  INFO(tuned.text);
  REQUIRE(tuned.code == 0);
  const auto predicted = [&](const std::string& items) {
    return cloze("predict " + (w.dir / "sets") + " " + w.dir.write("sets.tsv", "text\tlabel\n" + items)).text;
  };
  CHECK_THAT(predicted("The cat\tcat\nnothing\t\n"), Catch::Contains("the items have labels:"));
  CHECK_THAT(predicted("The cat\t\nnothing\t\n"), !Catch::Contains("the items have labels:"));
}

TEST_CASE("an item that is left out is not taken for the line of column names", "[cli][tasks]") {
  auto& w = task_world();
  const auto task = w.dir.write("marked.yaml", "base: animals.yaml\ntask: marked\ndata: {skip_labels: [\"-\"]}\n");
  const auto run = w.dir / "marked";
  const auto tuned = cloze("finetune " + w.run + " " + task + " --run " + run + " --like huggingface" +
                           " --set train.budget.steps=1 --set optimizer.learning_rate=0");
  INFO(tuned.text);
  REQUIRE(tuned.code == 0);
  const auto items = w.dir.write("marks.tsv", "text\tlabel\nnumber 1\t-\nnumber 3 on mat\tnumber\n");
  const auto found = cloze("predict " + run + " " + items + " --out " + (w.dir / "marks-out.tsv"));
  CHECK(read_file(w.dir / "marks-out.tsv") == "text\tlabel\tprediction\nnumber 3 on mat\tnumber\tnumber\n");
  CHECK_THAT(found.text, Catch::Contains("items: 1 item left out, with a label of `data.skip_labels`"));
}

TEST_CASE("anybody's predictions are judged without the lines that are left out", "[cli][tasks]") {
  auto& w = task_world();
  w.dir.write("bad-test.tsv", "text\tlabel\nThe cat\tcat\nbad\nnumber 1\tnumber\n");
  const auto task = w.dir.write("bad.yaml", "base: animals.yaml\ntask: bad\ndata: {test: bad-test.tsv}\n");
  const auto predictions = w.dir.write("labels.txt", "cat\nnumber\n");
  const auto judge = "evaluate --task " + task + " --predictions " + predictions;
  check_refused(judge, 1, "or leave such lines out with --skip-bad");
  check_refused(judge + " --skip-bad --no-answer " + predictions, 2,
                "--no-answer: the task is classification, and scores of no answer are of spans; leave it out");
  check_refused(judge + " --skip-bad --scheme IOB2", 2,
                "--scheme: the task is classification, and a scheme is of tags; leave it out");
  const auto judged = json_of(cloze(judge + " --skip-bad --json"));
  CHECK(judged["metrics"][0]["value"] == 1);
  CHECK(judged["metrics"][0]["count"] == 2);
  w.dir.write("labels.txt", "cat\ndog\n");
  CHECK_THAT(json_of(cloze(judge + " --skip-bad --json"))["notes"].dump(),
             Catch::Contains("1 prediction with a label that the task does not have, first "));
}

TEST_CASE("predictions do not take the place of the items", "[cli][tasks]") {
  auto& w = task_world();
  const auto items = w.dir.write("items.tsv", animals(2));
  check_refused("predict " + w.run + " " + items + " --out " + w.dir / "./items.tsv", 2,
                "items.tsv: is a file that is read, which would be lost; name another");
  CHECK(read_file(items) == animals(2));
}

TEST_CASE("a head keeps the order of its labels where a task has another one, and is drawn anew for other labels",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto labels_in = [](const std::string& run) {
    std::vector<std::string> found;
    std::istringstream in(read_file(run + "/predictions.jsonl"));
    for (std::string line; std::getline(in, line);) found.push_back(json::parse(line)["label"]);
    return found;
  };
  const auto still = [&](const std::string& task, const std::string& run) {
    return cloze("finetune " + w.run + " " + w.dir.write(task + ".yaml", "base: animals.yaml\n" + run) + " --run " +
                 (w.dir / task) + " --like huggingface --set train.budget.steps=1 --set optimizer.learning_rate=0");
  };
  const auto turned = still("turned", "labels: {number: number, cat: cat}\n");
  INFO(turned.text);
  REQUIRE(turned.code == 0);
  CHECK_THAT(read_file(w.dir / "turned/run.yaml"), Catch::Contains("labels: [cat, number]"));
  CHECK(labels_in(w.dir / "turned") == labels_in(w.run));
  const auto renamed = still("renamed", "labels: {cat: beast, number: number}\n");
  INFO(renamed.text);
  REQUIRE(renamed.code == 0);
  CHECK_THAT(renamed.text, Catch::Contains("has a head for cat, number, and the labels of animals are beast, number: "
                                           "its head is drawn anew") &&
                               Catch::Contains("drawn: classification."));
}

TEST_CASE("a fine-tuning that diverged ends, and its predictions are refused", "[cli][tasks]") {
  auto& w = task_world();
  const auto run = w.dir / "diverged";
  const auto made = cloze("finetune " + world().run + " " + w.task + " --run " + run +
                          " --like google-bert --set optimizer.learning_rate=1000 --set optimizer.weight_decay=10"
                          " --set schedule.shape=constant --set schedule.warmup=0 --set train.on_nonfinite=skip"
                          " --set train.batch_size=8 --set train.budget.epochs=1 --set evaluation.every=0");
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.text, Catch::Contains("accuracy undefined on the test part of animals, by the last step; did not "
                                        "learn"));
  const auto refusal = run +
                       ": its predictions are not finite, as those of a training that diverged; name an earlier step, "
                       "or fine-tune again in another folder with a lower optimizer.learning_rate";
  check_refused("evaluate " + run, 1, refusal);
  check_refused("predict " + run + " " + w.dir / "test.tsv --json", 1, refusal);
}

TEST_CASE("a fine-tuning whose losses leave every range is said to have diverged, and stops where it should",
          "[cli][tasks]") {
  auto& w = task_world();
  const auto events = w.dir / "events";
  const auto tune = [&](const std::string& name, const std::string& more) {
    return cloze("finetune " + world().run + " " + w.task + " --like google-bert --run " + (w.dir / name) +
                 " --hook 'cat >> " + events + "' --set optimizer.learning_rate=30 --set schedule.warmup=0 " +
                 "--set train.batch_size=8 --set train.budget.steps=6 " + more);
  };
  const std::string said = ", far above 0.6931, that of guessing evenly: training has diverged; start again";
  const auto warned = tune("warned", "");
  INFO(warned.text);
  CHECK(warned.code == 0);
  CHECK_THAT(warned.text, Catch::Contains(said));
  CHECK_THAT(read_file(events), Catch::Contains("\"event\":\"diverged\"") && Catch::Contains("\"stops\":false"));
  const auto stopped = tune("stopped", "--set train.on_divergence=stop");
  INFO(stopped.text);
  CHECK(stopped.code == 3);
  CHECK_THAT(stopped.text, Catch::Contains(said));
  CHECK_THAT(read_file(events), Catch::Contains("\"stops\":true"));
}

TEST_CASE("probes of all layers are a run like others: a curve, figures and predictions of the best layer",
          "[cli][tasks][probe]") {
  auto& w = task_world();
  const auto run = w.dir / "probes";
  const auto made = cloze(w.tune(run) + " --set init.probe=true --set objectives.0.layer=all");
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.text, Catch::Contains("differs from the recipe: objectives.0.layer is all, turc-2019 has") &&
                            Catch::Contains("layers on the valid part is "));
  CHECK_THAT(read_file(run + "/run.yaml"), Catch::Contains("layer: all"));
  const auto layer = json::parse(read_file(run + "/summary.json"))["task"]["layer"].get<int64_t>();
  const auto note =
      ": predictions are those of layer " + std::to_string(layer) + ", the best one on the valid part of ";
  CHECK_THAT(cloze("evaluate " + run).text, Catch::Contains(note));
  const auto predicted = cloze("predict " + run + " " + (w.dir / "test.tsv") + " --out " + (w.dir / "probed.tsv"));
  CHECK(predicted.code == 0);
  CHECK_THAT(predicted.text, Catch::Contains(note));
  CHECK(cloze("pretrain --run " + run + " --resume").code == 0);
}

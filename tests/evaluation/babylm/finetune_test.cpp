// Files of BabyLM's fine-tuning, in and out.
#include "evaluation/babylm/finetune.h"

#include <filesystem>

#include "core/error.h"
#include "evaluation/babylm/results.h"
#include "tasks/task.h"
#include "tests/support/babylm_tasks.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

TEST_CASE("the tasks of BabyLM are read from the published files by the published templates", "[babylm][tasks]") {
  const TempDir dir;
  write_babylm_tasks(dir, "it's here", 8);
  for (const auto& one : babylm_finetuned) {
    INFO(one.name);
    const auto file = dir.write(std::string(one.name) + ".yaml", babylm_task_file(one, dir / "it's here"));
    const auto task = open_task(file, {.overrides = {"data.valid=test"}});
    CHECK(task.config.task == one.name);
    CHECK(task.config.like == "babylm-2026");
    CHECK(task.labels.size() == one.labels);
    CHECK(task.config.metric.front() == one.metric);
    CHECK(task.is_chosen_on_test);
    REQUIRE(task.train.items.size() == 8);
    REQUIRE(task.test.items.size() == 10);
    CHECK((task.train.items[1].gold == label_answer(1)));
    const auto& item = task.train.items[1];
    const std::string name = one.name, first = "The cat number 1 slept.";
    CHECK(item.text == (name == "multirc" ? "Question: " + first + " Answer: slept."
                        : name == "wsc"   ? "Does \"it\" refer to \"" + first + "\" in this passage?"
                                          : first));
    CHECK(item.second == "The mat slept.");
  }
}

TEST_CASE("predictions and figures of a fine-tuned task have the bytes of the published program's", "[babylm]") {
  const TempDir dir;
  write_finetuning({dir / "main/finetune"}, "rte", {{"accuracy", 0.5}, {"f1", 2.0 / 3}, {"mcc", 0}}, {1, 0});
  CHECK(read_file(dir / "main/finetune/rte/results.txt") == "accuracy: 0.5\nf1: 0.6666666666666666\nmcc: 0.0");
  CHECK(read_file(dir / "main/finetune/rte/predictions.json") ==
        R"({"rte": {"predictions": [{"id": "rte_0", "pred": 1}, {"id": "rte_1", "pred": 0}]}})");
}

TEST_CASE("figures of BabyLM's tasks stand beside the majority, with their means and every seed", "[babylm]") {
  BabylmFinetuning finetuning{.results = "results"};
  finetuning.tasks = {{.task = "rte",
                       .majority = 0.5,
                       .published = {{"accuracy", 0.75}},
                       .own = {{{"accuracy", 0.5}}, {{"accuracy", 0.625}}}},
                      {.task = "wsc",
                       .majority = 0.625,
                       .published = {{"accuracy", 0.625}},
                       .is_constant = true,
                       .own = {{{"accuracy", 0.5}}, {{"accuracy", 0.5}}}}};
  const auto table = table_of(finetuning);
  REQUIRE(table.rows.size() == 3);
  CHECK((table.rows[0] == std::vector<std::string>{"rte", "50.00", "75.00", "56.25", "50.00, 62.50"}));
  CHECK((table.rows[2] == std::vector<std::string>{"mean", "56.25", "68.75", "53.12", ""}));
  for (auto& task : finetuning.tasks) task.own.clear();
  CHECK(table_of(finetuning).header.size() == 3);
  CHECK(to_json(finetuning)["tasks"][1]["constant"] == true);
}

TEST_CASE("a folder without the tasks of BabyLM is refused with what it lacks", "[babylm]") {
  const TempDir dir;
  const auto refused = [&](const std::string& sentence) {
    CHECK_THROWS_WITH(finetune_babylm({.run = "none", .data = dir.path.string(), .folder = dir / "runs"}),
                      Contains(sentence));
  };
  refused(
      ": has no boolq.train.jsonl and no other file of the tasks; name the folder glue_filtered of the challenge's "
      "evaluation data");
  write_babylm_tasks(dir, "full_eval/glue_filtered", 4);
  std::filesystem::remove(dir / "full_eval/glue_filtered/wsc.valid.jsonl");
  refused(
      "full_eval/glue_filtered: has no wsc.valid.jsonl; complete the folder from the evaluation data of the "
      "challenge");
  CHECK_THROWS_WITH(finetune_babylm({.run = "none", .data = dir.path.string(), .seeds = -1}),
                    "--seeds is -1; give the number of fine-tunings by our own rules, or 0 for none");
}

// The verb babylm finetune, and what collate makes of its results.
#include <filesystem>

#include "tests/cli/program.h"
#include "tests/support/babylm_tasks.h"

namespace fs = std::filesystem;
using nlohmann::json;

TEST_CASE("babylm finetune does the seven tasks, says what a decoder gets, goes on after a kill, and collate takes it",
          "[cli][babylm]") {
  auto& w = world();
  const TempDir dir;
  const auto run = dir / "baby";
  REQUIRE(cloze("pretrain " SOURCE_DIR "/configs/gpt2/tiny.yaml --set data.tokens=" + w.tokens +
                " --set model.hidden_size=16 --set model.intermediate_size=16 --set model.num_hidden_layers=1 --set "
                "model.num_attention_heads=2 --set data.max_seq_length=32 --set train.budget.steps=2 --set "
                "schedule.warmup=0 --run " +
                run)
              .code == 0);
  write_babylm_tasks(dir, "data/full_eval/glue_filtered", 43);
  const auto command = "babylm finetune " + run + " " + (dir / "data") + " --results " + (dir / "results") + " --run " +
                       (dir / "runs") + " --seeds 1 --set train.batch_size=4 --set train.budget.epochs=2";
  const std::string items_of_wsc = "data/full_eval/glue_filtered/wsc.valid.jsonl",
                    whole = read_file(dir / items_of_wsc);
  dir.write(items_of_wsc, whole + "{\"text\": \"it\", \"span1_text\": \"it\", \"span2_text\": \"it\"}\n");
  check_refused(command, 1, "wsc.valid.jsonl:11: has no 'label'");
  CHECK_FALSE(fs::exists(dir / "runs/boolq"));  // whose turn comes first
  dir.write(items_of_wsc, whole);
  check_refused(command + " --set train.batchsize=4", 1, "unknown key 'train.batchsize'");
  const auto first = cloze(command);  // of other settings than those that nothing was trained with
  INFO(first.text);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.text, Catch::Contains("published program") && Catch::Contains("our rules") &&
                             Catch::Contains("with --causal --take_final it stops") &&
                             Catch::Contains("as published, every item has the same label: boolq"));
  const auto config = read_file(dir / "runs/rte/published/run.yaml");
  CHECK_THAT(config, Catch::Contains("head: babylm\n") && Catch::Contains("drop_last: true") &&
                         Catch::Contains("warmup: 1\n") && Catch::Contains("every: 10") && Catch::Contains("seed: 42"));
  CHECK_THAT(read_file(dir / "runs/rte/seed-42/run.yaml"), Catch::Contains("head: babylm-pooled"));
  CHECK(json::parse(read_file(dir / "runs/rte/published/summary.json"))["steps"] == 20);
  const auto tuned = dir / "results/baby/main/finetune";
  for (const std::string task : {"boolq", "multirc", "rte", "wsc", "mrpc", "qqp", "mnli"}) {
    INFO(task);
    const auto predictions = json::parse(read_file(tuned + "/" + task + "/predictions.json"))[task]["predictions"];
    CHECK(predictions.size() == 10);
    CHECK(predictions[9]["id"] == task + "_9");
    const auto report = read_file(tuned + "/" + task + "/results.txt");
    CHECK(report.starts_with("accuracy: "));
    CHECK((report.find("\nf1: ") != std::string::npos) == (task != "mnli"));
    CHECK(json::parse(read_file(tuned + "/" + task + "/weights.json"))["main"].get<std::string>().size() == 16);
  }
  const auto before = read_file(tuned + "/wsc/predictions.json");
  fs::remove(dir / "runs/wsc/published/summary.json");
  fs::remove_all(dir / "results");
  const auto again = json_of(cloze("--quiet " + command + " --json"));
  CHECK(again["tasks"].size() == 7);
  CHECK(again["tasks"][0]["constant"] == true);
  CHECK(again["tasks"][0]["own"].size() == 1);
  CHECK(read_file(tuned + "/wsc/predictions.json") == before);
  fs::create_directories(dir / "results/baby/main/zero_shot/causal");
  const auto collated = cloze("babylm collate " + (dir / "results/baby") + " --partial");
  INFO(collated.text);
  CHECK(collated.code == 0);
  CHECK_THAT(collated.text, Catch::Contains("'rte' has 10 predictions, and the published data 139 items") &&
                                !Catch::Contains("finetune/rte/predictions.json: is not there"));
  const auto request = read_file(dir / "runs/request.json");
  auto of_earlier_version = json::parse(request);
  for (const auto* key : {"weights", "items"}) of_earlier_version.erase(key);
  dir.write("runs/request.json", of_earlier_version.dump());
  CHECK(cloze(command).code == 0);
  check_refused(command + " --set train.ema_decay=0.9", 2, "request.json: is of another run");
  dir.write("runs/request.json", request);
  fs::rename(dir / "runs/mnli/published", dir / "mnli");
  fs::copy(dir / "runs/rte/published", dir / "runs/mnli/published", fs::copy_options::recursive);
  check_refused(command, 1,
                "runs/mnli/published: is fine-tuned on another task than mnli of the challenge; name another folder "
                "with --run");
  fs::remove_all(dir / "runs/mnli/published");
  fs::rename(dir / "mnli", dir / "runs/mnli/published");
  check_refused(command + " --set train.ema_decay=0.9", 2,
                "request.json: is of another run, of other weights or items, or of other settings, and so are the runs "
                "beside it; name another folder with --run");
  fs::rename(dir / "runs/rte", dir / "rte");
  fs::create_symlink(dir / "rte", dir / "runs/rte");
  check_refused(command, 2, "runs/rte: is a link, through which another folder would be changed; put a folder of its");
  fs::remove(dir / "runs/rte");
  fs::rename(dir / "rte", dir / "runs/rte");
  const std::string items = "data/full_eval/glue_filtered/rte.train.jsonl", as_given = read_file(dir / items);
  dir.write(items, as_given + as_given);
  check_refused(command, 2, "request.json: is of another run, of other weights or items, or of other settings");
  dir.write(items, as_given);
  write_babylm_tasks(dir, "data/glue_filtered", 8);
  check_refused(command, 2,
                "boolq.yaml: is of other data, and so are the runs beside it; name another folder with --run");
  check_refused("babylm finetune " + run + " " + (dir / "data") + " --run " + (dir / "few"), 1,
                "the task has 8 items to train on, and data.drop_last leaves out a batch of fewer than 16");
}

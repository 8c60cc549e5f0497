// What leaves with a fine-tuned run: the length of its rows, how it reads texts, its card.
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "core/text.h"
#include "interchange/exported_task.h"
#include "interchange/interchange.h"
#include "interchange/model_card.h"
#include "objectives/task_heads/task_heads.h"
#include "tests/support/logged.h"
#include "tests/support/runs.h"
#include "train/tasks/finetune.h"

using namespace cloze;
namespace fs = std::filesystem;
using Catch::Contains;

namespace {

/// Texts of the words a to h, which are `low`, and of i to p, which are `high`.
std::string labelled_lines(int items) {
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < items; ++i) {
    const auto word = std::string("w") + static_cast<char>('a' + i % 16);
    lines += word + " " + word + (i % 16 < 8 ? "\tlow\n" : "\thigh\n");
  }
  return lines;
}

/// A run of `steps` steps on a task of two labels, in `dir / "tuned"`.
std::string tuned_run(const TempDir& dir, const std::string& more, int64_t steps = 2) {
  set_log_level(LogLevel::quiet);
  auto config = tiny_run(dir, 2);
  config.objectives = {default_objective<MlmConfig>()};
  pretrain(config, {.run = dir / "base"});
  dir.write("task.tsv", labelled_lines(32));
  const auto task = open_task(dir.write(
      "task.yaml",
      "task: moods\nkind: classification\ndata: {train: task.tsv, valid: test, test: task.tsv, label: label, " + more));
  const auto tokenizer = Tokenizer::open(config.data.tokens + "/tokenizer");
  const auto made = prepare_task(task, tokenizer, special_token_template(tokenizer, config.model), dir / "rows");
  TaskHeadTerms terms;
  terms.labels = task.labels.names;
  config.init.from = dir / "base";
  config.objectives = {task_head_objective("classification", terms)};
  config.data.tokens = dir / "rows";
  config.task = {
      .name = "moods", .file = task.file, .like = "none", .metric = "accuracy", .fingerprint = made.fingerprint};
  config.train.budget.steps = steps;
  pretrain(config, {.run = dir / "tuned"}, parts_of_run(config));
  set_log_level(LogLevel::normal);
  return dir / "tuned";
}

nlohmann::json json_in(const std::string& path) { return parse_json(read_file(path)); }

}  // namespace

TEST_CASE("an exported classifier is read with the length of the rows that it was trained on, in both formats",
          "[interchange][tasks]") {
  const TempDir dir;
  const auto run = tuned_run(dir, "text: text}\nmax_length: 12\n");
  export_huggingface(run, dir / "hf");
  CHECK(json_in(dir / "hf/tokenizer_config.json")["model_max_length"] == 12);
  CHECK_THAT(read_file(dir / "hf/README.md"), Contains("- Of more than 12 tokens, texts were cut; pipelines do so with "
                                                       "truncation=True.\n"));
  CHECK(export_torchscript(run, dir / "tuned.pt", "float32", BINARY_DIR "/cloze").passed);
  torch::jit::ExtraFilesMap inside{{"tokenizer/tokenizer_config.json", ""}};
  torch::jit::load(dir / "tuned.pt", at::kCPU, inside);
  CHECK(parse_json(inside["tokenizer/tokenizer_config.json"])["model_max_length"] == 12);
  // Without its rows nobody knows the length, which is said.
  fs::remove_all(dir / "rows");
  const auto said = logged(dir, [&] { export_huggingface(run, dir / "lost"); });
  CHECK_THAT(said, Contains("the rows of its task are gone or damaged"));
  CHECK(json_in(dir / "lost/tokenizer_config.json")["model_max_length"] == 32);
}

TEST_CASE("what pipelines cannot do is said by an export and its card", "[interchange][tasks][card]") {
  const TempDir dir;
  const auto run = tuned_run(dir, "text: \"mood of {text}?\"}\ncut: head_tail\nhead_tail: 3\nmax_length: 12\n");
  const std::vector<std::string> notes{
      "Of more than 12 tokens, the beginning and the end were read; pipelines read the beginning alone.",
      "Texts had the form mood of {text}?; pipelines put no columns and no words together, so give them such texts."};
  const auto said = logged(dir, [&] { export_huggingface(run, dir / "hf"); });
  for (const auto& note : notes) {
    CHECK_THAT(said, Contains("warning: " + note));
    CHECK_THAT(read_file(dir / "hf/README.md"), Contains("- " + note));
  }
}

TEST_CASE("cuts of texts are told with the option of transformers that does the same", "[interchange][tasks]") {
  const TempDir dir;
  const auto run = open_run(tuned_run(dir, "text: text}\nmax_length: 12\n"));
  const auto note_of = [&](AnyTaskKind kind, const Truncation& cut, bool is_pair = false) {
    TaskConfig task;
    task.kind = kind, task.truncation = cut, task.max_length = 500;  // of which the network reads 32
    if (is_pair) task.data.second = "b";
    return reading_notes(run, task).at(0);
  };
  CHECK_THAT(note_of("classification", LongestTruncation{}).sentence,
             Contains("Of more than 32 tokens") && Contains("truncation=True."));
  CHECK_THAT(note_of("classification", LongestTruncation{}, true).sentence,
             Contains("truncation=True, but keep another token"));
  CHECK_THAT(note_of("classification", FirstTruncation{}).sentence, Contains("truncation=\"only_first\""));
  CHECK_THAT(note_of("classification", SecondTruncation{}).sentence, Contains("truncation=\"only_second\""));
  CHECK(note_of("regression", Windows{}).is_lost);
  CHECK_THAT(note_of("tagging", Windows{}).sentence, Contains("stride="));
  CHECK_THAT(note_of("spans", Windows{}).sentence, Contains("return_overflowing_tokens=True"));
}

TEST_CASE(
    "the card of a fine-tuned run has the figures of its test part beside the floor, and none of the valid part "
    "but the one that chose the step",
    "[interchange][tasks][card]") {
  const TempDir dir;
  const auto run = tuned_run(dir, "text: text}\n");
  export_huggingface(run, dir / "moody");
  const auto card = read_file(dir / "moody/README.md");
  const auto task = json_in(run + "/summary.json")["task"];
  const auto& accuracy = task["test"]["accuracy"];
  const auto percent = [](const nlohmann::json& share) { return fixed(100 * share.get<double>(), 2); };
  CHECK_THAT(card, Contains("## Test part of moods\n\n| figure | value | 95 % interval | majority | n |\n"));
  CHECK_THAT(card, Contains(concat("\n| accuracy % | ", percent(accuracy["value"]), " | ", percent(accuracy["low"]),
                                   " to ", percent(accuracy["high"]), " | 50.00 | 32 |\n")));
  for (const auto* shown : {"auc", "f1", "f1\\_macro", "mcc"}) CHECK_THAT(card, Contains(concat("\n| ", shown, " | ")));
  for (const auto* other : {"kappa", "precision", "f1\\_micro", "recall", "moods-valid", "losses predicted"})
    CHECK_THAT(card, !Contains(other));
  CHECK_THAT(card, Contains(concat("The step was chosen by accuracy ", percent(task["best"]), " %")));
  CHECK_THAT(card, Contains("\n- valid is test: every figure is chosen"));
  CHECK_THAT(card, Contains("\npipeline_tag: text-classification\nbase_model: \"base\"  # a hub wants OWNER/NAME\n"));
  CHECK_THAT(card, Contains("\nmodel-index:\n- name: \"moody\"\n  results:\n") &&
                       Contains(concat("    - type: accuracy\n      value: ", fixed(accuracy["value"].get<double>(), 4),
                                       "\n")));
}

TEST_CASE("a card says that a run did not learn, and has no figures of another checkpoint or of damaged records",
          "[interchange][tasks][card]") {
  const TempDir dir;
  const auto run = tuned_run(dir, "text: text}\n");
  auto opened = open_run(run);
  const auto card = [&] { return model_card(opened, "m", "BertForSequenceClassification"); };
  auto summary = json_in(run + "/summary.json");
  summary["task"].erase("xxh3"), summary["task"].erase("predictions"), summary["task"].erase("rows");
  const auto write = [&] { std::ofstream(run + "/summary.json") << json_text(summary); };
  summary["task"]["learned"] = false;
  write();
  CHECK_THAT(card(),
             Contains("**It did not learn**: its accuracy on the valid part is not shown to be better than that of "
                      "majority.\n"));
  summary["task"]["learned"] = true;
  summary["task"]["test"]["accuracy"] = {{"value", 0.55}, {"low", 0.4}, {"high", 0.7}, {"count", 32}};
  write();
  CHECK_THAT(card(), Contains("The interval holds the floor") && !Contains("did not learn"));
  ++opened.state.step;
  CHECK_THAT(card(), !Contains("## Test part") && !Contains("model-index") &&
                         Contains("- The test part of its task: nothing is recorded of it at this step.\n"));
  --opened.state.step;
  summary["task"]["xxh3"] = "0000000000000000";  // as edited
  write();
  CHECK_THAT(card(), !Contains("## Test part"));
}

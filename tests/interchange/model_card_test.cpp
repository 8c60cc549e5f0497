// README.md of exports.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "data/store/token_store.h"
#include "interchange/interchange.h"
#include "interchange/model_card.h"
#include "run/records/history.h"
#include "run/records/provenance.h"
#include "run/records/suite_units.h"
#include "tests/support/catch.h"
#include "tests/support/runs.h"
#include "tests/support/trained.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

using Catch::Contains;

/// The line of a text that begins so.
std::string line_with(const std::string& text, const std::string& beginning) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(beginning)) return line;
  FAIL("no line begins with " << beginning);
  return "";
}

/// The lines between the first two `---`, with them.
std::string keys_of(const std::string& card) {
  REQUIRE(card.starts_with("---\n"));
  const auto end = card.find("\n---\n", 3);
  REQUIRE(end != std::string::npos);
  return card.substr(0, end + 5);
}

/// Changes a JSON file of a run.
void edit_record(const std::string& path, const std::string& place, const nlohmann::json& value) {
  auto record = parse_json(read_file(path));
  record[nlohmann::json::json_pointer(place)] = value;
  std::ofstream(path) << json_text(record);
}

/// A run of two steps, whose records can be changed, in `dir`/short.
std::string short_run(const TempDir& dir, const std::string& command) {
  auto config = tiny_run(dir, 2);
  config.objectives = {default_objective<MlmConfig>()};
  pretrain(config, {.run = dir / "short", .command_line = command});
  return dir / "short";
}

std::string exported_card(const std::string& run, const std::string& out) {
  export_huggingface(run, out);
  return read_file(out + "/README.md");
}

}  // namespace

TEST_CASE("the card of an export has data, budget, losses with intervals and how to load it", "[interchange][card]") {
  const TempDir dir;
  const auto run = short_run(dir, "cloze pretrain tiny.yaml --run runs/short");
  const auto card = exported_card(run, dir / "my-model");
  CHECK(keys_of(card) ==
        "---\n"
        "# To fill in, without the sign before it: a hub shows both, and is searched by them.\n"
        "# license:\n"
        "# language:\n"
        "library_name: transformers\n"
        "pipeline_tag: fill-mask\n"
        "tags:\n"
        "- cloze\n"
        "- bert\n"
        "- mlm\n"
        "---\n");
  CHECK_THAT(card, Contains("\n# my-model\n"));
  CHECK_THAT(card, Contains("```python\n"
                            "from transformers import AutoTokenizer, BertForMaskedLM\n"
                            "tokenizer = AutoTokenizer.from_pretrained(\"my-model\")\n"
                            "model = BertForMaskedLM.from_pretrained(\"my-model\")\n"
                            "```\n"));
  const auto state = load_state(find_checkpoint(run), nullptr);
  const TokenStore store(dir / "tokens", "train");
  CHECK(line_with(card, "| data |") == concat("| data | ", counted(store.num_documents(), "document"), ", ",
                                              counted(store.num_tokens(), "token"), ", fingerprint ",
                                              store.fingerprint(), " |"));
  CHECK(line_with(card, "| steps |") == "| steps | 2 |");
  CHECK_THAT(line_with(card, "| tokens read |"), Contains(" " + thousands(static_cast<uint64_t>(state.tokens)) + ","));
  CHECK_THAT(line_with(card, "| FLOPs |"), Contains(digits(state.flops, 3)));
  CHECK_THAT(line_with(card, "| first weights |"), Contains("drawn"));

  const auto losses = metrics(run).back().at("held_out");
  const double loss = losses.at("mlm_loss"), error = losses.at("mlm_standard_error");
  CHECK(line_with(card, "| mlm |") ==
        concat("| mlm | ", score_cell(loss, "loss"), " | ", score_cell(loss - 1.96 * error, "loss"), " to ",
               score_cell(loss + 1.96 * error, "loss"), " | ", score_cell(losses.at("mlm_accuracy"), "accuracy"), " | ",
               score_cell(losses.at("mlm_baseline_loss"), "loss"), " |"));
  CHECK_THAT(card, Contains("\n\n    cloze pretrain tiny.yaml --run runs/short\n\n"));
  CHECK_THAT(card, Contains("LibTorch ") && Contains("## Not evaluated\n"));
  CHECK_THAT(card, !Contains("| changed |"));
  record_changes(run, "cloze pretrain", {.step = 1, .keys = {{"optimizer.learning_rate", "0.003", "0.001"}}});
  CHECK(line_with(exported_card(run, dir / "changed"), "| changed |") ==
        "| changed | step 1 with optimizer.learning\\_rate 0.001 (was 0.003) |");
}

TEST_CASE("the card of a fine-tuned run says on what, and no more of tasks than is true", "[interchange][card]") {
  const TempDir dir;
  auto run = open_run(short_run(dir, "cloze finetune runs/base task.yaml"));
  run.config.task.name = "mood*s\n---";
  const auto card = model_card(run, "moods", "BertForSequenceClassification");
  CHECK_THAT(card, Contains(", fine-tuned with Cloze on the task mood\\*s ---.\n") &&
                       !Contains("pretrained with Cloze") &&
                       Contains("- Tasks: none but that which it was fine-tuned on.\n") &&
                       !Contains("nothing after fine-tuning"));
}

TEST_CASE("texts of records and folders are neither YAML nor Markdown nor Python in a card", "[interchange][card]") {
  const TempDir dir;
  const std::string hostile = "x\n---\nlicense: mit\n# y\n```\n<script>a</script> | [z](http://z) `b`\x1b[31m";
  const auto run = short_run(dir, hostile);
  for (const auto* place : {"/data/fingerprint", "/commit", "/libtorch", "/machine/processor", "/machine/isa", "/date",
                            "/branched_from/run"})
    edit_record(run + "/provenance.json", place, hostile);
  const nlohmann::json score{{"value", 0.5}, {"low", 0.25}, {"high", 0.75}, {"count", 1000}};
  const nlohmann::json row{{"step", 2},
                           {"held_out", {{hostile + "_loss", 1.5}}},
                           {"suites", {{hostile, {{"accuracy", score}}}, {"damaged", {{"accuracy", "half"}}}}}};
  std::ofstream(run + "/metrics.jsonl", std::ios::app) << json_text(row) << "\n";
  const std::string name = "a\"b'*c*\n---\nlicense: mit\n\xff";
  const auto card = exported_card(run, dir / name);
  CHECK_THAT(keys_of(card), !Contains("mit"));
  std::istringstream lines(card);
  int fences = 0, rules = 0;
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    fences += line.starts_with("```") ? 1 : 0;
    rules += line == "---" ? 1 : 0;
    CHECK_FALSE((line.starts_with("license:") || line.starts_with("# y")));
    CHECK((line.starts_with("    ") || line.find("<script>") == std::string::npos));
    CHECK((line.starts_with("    ") || line.find("[z]") == std::string::npos));
    CHECK(line.find('\x1b') == std::string::npos);
    CHECK(line.find('\xff') == std::string::npos);
  }
  CHECK(fences == 2);
  CHECK(rules == 2);
  CHECK_THAT(card,
             Contains("model = BertForMaskedLM.from_pretrained(\"a\\\"b'*c*\\n---\\nlicense: mit\\n\xEF\xBF\xBD\")\n"));
  CHECK_THAT(card, Contains(" | accuracy % | 50.00 | 25.00 to 75.00 | 1,000 |\n"));
}

TEST_CASE("a card that is there stays when the model is replaced", "[interchange][card]") {
  const TempDir dir;
  const auto out = dir / "hf", own = std::string("---\nlicense: cc-by-4.0\n---\nmine\n");
  const auto first = exported_card(trained(), out);
  std::ofstream(out + "/README.md") << own;
  fs::remove(out + "/model.safetensors");
  export_huggingface(trained(), out, "", /*replace=*/true);
  CHECK(read_file(out + "/README.md") == own);
  CHECK(fs::exists(out + "/model.safetensors"));
  for (const bool is_link : {false, true}) {  // what is elsewhere is not published
    fs::remove(out + "/README.md");
    if (is_link) fs::create_symlink("/proc/version", out + "/README.md");
    export_huggingface(trained(), out, "", /*replace=*/true);
    CHECK_FALSE(fs::is_symlink(out + "/README.md"));
    CHECK(read_file(out + "/README.md") == first);
  }
}

TEST_CASE("a card says what damaged and missing records do not", "[interchange][card]") {
  const TempDir dir;
  const auto run = short_run(dir, "cloze pretrain");
  edit_record(run + "/provenance.json", "/data", "lost");
  edit_record(run + "/provenance.json", "/machine", nlohmann::json::array({1}));
  std::ofstream(run + "/metrics.jsonl") << "{\"step\": 2, \"held_out\": [1]}\n{\"step\": 2, \"held_out\"\n";
  const auto card = exported_card(run, dir / "damaged");
  CHECK(line_with(card, "| data |") ==
        "| data | documents: not recorded, tokens: not recorded, fingerprint not recorded |");
  CHECK_THAT(card, !Contains("## Held-out losses") && Contains("none was measured at this step"));
  fs::remove(run + "/provenance.json");
  fs::remove(run + "/metrics.jsonl");
  fs::create_directory(run + "/metrics.jsonl");
  CHECK_THAT(exported_card(run, dir / "missing"), Contains("\n    not recorded\n"));
}

TEST_CASE("a model that was imported and not trained has a card without training, and the class that it came with",
          "[interchange][card]") {
  const TempDir dir;
  import_huggingface(SOURCE_DIR "/tests/parity/roberta", dir / "run");
  const auto card = exported_card(dir / "run", dir / "again");
  CHECK_THAT(card, Contains("not trained by Cloze; first weights imported: roberta.\n"));
  CHECK_THAT(card, Contains("\nfrom transformers import RobertaForMaskedLM\nmodel = RobertaForMaskedLM.") &&
                       !Contains("AutoTokenizer") && !Contains("## Training"));
}

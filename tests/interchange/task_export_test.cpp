// What a model with the head of a task gives outside of the program.
#include <torch/csrc/jit/serialization/import.h>

#include "core/json.h"
#include "core/log.h"
#include "finetune/run_rows.h"
#include "interchange/huggingface_classes.h"
#include "interchange/interchange.h"
#include "run/records/made_by.h"
#include "tests/interchange/cases.h"
#include "tests/support/close_to.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A case with the head of a task as the run `dir / run`.
std::string run_of_case(const TempDir& dir, const std::string& name, const std::string& run) {
  import_huggingface(SOURCE_DIR "/tests/task_parity/" + name, dir / run);
  return dir / run;
}

/// A regression with targets from the first to the second number, as a run that was trained here.
std::string run_with_scale(const TempDir& dir, const std::string& name, const std::string& scale) {
  const auto run = run_of_case(dir, name, name + "-run");
  auto yaml = read_file(run + "/run.yaml");
  const auto at = yaml.find("scale: []");
  REQUIRE(at != std::string::npos);
  dir.write(name + "-run/run.yaml", yaml.replace(at, 9, "scale: " + scale));
  record_made_by(run, {.config = yaml});
  return run;
}

std::vector<TaskRow> rows_of_lengths(std::initializer_list<int64_t> lengths) {
  std::vector<TaskRow> rows;
  for (const auto length : lengths) {
    auto& row = rows.emplace_back();
    for (int64_t t = 0; t < length; ++t) row.ids.push_back(static_cast<int32_t>((3 + 7 * t + length) % 25 + 3));
  }
  return rows;
}

}  // namespace

TEST_CASE("the value of an exported regression is the predicted one, on the scale of the task",
          "[interchange][tasks]") {
  TempDir dir;
  set_log_level(LogLevel::quiet);
  const auto run = run_with_scale(dir, "bert-seq-values", "[1, 5]");
  const auto opened = open_run(run), plain = open_run(run_of_case(dir, "bert-seq-values", "plain"));
  const auto rows = rows_of_lengths({9, 4, 6});
  const auto wanted = run_rows(*opened.network, opened.config.objectives, rows).logits,
             unscaled = run_rows(*plain.network, plain.config.objectives, rows).logits;
  export_huggingface(run, dir / "hf");
  import_huggingface(dir / "hf", dir / "back");
  const auto back = open_run(dir / "back");
  CHECK(task_head_of(back.config.objectives.at(0))->scale.empty());
  const auto found = run_rows(*back.network, back.config.objectives, rows).logits;
  CHECK(export_torchscript(run, dir / "run.pt", "float32", BINARY_DIR "/cloze").passed);
  auto file = torch::jit::load(dir / "run.pt");
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<int64_t> row(rows[r].ids.begin(), rows[r].ids.end());
    const auto ids = at::tensor(row, at::kLong).unsqueeze(0);
    const auto of_file = file.forward({ids}).toGenericDict().at("logits").toTensor();
    CHECK(error_of(wanted[r], unscaled[r] * 4 + 1) < 1e-6);
    CHECK(error_of(found[r], wanted[r]) < 1e-5);
    CHECK(error_of(of_file[0], wanted[r]) < 1e-5);
  }
  set_log_level(LogLevel::normal);
}

TEST_CASE("a scale that begins elsewhere than at 0 needs a bias in the class", "[interchange][tasks]") {
  auto config = [] {
    TempDir dir;
    return open_run(run_of_case(dir, "gpt2-seq", "run")).config;
  }();
  RegressionConfig head;
  head.scale = {0, 5};
  config.objectives = {head};
  require_huggingface(config);
  head.scale = {1, 5};
  config.objectives = {head};
  CHECK_THROWS_WITH(require_huggingface(config),
                    "the head of gpt2 has no bias at Hugging Face, so that its values cannot begin at 1; train with a "
                    "scale that begins at 0, or export to torchscript");
}

TEST_CASE("the probe of a layer has no class at Hugging Face", "[interchange][tasks][probe]") {
  auto config = [] {
    TempDir dir;
    return open_run(run_of_case(dir, "gpt2-seq", "run")).config;
  }();
  RegressionConfig head;
  head.layer = {1};
  config.objectives = {head};
  CHECK_THROWS_WITH(require_huggingface(config),
                    "the probe of a layer has no class at Hugging Face; export to torchscript, or fine-tune without "
                    "objectives.0.layer");
}

TEST_CASE("a GPT-2 whose head reads the last token is exported with an id of padding that is no word",
          "[interchange][tasks]") {
  TempDir dir;
  const auto pad_of = [](const LoadedRun& run) { return reader_of(run).pad; };
  auto run = open_run(run_of_case(dir, "gpt2-seq", "run"));
  CHECK(pad_of(run) == 1);  // as it came in
  dir.write("end/vocab.txt", "[UNK]\nword\n</s>\n");
  dir.write("pad/vocab.txt", "[UNK]\n[PAD]\nword\n</s>\n");
  run.has_tokenizer = true;
  run.tokenizer = Tokenizer::open(dir / "end/vocab.txt");
  CHECK(pad_of(run) == 1);
  backbone_of(run.config.model).pad_token_id = 0;  // as config.json without one is read
  CHECK(pad_of(run) == 2);
  run.tokenizer = Tokenizer::open(dir / "pad/vocab.txt");
  CHECK(pad_of(run) == 1);
  export_huggingface(dir / "run", dir / "hf");
  CHECK(parse_json(read_file(dir / "hf/config.json"))["pad_token_id"] == 1);
  CHECK(pad_of(open_run(run_of_case(dir, "gpt2-tags", "tags"))) == -1);
}

TEST_CASE("tags that were trained on words are exported with a space before each; an untouched folder as it came in",
          "[interchange][tasks]") {
  TempDir dir;
  auto run = open_run(run_of_case(dir, "gpt2-tags", "tags"));
  CHECK_FALSE(reader_of(run).words);
  run.state.step = 1;
  CHECK(reader_of(run).words);
}

TEST_CASE("heads of XLNet are exported to TorchScript, and those that read whole texts take no targets",
          "[interchange][torchscript][tasks]") {
  TempDir dir;
  set_log_level(LogLevel::quiet);
  for (const std::string name : {"xlnet-seq", "xlnet-choice", "xlnet-spans"}) {
    INFO(name);
    CHECK(
        export_torchscript(run_of_case(dir, name, name), dir / (name + ".pt"), "float32", BINARY_DIR "/cloze").passed);
    auto file = torch::jit::load(dir / (name + ".pt"));
    const auto ids = at::full({1, 5}, 7, at::kLong);
    const auto targets = at::one_hot(at::tensor({4}, at::kLong), 5).to(at::kFloat).unsqueeze(0);
    const auto run = [&] { return file.forward({ids, c10::IValue(), c10::IValue(), c10::IValue(), targets}); };
    if (name == "xlnet-spans")
      CHECK(run().toGenericDict().at("start_logits").toTensor().size(1) == 1);
    else
      CHECK_THROWS_WITH(run(), Catch::Contains("reads whole texts: leave target_mapping out"));
  }
  set_log_level(LogLevel::normal);
}

TEST_CASE("a Longformer in TorchScript reads texts with the global tokens that its head was trained with",
          "[interchange][torchscript][tasks]") {
  TempDir dir;
  set_log_level(LogLevel::quiet);
  const auto file_of = [&](const std::string& name) {
    CHECK(
        export_torchscript(run_of_case(dir, name, name), dir / (name + ".pt"), "float32", BINARY_DIR "/cloze").passed);
    return torch::jit::load(dir / (name + ".pt"));
  };
  auto texts = file_of("longformer-seq");
  const auto run = open_run(dir / "longformer-seq");
  const auto rows = rows_of_lengths({9});
  const std::vector<int64_t> row(rows[0].ids.begin(), rows[0].ids.end());
  const auto ids = at::tensor(row, at::kLong).unsqueeze(0);
  const auto wanted = run_rows(*run.network, run.config.objectives, rows).logits[0];
  CHECK(error_of(texts.forward({ids}).toGenericDict().at("logits").toTensor()[0], wanted) < 1e-5);
  auto answers = file_of("longformer-spans"), choices = file_of("longformer-choice");
  CHECK_THROWS_WITH(answers.forward({ids}),
                    Catch::Contains("mark the tokens of the question in global_attention_mask"));
  CHECK_THROWS_WITH(choices.forward({ids}),
                    Catch::Contains("mark the tokens of the candidate in global_attention_mask"));
  CHECK(answers.forward({ids, c10::IValue(), ids.lt(9)}).toGenericDict().contains("start_logits"));
  set_log_level(LogLevel::normal);
}

TEST_CASE("heads of encoder-decoders are exported to TorchScript with their labels, and read the whole text there",
          "[interchange][torchscript][tasks]") {
  TempDir dir;
  set_log_level(LogLevel::quiet);
  for (const std::string name : {"bart-seq", "t5-seq", "t5-spans"}) {
    INFO(name);
    const auto run = run_of_case(dir, name, name);
    CHECK(export_torchscript(run, dir / (name + ".pt"), "float32", BINARY_DIR "/cloze").passed);
    if (name == "t5-spans") continue;
    const auto opened = open_run(run);
    torch::jit::ExtraFilesMap inside{{"config.json", ""}};
    auto file = torch::jit::load(dir / (name + ".pt"), at::kCPU, inside);
    CHECK(parse_json(inside["config.json"])["id2label"]["2"] == "LABEL_2");
    auto rows = rows_of_lengths({8});
    rows[0].ids.back() = static_cast<int32_t>(backbone_of(opened.config.model).eos_token_id);
    rows[0].class_token = 7;
    const std::vector<int64_t> row(rows[0].ids.begin(), rows[0].ids.end());
    const auto wanted = run_rows(*opened.network, opened.config.objectives, rows).logits[0];
    const auto found = file.forward({at::tensor(row, at::kLong).unsqueeze(0)}).toGenericDict().at("logits").toTensor();
    CHECK(error_of(found[0], wanted) < 1e-5);
  }
  set_log_level(LogLevel::normal);
}

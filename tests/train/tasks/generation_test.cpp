// Runs that are fine-tuned to generate a text for each source.
#include <fstream>

#include "finetune/labelled_rows.h"
#include "finetune/run_rows.h"
#include "inference/generation/generate.h"
#include "interchange/interchange.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "objectives/special_tokens.h"
#include "run/run.h"
#include "tasks/rows/prepared_task.h"
#include "tests/support/runs.h"
#include "tests/train/tasks/trained.h"
#include "train/tasks/task_validation.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

/// A word of the synthetic language and the two that follow it.
std::string words_and_followers() {
  std::string lines;
  const auto word = [](int k) { return std::string("w") + static_cast<char>('a' + k % 16); };
  for (int k = 0; k < 16; ++k)
    lines += json{{"source", word(k)}, {"target", word(3 * k + 1) + " " + word(3 * (3 * k + 1) + 1)}}.dump() + "\n";
  return lines;
}

constexpr const char* followers =
    "task: after\nkind: generation\ndata: {train: after.jsonl, valid: after.jsonl, test: after.jsonl, text: source, "
    "label: target}\nmax_target: 6\nmetric: [exact_match]\n";

/// The config of a network from drawn weights that is to learn them.
template <class Model>
RunConfig learning(const TempDir& dir, const std::string& yaml = followers) {
  auto config = tiny_run(dir, 1);
  dir.write("after.jsonl", words_and_followers());
  const auto task = open_task(dir.write("after.yaml", yaml));
  const auto tokenizer = Tokenizer::open(config.data.tokens + "/tokenizer");
  auto model = tiny_model<Model>();
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = model.activation_dropout = 0;
  if (model.d_kv > 0) model.d_kv = 16;
  config.model = model;
  take_special_ids(config.model, tokenizer.special());
  auto& base = backbone_of(config.model);
  base.vocab_size = tokenizer.size();
  const auto rows = dir / "rows";
  const auto made = prepare_task(task, tokenizer, special_token_template(tokenizer, config.model), rows);
  config.objectives = {PairsConfig{}};
  config.data.tokens = rows;
  config.task = {
      .name = "after", .file = task.file, .like = "none", .metric = "exact_match", .fingerprint = made.fingerprint};
  config.train.budget = {};
  config.train.budget.epochs = 150;
  config.evaluation.every = 100;
  return config;
}

std::vector<std::string> predicted_texts(const std::string& run) {
  std::vector<std::string> texts;
  std::ifstream lines(run + "/predictions.jsonl");
  for (std::string line; std::getline(lines, line);) texts.push_back(json::parse(line)["text"]);
  return texts;
}

/// Learns the followers of words, and says them.
template <class Model>
void check_learned() {
  const TempDir dir;
  const auto config = learning<Model>(dir);
  const auto report = finetune(config, {.run = dir / "run"});
  CHECK(report.task["test"]["exact_match"]["value"] == 1);
  CHECK(report.task["learned"] == true);
  CHECK(report.task["floor"]["name"] == "lead");
  const auto part = read_prepared_split(config.data.tokens, "test");
  const auto texts = predicted_texts(dir / "run");
  REQUIRE(texts.size() == 16);
  std::vector<std::string> sources;
  for (size_t i = 0; i < 16; ++i) {
    CHECK(texts[i] == part.items[i].gold.texts.front());
    sources.push_back(part.items[i].text);
  }
  // What `cloze generate` says.
  const auto run = open_run(dir / "run");
  GenerateOptions options{.search = {.max_new_tokens = 6}};
  const auto generated = generate(run, sources, options);
  for (size_t i = 0; i < 16; ++i) CHECK(generated[i][0].text == texts[i]);
}

}  // namespace

TEST_CASE("an encoder-decoder learns the texts of sources, and generates them", "[train][tasks][generation]") {
  check_learned<T5Config>();
  check_learned<BartConfig>();
}

TEST_CASE("a decoder learns the texts of sources after the token that ends them", "[train][tasks][generation]") {
  check_learned<Gpt2Config>();
}

TEST_CASE("the loss of an item is the mean over the tokens of its target, each after those before it",
          "[train][tasks][generation]") {
  const TempDir dir;
  const auto config = learning<T5Config>(dir);
  Network network(config.model, config.objectives);
  initialize(collect_params(network), 0.3, false, Rng(1));
  network.eval();
  auto part = read_prepared_split(config.data.tokens, "test");
  part.rows[1].ids.insert(part.rows[1].ids.begin(), 3, 6);  // rows of several lengths
  part.rows[2].target.insert(part.rows[2].target.begin(), 2, 7);
  const auto losses = target_losses(network, config.objectives, part.rows);
  const at::NoGradGuard no_grad;
  for (size_t r = 0; r < part.rows.size(); ++r) {
    const auto& [ids, target] = std::pair(part.rows[r].ids, part.rows[r].target);
    std::vector<int64_t> source(ids.begin(), ids.end()), before{decoding_ids_of(config.model).decoder_start_token_id};
    before.insert(before.end(), target.begin(), target.end() - 1);
    Inputs inputs{.input_ids = at::tensor(source).unsqueeze(0)};
    inputs.decoder_input_ids = at::tensor(before).unsqueeze(0);
    const auto outputs = network.outputs(inputs);
    const auto logits = std::ranges::find(outputs, "logits", &NetworkOutputs::value_type::first)->second[0];
    const auto scores = at::log_softmax(logits.to(at::kDouble), -1);
    double sum = 0;
    for (size_t t = 0; t < target.size(); ++t) sum -= scores[static_cast<int64_t>(t)][target[t]].item<double>();
    CHECK(losses[r].tokens == std::ssize(target));
    CHECK(losses[r].sum == Approx(sum).epsilon(1e-4));
  }
}

TEST_CASE("label smoothing is of training alone: held-out losses have none", "[train][tasks][generation]") {
  const TempDir dir;
  auto config = learning<T5Config>(dir);
  const auto part = read_prepared_split(config.data.tokens, "valid");
  PairsConfig smoothed;
  smoothed.label_smoothing = 0.3;
  Network network(config.model, {smoothed}), plain(config.model, {PairsConfig{}});
  for (auto* one : {&network, &plain}) initialize(collect_params(*one), 0.3, false, Rng(1));
  network.train();
  const auto batch = labelled_batch(labelled_setting(config.model, {smoothed}), {&part.rows[0]});
  CHECK(network.losses(batch, 0).at(0).sum.item<double>() != Approx(plain.losses(batch, 0).at(0).sum.item<double>()));
  CHECK(target_losses(network, {smoothed}, part.rows)[0].sum ==
        Approx(target_losses(plain, {PairsConfig{}}, part.rows)[0].sum));
}

TEST_CASE("a loss may choose the step, and beams, lengths and n-grams are those of the task file",
          "[train][tasks][generation]") {
  const TempDir dir;
  const std::string decoding = "decoding: {num_beams: 3, min_new_tokens: 4, no_repeat_ngram_size: 1}\n";
  auto config = learning<T5Config>(dir, std::string(followers) + decoding);
  config.task.metric = "loss";
  config.train.budget.epochs = 3;
  const auto report = finetune(config, {.run = dir / "run"});
  CHECK(report.task["metric"] == "loss");
  CHECK(report.task["floor"]["name"] == "guessing evenly");
  CHECK(report.task["floor"]["value"].get<double>() == Approx(std::log(21)));
  for (const auto& text : predicted_texts(dir / "run")) {
    std::istringstream words(text);
    std::set<std::string> distinct;
    int count = 0;
    for (std::string word; words >> word; ++count) distinct.insert(word);
    CHECK(std::ssize(distinct) == count);
  }
  export_huggingface(dir / "run", dir / "hf");
  CHECK(json::parse(read_file(dir / "hf/generation_config.json")) == json{{"num_beams", 3},
                                                                          {"length_penalty", 1.0},
                                                                          {"max_new_tokens", 6},
                                                                          {"min_new_tokens", 4},
                                                                          {"no_repeat_ngram_size", 1},
                                                                          {"do_sample", false},
                                                                          {"pad_token_id", 0},
                                                                          {"decoder_start_token_id", 0},
                                                                          {"eos_token_id", 3}});
}

TEST_CASE("a generating network that diverged has no figure and no texts", "[train][tasks][generation]") {
  const TempDir dir;
  const auto config = learning<T5Config>(dir);
  Network network(config.model, config.objectives);
  {
    const at::NoGradGuard no_gradients;
    for (const auto& [name, param] : collect_params(network)) param.value().fill_(std::nan(""));
  }
  TaskValidation validation(config);
  validation.judge(network);
  CHECK(std::isnan(validation.cost()));
  CHECK(std::isnan(validation.loss()));
}

TEST_CASE("a target with ids beyond the vocabulary is refused", "[train][tasks][generation]") {
  const TempDir dir;
  const auto config = learning<T5Config>(dir);
  auto rows = read_prepared_split(config.data.tokens, "train").rows;
  rows[3].target[0] = 999;
  CHECK_THROWS_WITH(make_labelled_rows(labelled_setting(config.model, config.objectives), rows, Rng(1), {}),
                    Contains("item 3 of the task has no target, or one with ids beyond the 21 of the vocabulary"));
}

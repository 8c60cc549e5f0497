// Runs that are fine-tuned on a task.
#include <fstream>

#include "finetune/labelled_rows.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"
#include "run/records/task_summary.h"
#include "run/run.h"
#include "tasks/rows/prepared_task.h"
#include "tests/distributed/rank_case.h"
#include "tests/support/runs.h"
#include "tests/train/tasks/trained.h"
#include "tests/train/together.h"
#include "train/tasks/task_validation.h"

using namespace cloze;
using Catch::Contains;
using nlohmann::json;

namespace {

/// Texts of words of the first half of the synthetic language, which are `low`, and of the second, which are `high`.
std::string low_and_high(int items, uint64_t seed) {
  auto stream = Rng(seed).stream("texts");
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < items; ++i) {
    const bool is_high = i % 2 == 1;
    const auto length = 2 + stream.below(6);
    for (uint64_t k = 0; k < length; ++k)
      lines += std::string(k > 0 ? " w" : "w") + static_cast<char>('a' + (is_high ? 8 : 0) + stream.below(8));
    lines += is_high ? "\thigh\n" : "\tlow\n";
  }
  return lines;
}

constexpr const char* toy_task =
    "task: toy\nkind: classification\ndata: {train: train.tsv, valid: valid.tsv, test: test.tsv, text: text, "
    "label: label}\n";

/// A pretrained run of a few steps and the parts of a task, each made once.
struct Toy {
  TempDir dir{};
  RunConfig base{};
  Toy() {
    base = tiny_run(dir, 20);
    base.schedule.shape = ConstantSchedule{};
    base.schedule.warmup = 0;
    finetune(base, {.run = dir / "base"});
    set_log_file("");
    dir.write("train.tsv", low_and_high(43, 1));
    dir.write("valid.tsv", low_and_high(11, 2));
    dir.write("test.tsv", low_and_high(14, 3));
  }
};
Toy& toy() {
  static Toy made;
  return made;
}

/// The config of a run that is fine-tuned on a task, whose rows are prepared in `rows`.
RunConfig finetuned(const TempDir& dir, const std::string& yaml, const std::string& rows = "rows") {
  const auto task = open_task(toy().dir.write(rows + ".yaml", yaml));
  const auto tokenizer = Tokenizer::open(toy().base.data.tokens + "/tokenizer");
  auto config = toy().base;
  config.model = decode<RunConfig>(load_run_config(toy().dir / "base/run.yaml")).model;
  const auto made = prepare_task(task, tokenizer, special_token_template(tokenizer, config.model), dir / rows);
  TaskHeadTerms terms;
  const auto kind = task.config.kind;
  if (kind->learns_labels) terms.labels = task.labels.names;
  config.init.from = toy().dir / "base";
  config.objectives = {task_head_objective(kind->head, terms)};
  config.data.tokens = dir / rows;
  config.task = {.name = task.config.task,
                 .file = task.file,
                 .like = "none",
                 .metric = "accuracy",
                 .fingerprint = made.fingerprint};
  config.train.budget = {};
  config.train.budget.epochs = 6;
  config.train.batch_size = 8;
  config.evaluation.every = 6;  // an epoch of 43 items
  config.checkpoint.every = 0;
  return config;
}

/// Tags of words that say what they are.
std::string tags_task() {
  std::string sentences;
  for (int i = 0; i < 24; ++i) {
    const auto low = static_cast<char>('a' + i % 8), high = static_cast<char>('i' + i % 8);
    sentences += concat("w", low, " LOW\nw", high, " HIGH\nw", low, " LOW\n\n");
  }
  toy().dir.write("tags.conll", sentences);
  return "task: toy\nkind: tagging\ndata: {train: tags.conll, valid: tags.conll, test: tags.conll}\n";
}

/// Texts with the number of their words as a value.
std::string values_task() {
  std::string values = "text\tvalue\n";
  for (int i = 0; i < 23; ++i) {
    std::string text = "wa";
    for (int k = 0; k < i % 4; ++k) text += concat(" w", static_cast<char>('b' + k));
    values += concat(text, "\t", 1 + i % 4, "\n");
  }
  toy().dir.write("numbers.tsv", values);
  return "task: toy\nkind: regression\nscale: [1, 4]\ndata: {train: numbers.tsv, valid: numbers.tsv, "
         "test: numbers.tsv, text: text, label: value}\n";
}

/// Texts with none, one or both of two labels, which are those of their words.
std::string sets_task() {
  const std::vector<std::string> kinds{"wa wc\tlow", "wi\thigh", "wb wj wk\tlow, high", "wp wp\t"};
  std::string sets = "text\tlabels\n";
  for (size_t i = 0; i < 23; ++i) sets += kinds[i % kinds.size()] + "\n";
  toy().dir.write("sets.tsv", sets);
  return "task: toy\nkind: multilabel\ndata: {train: sets.tsv, valid: sets.tsv, test: sets.tsv, text: text, "
         "label: labels}\n";
}

/// Questions whose answer is the one word of the second half of the language; every third text has several rows.
std::string answers_task() {
  std::string questions;
  for (int i = 0; i < 23; ++i) {
    std::string text;
    for (int k = 0; k < (i % 3 == 0 ? 60 : 4 + i % 5); ++k) text += concat("w", static_cast<char>('a' + k % 8), " ");
    const auto answer = concat("w", static_cast<char>('i' + i % 8));
    const json span{{"text", answer}, {"start", text.size()}};
    questions += json{{"q", "wa"}, {"c", text + answer}, {"a", json::array({span})}}.dump() + "\n";
  }
  toy().dir.write("questions.jsonl", questions);
  return "task: toy\nkind: spans\ndata: {train: questions.jsonl, valid: questions.jsonl, test: questions.jsonl, "
         "text: q, second: c, answers: a}\n";
}

/// Two candidates, of which the word of the first half of the language is right.
std::string choice_task() {
  std::string choices;
  for (int i = 0; i < 24; ++i) {
    const auto low = static_cast<char>('a' + i % 8), high = static_cast<char>('i' + i % 8);
    const bool second = i % 2 == 1;
    choices += json{{"text", "wa"},
                    {"one", concat("w", second ? low : high)},
                    {"two", concat("w", second ? high : low)},
                    {"label", second ? "1" : "0"}}
                   .dump() +
               "\n";
  }
  toy().dir.write("choice.jsonl", choices);
  return "task: toy\nkind: choice\ndata: {train: choice.jsonl, valid: choice.jsonl, test: choice.jsonl, text: text, "
         "candidates: [one, two], label: label}\n";
}

json summary_of_run(const std::string& run) { return json::parse(read_file(run + "/summary.json")); }

/// The valid scores of a run, by step.
std::map<int64_t, double> valid_accuracies(const std::string& run) {
  std::map<int64_t, double> found;
  for (const auto& row : metrics(run))
    if (row.contains("held_out")) found[row["step"]] = row["suites"]["toy-valid"]["accuracy"]["value"];
  return found;
}

}  // namespace

TEST_CASE("a separable task is learned, and its test part judged with the first of the best steps", "[train][tasks]") {
  const TempDir dir;
  const auto config = finetuned(dir, toy_task);
  const auto report = finetune(config, {.run = dir / "run"});
  CHECK(report.steps == 36);
  const auto valid = valid_accuracies(dir / "run");
  REQUIRE(valid.size() == 6);
  CHECK(valid.at(36) == 1);
  const auto first = std::find_if(valid.begin(), valid.end(), [](const auto& one) { return one.second == 1; });
  CHECK(report.best_step == first->first);
  CHECK(report.task["learned"] == true);
  CHECK(report.task["floor"]["name"] == "majority");
  CHECK(report.task["floor"]["value"].get<double>() == Approx(6.0 / 11));
  const auto summary = summary_of_run(dir / "run");
  CHECK(summary["task"] == report.task);
  CHECK(summary["suites"]["toy"]["accuracy"]["value"] == 1);
  CHECK(summary["suites"]["toy"]["accuracy"]["count"] == 14);
  CHECK(summary["suites"]["toy"]["accuracy"]["low"].get<double>() < 1);
  std::ifstream lines(dir / "run/predictions.jsonl");
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const auto prediction = json::parse(line);
    CHECK(prediction["item"] == concat("test:", number));
    CHECK(prediction["label"] == (number % 2 == 1 ? "high" : "low"));
  }
  CHECK(number == 14);
  CHECK_THAT(read_file(dir / "run/hardest.md"), Contains("| item | loss | label | predicted | text |"));
  CHECK_THAT(read_file(dir / "run/confusion.svg"), Contains("high"));
  const auto opened = open_run(dir / "run");
  CHECK(opened.config.task.fingerprint == config.task.fingerprint);
  // The held-out loss, which the judge's predictions tell, is that of the rows one by one.
  const auto last = open_run(dir / "run/step-00000036");
  const auto rows = read_prepared_split(config.data.tokens, "valid").rows;
  const auto setting = labelled_setting(last.config.model, last.config.objectives);
  const at::NoGradGuard no_grad;
  double sum = 0, squares = 0, correct = 0;
  for (const auto& row : rows) {
    const auto part = last.network->losses(labelled_batch(setting, {&row}), 0).at(0);
    const double one = part.sum.item<double>();
    sum += one;
    squares += one * one;
    correct += static_cast<double>(part.correct());
  }
  const auto& loss = report.held_out.at(0);
  const auto n = static_cast<double>(rows.size());
  CHECK(loss.name == short_form(standard_form(config.objectives.at(0))));
  CHECK(loss.count == std::ssize(rows));
  CHECK(*loss.accuracy == Approx(correct / n));
  CHECK(loss.loss == Approx(sum / n).margin(0.01));  // that of the run may be in bf16
  CHECK(*loss.standard_error == Approx(std::sqrt((squares - sum * sum / n) / n / (n - 1))).margin(0.01));
  CHECK(opened.state.step == report.best_step);
}

TEST_CASE("a network that diverged has no figure and no loss, and its step cannot be the best", "[train][tasks]") {
  const TempDir dir;
  const auto config = finetuned(dir, toy_task);
  Network network(config.model, config.objectives);
  {
    const at::NoGradGuard no_gradients;
    for (const auto& [name, param] : collect_params(network)) param.value().fill_(std::nan(""));
  }
  TaskValidation validation(config);
  validation.judge(network);
  CHECK(std::isnan(validation.cost()));
  CHECK(std::isnan(validation.loss()));
  json row;
  validation.add_to(row);
  REQUIRE(row["suites"]["toy-valid"].size() == 1);
  CHECK(row["suites"]["toy-valid"]["accuracy"]["value"].is_null());
  PretrainReport report;
  validation.conclude(validation.cost(), report);
  CHECK(report.task["learned"] == false);
  CHECK_THAT(validation.text(), Contains("toy-valid accuracy -"));
}

TEST_CASE("a run that diverged ends without a figure on its test part, and so it does when it is resumed",
          "[train][tasks]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.train.budget.epochs = 2;
  config.train.on_nonfinite = OnNonFinite::skip;
  config.optimizer.learning_rate = 1000;
  config.optimizer.weight_decay = 10;  // each step makes the weights 10,000 times as large
  config.evaluation.every = 0;
  set_log_level(LogLevel::normal);
  const auto report = finetune(config, {.run = dir / "run"});
  set_log_level(LogLevel::quiet);
  CHECK(report.best_step == 0);
  CHECK_THAT(read_file(dir / "run/log.txt"),
             Contains("lower optimizer.learning_rate, with which its last predictions are not finite"));
  const auto task = read_task_summary(dir / "run");
  CHECK(task["best"].is_null());
  CHECK(task["learned"] == false);
  CHECK(task["test"]["accuracy"]["value"].is_null());
  CHECK(task["test"]["accuracy"]["count"] == 14);
  finetune(config, {.run = dir / "run", .resume = true});
  CHECK(read_task_summary(dir / "run") == task);
}

TEST_CASE("an epoch has every item once, whatever the batches, and none of another", "[train][tasks]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.train.budget.epochs = 1;
  config.train.batch_size = 6;
  config.train.accumulation = 3;  // of the last step seven items are left for three batches
  const auto report = finetune(config, {.run = dir / "run"});
  CHECK(report.steps == 3);
  CHECK(summary_of_run(dir / "run")["epochs"] == 1);
  int64_t items = 0;
  for (const auto& row : metrics(dir / "run"))
    if (row.contains("classification")) items += row["classification"]["count"].get<int64_t>();
  CHECK(items == 43);
}

TEST_CASE("a fine-tuned run resumes to the same bits within an epoch and at its end", "[train][tasks][resume]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.train.budget = {};
  config.train.budget.steps = 14;
  finetune(config, {.run = dir / "whole"});
  const int64_t at = GENERATE(1, 5, 6, 9);
  auto half = config;
  half.train.budget.steps = at;
  const auto parts = dir / concat("parts", at);
  finetune(half, {.run = parts});
  finetune(config, {.run = parts, .resume = true});
  for (const auto* file : {"weights.safetensors", "optimizer.safetensors"})
    CHECK(same_files(dir / (std::string("whole/step-00000014/") + file), parts + "/step-00000014/" + file));
}

TEST_CASE("frozen layers keep the weights of the first run, and the others are trained", "[train][tasks]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.freeze.layers = 1;
  config.train.budget.epochs = 1;
  finetune(config, {.run = dir / "run"});
  const auto before = collect_params(*open_run(toy().dir / "base").network),
             after = collect_params(*open_run(dir / "run").network);
  int64_t kept = 0, moved = 0;
  for (const auto& [name, param] : after)
    for (const auto& [own, old] : before) {
      if (name != own) continue;
      const bool is_frozen = name.starts_with("backbone.embeddings.") || name.starts_with("backbone.stack.0.");
      INFO(name);
      CHECK(at::equal(param.value(), old.value()) == is_frozen);
      ++(is_frozen ? kept : moved);
    }
  CHECK(kept > 0);
  CHECK(moved > 0);
  const auto refused = [&](const RunConfig& wrong, const std::string& sentence) {
    CHECK_THROWS_WITH(validate(wrong), Contains(sentence));
  };
  auto wrong = config;
  wrong.freeze.layers = 9;
  refused(wrong, "freeze.layers is 9, and the network has 1 layer; lower it");
  wrong = config;
  wrong.init.probe = true;
  refused(wrong, "freeze.layers is given, and init.probe keeps all layers as they are; leave one of them out");
  wrong = config;
  wrong.init.from.clear();
  refused(wrong, "freeze.layers keeps the weights of another run; name it with init.from");
  AlbertConfig albert;
  albert.num_hidden_layers = 2;
  wrong = config;
  wrong.model = albert;
  wrong.optimizer.layer_decay = 0.8;
  refused(wrong,
          "freeze.layers is 1, and layers of albert share weights with layers above them; set it to 0 for the "
          "embeddings alone, or use init.probe");
  refused(wrong,
          "optimizer.layer_decay is 0.8, and layers of albert share weights, which have no depth of their own; "
          "set it to 1");
}

TEST_CASE("a fine-tuned run that was killed and resumed equals an uninterrupted one", "[train][tasks][resume]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.train.budget.epochs = 50;
  config.checkpoint.every = 25;
  check_killed_run(config, dir, "step-00000050", "step-00000300", {"weights.safetensors", "optimizer.safetensors"});
  CHECK(same_files(dir / "a/predictions.jsonl", dir / "b/predictions.jsonl"));
  CHECK(summary_of_run(dir / "a")["best_step"] == summary_of_run(dir / "b")["best_step"]);
}

TEST_CASE("the same bits for any number of workers and threads", "[train][tasks]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.train.budget.epochs = 2;
  finetune(config, {.run = dir / "a"});
  config.train.workers = 3;
  config.train.threads = 1;
  finetune(config, {.run = dir / "b"});
  CHECK(same_files(dir / "a/step-00000012/weights.safetensors", dir / "b/step-00000012/weights.safetensors"));
}

TEST_CASE("the same bytes on 1, 2 and 3 processes, with steps at the end of an epoch that leave some without a batch",
          "[train][tasks][processes]") {
  const TempDir dir;
  const std::string runs = dir / "runs";
  std::filesystem::create_directory(runs);
  const std::map<std::string, std::string> tasks{{"labels", toy_task},      {"tags", tags_task()},
                                                 {"choice", choice_task()}, {"values", values_task()},
                                                 {"sets", sets_task()},     {"answers", answers_task()}};
  for (const auto& [name, task] : tasks) {
    auto config = finetuned(dir, task, name);
    if (name == "values") config.task.metric = "pearson";
    if (name == "answers") config.task.metric = "f1";
    config.train.budget = {.steps = 5};
    config.train.batch_size = 7;
    config.train.accumulation = 3;
    config.train.parts = 3;
    config.train.threads = 1;
    config.evaluation.every = 2;
    write_config(config, runs, name);
  }
  check_processes(runs, {2, 3}, "step-00000005");
}

TEST_CASE("a run whose figure does not leave that of the majority class is marked", "[train][tasks]") {
  const TempDir dir;
  toy().dir.write("equal.tsv", "text\tlabel\nwa wb\tlow\nwa wb\thigh\nwa wb\tlow\nwa wb\thigh\n");
  auto config = finetuned(dir,
                          "task: toy\nkind: classification\ndata: {train: train.tsv, valid: equal.tsv, test: test.tsv, "
                          "text: text, label: label}\n");
  config.train.budget.epochs = 1;
  set_log_level(LogLevel::normal);
  finetune(config, {.run = dir / "run"});
  set_log_level(LogLevel::quiet);
  CHECK_THAT(read_file(dir / "run/log.txt"), Contains("did not learn: its accuracy on the valid part of toy is not "
                                                      "shown to be better than that of majority"));
  CHECK(summary_of_run(dir / "run")["task"]["learned"] == false);
}

TEST_CASE("patience counts by the figure of the task", "[train][tasks]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.train.budget.epochs = 100;
  config.evaluation.patience = 2;
  const auto report = finetune(config, {.run = dir / "run"});
  CHECK(report.stopped_by == "patience");
  const auto valid = valid_accuracies(dir / "run");
  CHECK(report.best_step == report.steps - 2 * 6);
  CHECK(valid.rbegin()->second <= valid.at(report.best_step));
}

TEST_CASE("a figure without a value is never the best, and the values of a regression are neither right nor wrong",
          "[train][tasks]") {
  const TempDir dir;
  toy().dir.write("values.tsv", "text\tvalue\nwa\t1\nwb\t2\nwc wd\t4\nwe\t5\n");
  toy().dir.write("constant.tsv", "text\tvalue\nwa\t3\nwb\t3\n");
  auto config = finetuned(dir,
                          "task: toy\nkind: regression\nscale: [1, 5]\ndata: {train: values.tsv, valid: constant.tsv, "
                          "test: values.tsv, text: text, label: value}\n",
                          "values");
  config.task.metric = "pearson";  // of a constant it is undefined
  config.train.budget.epochs = 3;
  config.evaluation.every = 1;
  const auto report = finetune(config, {.run = dir / "run"});
  CHECK(report.best_step == 0);
  const auto task = summary_of_run(dir / "run")["task"];
  CHECK(task["best"].is_null());
  CHECK(task["learned"] == false);
  CHECK_FALSE(report.held_out.at(0).accuracy.has_value());
  for (const auto& row : metrics(dir / "run")) {
    if (row.contains("held_out")) CHECK_FALSE(row["held_out"].contains("regression_accuracy"));
    if (row.contains("regression")) CHECK_FALSE(row["regression"].contains("accuracy"));
  }
}

TEST_CASE("the head, the order of items and dropout depend each on their own stream", "[train][tasks][streams]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.train.budget = {};
  config.train.budget.steps = 1;
  config.optimizer.learning_rate = 0;
  struct Seen {
    Tensor head{}, ids{};
    double loss = 0;
  };
  const auto seen = [&](const char* name, int64_t SeedsConfig::* stream) {
    auto other = config;
    if (stream) other.train.seeds.*stream = 9;
    finetune(other, {.run = dir / name});
    Seen found{.loss = metrics(dir / name).at(0).at("loss").get<double>()};
    for (const auto& [own, param] : collect_params(*open_run(dir / name).network))
      if (own == "classification.output.weight") found.head = param.value().detach();
    const TokenStore store(other.data.tokens, "train");
    found.ids = rows_of_run(other, store).batch(0, 8).input_ids;
    return found;
  };
  const auto base = seen("base", nullptr), head = seen("head", &SeedsConfig::init),
             order = seen("order", &SeedsConfig::order), dropout = seen("dropout", &SeedsConfig::dropout),
             masking = seen("masking", &SeedsConfig::masking);
  CHECK_FALSE(at::equal(head.head, base.head));
  CHECK(at::equal(head.ids, base.ids));
  CHECK(at::equal(order.head, base.head));
  CHECK_FALSE(at::equal(order.ids, base.ids));
  CHECK(at::equal(dropout.head, base.head));
  CHECK(at::equal(dropout.ids, base.ids));
  CHECK(dropout.loss != base.loss);
  CHECK(masking.loss == base.loss);
}

TEST_CASE("a head is drawn where its labels are others, and copied where they are the same", "[train][tasks]") {
  const TempDir dir;
  auto config = finetuned(dir, toy_task);
  config.train.budget.epochs = 1;
  finetune(config, {.run = dir / "first"});
  const auto init = [&](const std::string& run) { return json::parse(read_file(dir / (run + "/init.json"))); };
  const auto has = [](const json& list, const std::string& name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const json& one) { return one.get<std::string>().starts_with(name); });
  };
  CHECK(has(init("first")["fresh"], "classification.output.weight"));
  CHECK(has(init("first")["copied"], "backbone.pooler."));  // of nsp
  config.init.from = dir / "first";
  finetune(config, {.run = dir / "same"});
  CHECK(has(init("same")["copied"], "classification.output.weight"));
  toy().dir.write("three.tsv", "text\tlabel\nwa\tx\nwb\ty\nwc\tz\nwd\tx\n");
  auto other = finetuned(dir,
                         "task: toy\nkind: classification\ndata: {train: three.tsv, valid: three.tsv, test: three.tsv, "
                         "text: text, label: label}\n",
                         "three");
  other.init.from = dir / "first";
  other.train.budget.epochs = 1;
  finetune(other, {.run = dir / "other"});
  CHECK(has(init("other")["fresh"], "classification.output.weight"));
  CHECK(has(init("other")["unused"], "classification.output.weight"));
  CHECK_FALSE(has(init("other")["partly"], "classification"));
  CHECK(has(init("other")["copied"], "backbone.pooler."));
}

TEST_CASE("tags and choices are learned, and their held-out losses are those of their items", "[train][tasks]") {
  const TempDir dir;
  auto tags = finetuned(dir, tags_task(), "tags");
  tags.train.budget.epochs = 20;
  const auto tagged = finetune(tags, {.run = dir / "tagged"});
  CHECK(tagged.task["test"]["accuracy"]["value"] == 1);
  CHECK(tagged.held_out.at(0).count == 72);
  auto choice = finetuned(dir, choice_task(), "choice");
  choice.train.budget.epochs = 20;
  const auto chosen = finetune(choice, {.run = dir / "chosen"});
  CHECK(chosen.held_out.at(0).count == 24);
  CHECK(chosen.held_out.at(0).sequences.size() == 24);
  CHECK(chosen.task["test"]["accuracy"]["value"].get<double>() > 0.9);
}

TEST_CASE("a run of a task without its head, its figure or its rows is refused before the first step",
          "[train][tasks]") {
  const TempDir dir;
  const auto config = finetuned(dir, toy_task);
  const auto refused = [&](const RunConfig& wrong, const std::string& sentence) {
    CHECK_THROWS_WITH(finetune(wrong, {.run = dir / "refused"}), Contains(sentence));
    CHECK_FALSE(std::filesystem::exists(dir / "refused/metrics.jsonl"));
  };
  auto wrong = config;
  wrong.objectives = toy().base.objectives;
  refused(wrong, "task.name is toy, and objectives have no head of a task; leave them as `cloze finetune` makes them");
  wrong = config;
  wrong.train.phases = {{.from = 0.5, .max_seq_length = 16}};
  refused(wrong, "train.phases cut the text anew, and the rows of a task are as they were prepared; remove the phases");
  wrong = config;
  wrong.task.metric = "f7";
  refused(wrong, "task.metric is f7, and toy has no such figure; leave it as `cloze finetune` makes it");
  wrong = config;
  wrong.data.tokens = toy().base.data.tokens;
  refused(wrong, "objective classification reads the rows of a task, and " + toy().base.data.tokens +
                     " has none; fine-tune with `cloze finetune RUN TASK.yaml`");
}

TEST_CASE("on a task a run learns from one that was fine-tuned on it, of any kind of head", "[train][task][distil]") {
  TempDir dir;
  const std::vector<std::pair<std::string, std::string>> tasks{
      {"labels", toy_task}, {"tags", tags_task()}, {"answers", answers_task()}, {"choices", choice_task()}};
  for (const auto& [name, yaml] : tasks) {
    INFO(name);
    auto config = finetuned(dir, yaml, name);
    config.train.budget.epochs = 2;
    if (name == "answers") config.task.metric = "f1";
    finetune(config, {.run = dir / (name + "-teacher")});
    auto taught = config;
    taught.train.budget.epochs = 6;
    taught.distil.teacher = dir / (name + "-teacher");
    taught.distil.temperature = 2;
    as_kind(taught.objectives[0]).weight = 0;  // what it learns is from the teacher
    taught.train.seed = 5;
    const auto report = finetune(taught, {.run = dir / (name + "-student")});
    const auto rows = metrics(dir / (name + "-student"));
    double first = std::nan(""), last = first;
    for (const auto& row : rows) {
      if (!row.contains("distil")) continue;
      if (std::isnan(first)) first = row.at("distil").at("loss");
      last = row.at("distil").at("loss");
    }
    CHECK(last < first);
    CHECK(report.held_out.size() == 1);
    CHECK(open_run(dir / (name + "-student")).network->objectives.size() == 1);
  }
  auto config = finetuned(dir, toy_task, "labels");
  config.distil.teacher = dir / "tags-teacher";
  CHECK_THROWS_WITH(finetune(config, {.run = dir / "refused"}),
                    Contains("tags-teacher has no head for classification, so that it has no logits to learn; "
                             "fine-tune it on the task first, or set it to 0"));
  auto others = finetuned(dir, toy_task, "labels");
  std::swap(as<ClassificationConfig>(others.objectives[0])->labels[0],
            as<ClassificationConfig>(others.objectives[0])->labels[1]);
  others.distil.teacher = dir / "labels-teacher";
  CHECK_THROWS_WITH(finetune(others, {.run = dir / "refused"}),
                    Contains("labels-teacher: has the labels high, low, and this run low, high, in this order; "
                             "fine-tune the teacher on the same task"));
  auto values = finetuned(dir, values_task(), "values");
  values.distil.teacher = dir / "labels-teacher";
  CHECK_THROWS_WITH(finetune(values, {.run = dir / "refused"}),
                    Contains("distil.logits compares distributions, and regression has none; set it to 0"));
}

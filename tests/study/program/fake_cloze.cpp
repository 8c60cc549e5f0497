// Stands for `cloze pretrain CONFIG --run DIR [--resume]`, `cloze finetune RUN TASK --run DIR [--like NAME] [--set
// ...]` and `cloze pretrain --run DIR --resume` of a fine-tuned run in tests of studies: made-up losses and answers in
// no time.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/random.h"
#include "run/config/config.h"
#include "run/config/load_config.h"
#include "run/records/held_out_record.h"
#include "run/run_files.h"
#include "run/config/evaluation_protocol.h"
#include "run/records/suite_record.h"
#include "run/records/suite_units.h"
#include "core/fingerprint.h"
#include "study/statistics/statistics.h"
#include "tasks/rows/prepared_task.h"

using namespace cloze;
using nlohmann::json;

namespace {

/// Notes a start, and ends the first one of a run that is to be killed.
void begin(const std::string& run, bool is_resumed, bool is_killed) {
  std::ofstream(run + "/starts", std::ios::app) << (is_resumed ? "resumed" : "started") << "\n";
  const bool first = !std::filesystem::exists(run + "/killed");
  if (!is_killed || !first) return;
  std::ofstream(run + "/killed") << "once\n";
  raise(SIGKILL);
}

void write_held_out(const std::string& run, int64_t steps, const std::string& measured, const json& losses) {
  json file{{"step", steps}, {"measured", measured}, {"losses", losses}, {"xxh3", hash_hex(losses.dump())}};
  file["seal"] = seal_of(file.get<HeldOutRecord>());
  std::ofstream(run + "/held_out.json") << file.dump();
}

/// Writes a checkpoint without weights, whose manifest has their fingerprint; returns its name.
std::string write_checkpoint(const std::string& run, int64_t step, const std::string& weights) {
  const auto digits = std::to_string(step), name = "step-" + std::string(8 - digits.size(), '0') + digits;
  std::filesystem::create_directories(run + "/" + name);
  std::ofstream(run + "/" + name + "/state.json") << "{}";
  std::ofstream(run + "/" + name + "/manifest.json") << json{{"files", {{"weights.safetensors", {{"xxh3", weights}}}}}};
  return name;
}

/// The run that a fine-tuning begins with a checkpoint of.
std::string run_of(const std::string& checkpoint) {
  const auto path = std::filesystem::path(checkpoint);
  return is_step_name(path.filename().string()) ? path.parent_path().string() : checkpoint;
}

int pretrain(const std::string& config_file, const std::string& run, bool is_resumed) {
  const auto config = decode<RunConfig>(ConfigTree::load(config_file));
  const double rate = config.optimizer.learning_rate;
  std::filesystem::create_directories(run);
  std::ofstream(run + "/run.yaml") << to_yaml(config);
  begin(run, is_resumed, rate == 0.25);
  if (rate == 0.5) {
    std::fprintf(stderr, "cloze: error: the loss is not finite at step 3\n");
    return 1;
  }
  if (rate == 0.125) usleep(700'000);
  auto stream = Rng(static_cast<uint64_t>(config.train.seed)).stream("loss");
  double of_seed = 0;
  for (const auto& [random, sd] : {std::pair{RandomStream::init, 0.02}, std::pair{RandomStream::order, 0.01},
                                   std::pair{RandomStream::dropout, 0.001}})
    of_seed += sd * rng_of(config.train, random).stream(name_of(random)).normal();
  const auto& budget = config.train.budget;
  const int64_t steps = budget.steps > 0 ? budget.steps : std::max<int64_t>(1, budget.tokens / 100);
  const double decay = config.optimizer.weight_decay - 0.03;
  const double of_config = rate + 100 * decay * decay + 1 / static_cast<double>(steps);
  std::vector<double> sums, counts;
  const auto examples = std::min<int64_t>(config.evaluation.sequences, 1024);  // the held-out text has no more
  for (int64_t e = 0; e < examples; ++e) {
    sums.push_back(rate == 0.75 ? NAN : 10 * (3 + of_seed + of_config + 0.1 * stream.normal()));
    counts.push_back(10);
  }
  const double total = ExampleLosses{sums, counts}.value();
  std::ofstream(run + "/best") << write_checkpoint(run, steps - 1, "of the best step") << "\n";
  write_checkpoint(run, steps, hash_hex(std::to_string(total)));
  const int64_t points = std::clamp<int64_t>(config.evaluation.points, 1, steps);
  std::ofstream metrics(run + "/metrics.jsonl");
  for (int64_t i = 1; i <= points; ++i) {
    const int64_t step = i * steps / points;
    const double fraction = static_cast<double>(step) / static_cast<double>(steps);
    const json usage{{"step", step},
                     {"tokens", 100 * step},
                     {"time", {{"seconds", 0.3 * static_cast<double>(step)}, {"budget_share", fraction}}}};
    auto held_out = usage;
    held_out["held_out_loss"] = total + 4 * (1 - fraction) * (1 - fraction);
    metrics << usage << "\n" << held_out << "\n";
  }
  SuiteRecord record{.step = steps};
  for (const auto& path : config.evaluation.suites) {
    auto& score = record.suites[suite_name(path)]["accuracy"];
    score.floor = 0.5;
    score.items = 40'000;
    for (int cluster = 0; cluster < 40; ++cluster) {
      score.sum.push_back(0.6 + rate / 2 + of_seed / 10 + 0.001 * stream.normal());
      score.count.push_back(1);
    }
    score.value = ExampleLosses{score.sum, score.count}.value();
    record.suites[suite_name(path)]["spearman"].value = 0.3 + of_seed;
    json row{{"step", steps}, {"tokens", 100 * steps}};
    row["suites"][suite_name(path)]["accuracy"]["value"] = score.value;
    metrics << row << "\n";
  }
  record.xxh3 = hash_hex(json_text(json(record.suites)));
  if (!record.suites.empty()) std::ofstream(run + "/suites.json") << json_text(json(record));
  metrics.close();
  const std::vector<uint64_t> bytes(sums.size(), rate == 0.03125 ? 50 : 40);
  std::vector<uint64_t> documents;  // of two examples each
  for (uint64_t e = 0; e < sums.size(); ++e) documents.push_back(e / 2);
  json losses;
  for (const auto& objective : config.evaluation.objectives)
    losses[short_form(objective)] = {{"sum", sums}, {"count", counts}, {"bytes", bytes}, {"document", documents}};
  if (losses.is_null()) losses["mlm"] = {{"sum", sums}, {"count", counts}, {"bytes", bytes}, {"document", documents}};
  const std::string tokens = rate == 0.0625 ? "of another tokenizer" : "of one tokenizer";
  write_held_out(run, steps, "made up, tokens " + tokens, losses);
  json suites = json::object();
  for (const auto& [suite, scores] : record.suites)
    for (const auto& [metric, score] : scores) suites[suite][metric]["value"] = score.value;
  json held_out;
  for (const auto& [name, part] : losses.items()) held_out[name]["loss"] = total;
  std::ofstream(run + "/summary.json") << json{{"suites", suites}, {"held_out", held_out}}.dump();
  return 0;
}

/// Whether a test has put a file of this name into the folder of a pretrained run: `fails on dogs`.
bool is_marked(const RunConfig& config, const std::string& mark) {
  return std::filesystem::exists(run_of(config.init.from) + "/" + mark + " " + config.task.name);
}

/// The answers of a fine-tuned run, right for about this share of the items, or always the first label.
std::string answers_of(const Task& task, double right, Stream draws) {
  std::string lines;
  for (size_t i = 0; i < task.test.items.size(); ++i) {
    const auto gold = task.test.items[i].gold.label;
    const auto label = right == 0 ? 0 : draws.uniform() < right ? gold : 1 - gold;
    lines += json{{"item", i}, {"label", task.labels.names[static_cast<size_t>(label)]}}.dump() + "\n";
  }
  return lines;
}

/// The answers of a fine-tuned run that diverged.
std::string no_numbers(const Task& task) {
  std::string lines;
  for (size_t i = 0; i < task.test.items.size(); ++i)
    lines += json{{"item", i}, {"label", task.labels.names[0]}, {"probabilities", {nullptr, nullptr}}}.dump() + "\n";
  return lines;
}

/// The share of items that a run has right: arms of batches of 8 are best at a rate of 1e-4, others at 1e-3.
double share_right(const RunConfig& config) {
  if (is_marked(config, "learns nothing of")) return 0;
  const double best = config.train.batch_size == 8 ? 1e-4 : 1e-3;
  return 0.9 - 0.1 * std::abs(std::log10(config.optimizer.learning_rate / best));
}

int finetune(const std::string& run, bool is_resumed) {
  const auto config = decode<RunConfig>(ConfigTree::load(run + "/run.yaml"));
  begin(run, is_resumed, is_marked(config, "is killed on"));
  if (is_marked(config, "fails on")) {
    std::fprintf(stderr, "cloze: error: the task is too hard\n");
    return 1;
  }
  const auto task = open_task(config.task.file);
  std::filesystem::create_directories(run + "/vocab");
  std::ofstream(run + "/vocab/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  const auto tokenizer = Tokenizer::open(run + "/vocab");
  prepare_task(task, tokenizer, special_token_template(tokenizer), run + "/" + task_folder);
  const double right = share_right(config);
  auto stream = Rng(static_cast<uint64_t>(config.train.seed)).stream(config.init.from);
  const double best = right == 0 ? 0.5 : right + 0.001 * stream.normal();
  const auto answers = answers_of(task, right, stream);
  const bool diverges = is_marked(config, "diverges on");
  std::ofstream(run + "/predictions.jsonl") << (diverges ? no_numbers(task) : answers);
  json test;
  test["accuracy"]["value"] = right == 0 ? 0.5 : right;
  json judged{{"metric", "accuracy"}, {"best", best}, {"learned", right > 0 && !diverges}, {"test", test}};
  if (diverges) judged["best"] = judged["test"]["accuracy"]["value"] = json();
  std::ofstream(run + "/summary.json") << json{{"task", judged}}.dump();
  std::ofstream(run + "/metrics.jsonl")
      << json{{"step", 7}, {"tokens", 700}, {"flops", 7e9}, {"time", {{"seconds", 2}}}, {"held_out_loss", 0.5}} << "\n";
  json losses;
  losses[config.task.name] = {{"sum", {1.0}}, {"count", {2.0}}};
  write_held_out(run, 7, "made up, a task", losses);
  return 0;
}

/// Writes the config of a fine-tuning before its first step.
int start_finetuning(const std::vector<std::string>& arguments) {
  const auto &source = arguments[0], &file = arguments[1], &run = arguments[3];
  std::vector<std::string> set;
  for (size_t i = 4; i + 1 < arguments.size(); ++i)
    if (arguments[i] == "--set") set.push_back(arguments[i + 1]);
  auto config = decode<RunConfig>(ConfigTree::load(run_of(source) + "/run.yaml"));
  config.init.from = source;
  config.task.name = read_task_config(file).task;
  config.task.file = file;
  config = decode<RunConfig>(ConfigTree::parse(to_yaml(config), "the run", set));
  std::filesystem::create_directories(run);
  std::ofstream(run + "/run.yaml") << to_yaml(config);
  return finetune(run, false);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string verb = argv[1], first = argv[2];
  if (verb == "finetune") return start_finetuning({argv + 2, argv + argc});
  return first == "--run" ? finetune(argv[3], true) : pretrain(first, argv[4], argc > 5);
}

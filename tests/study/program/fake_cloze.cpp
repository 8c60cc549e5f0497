// Stands for `cloze pretrain CONFIG --run DIR [--resume]` in tests of studies: made-up losses in no time.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/random.h"
#include "run/config.h"
#include "run/config_io.h"
#include "run/objective_short_form.h"
#include "run/suite_record.h"
#include "run/suite_units.h"
#include "core/fingerprint.h"
#include "study/statistics.h"

using namespace cloze;
using nlohmann::json;

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string config_file = argv[2], run = argv[4];
  const auto config = decode<RunConfig>(ConfigTree::load(config_file));
  const double rate = config.optimizer.learning_rate;
  std::filesystem::create_directories(run);
  std::ofstream(run + "/run.yaml") << to_yaml(config);
  std::ofstream(run + "/starts", std::ios::app) << (argc > 5 ? "resumed" : "started") << "\n";
  if (rate == 0.5) {
    std::fprintf(stderr, "cloze: error: the loss is not finite at step 3\n");
    return 1;
  }
  const bool first = !std::filesystem::exists(run + "/killed");
  if (rate == 0.25 && first) {
    std::ofstream(run + "/killed") << "once\n";
    raise(SIGKILL);
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
  const int64_t points = std::clamp<int64_t>(config.evaluation.points, 1, steps);
  std::ofstream metrics(run + "/metrics.jsonl");
  for (int64_t i = 1; i <= points; ++i) {
    const int64_t step = i * steps / points;
    const double share = static_cast<double>(step) / static_cast<double>(steps);
    const json usage{{"step", step},
                     {"tokens", 100 * step},
                     {"time", {{"seconds", 0.3 * static_cast<double>(step)}, {"budget_share", share}}}};
    auto held_out = usage;
    held_out["held_out_loss"] = total + 4 * (1 - share) * (1 - share);
    metrics << usage << "\n" << held_out << "\n";
  }
  SuiteRecord record{.step = steps};
  for (const auto& path : config.evaluation.suites) {
    auto& figure = record.suites[suite_name(path)]["accuracy"];
    figure.floor = 0.5;
    for (int cluster = 0; cluster < 40; ++cluster) {
      figure.sum.push_back(0.6 + rate / 2 + of_seed / 10 + 0.001 * stream.normal());
      figure.count.push_back(1);
    }
    figure.value = ExampleLosses{figure.sum, figure.count}.value();
    record.suites[suite_name(path)]["spearman"].value = 0.3 + of_seed;
    json row{{"step", steps}, {"tokens", 100 * steps}};
    row["suites"][suite_name(path)]["accuracy"]["value"] = figure.value;
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
  std::ofstream(run + "/held_out.json") << json{
      {"step", steps},
      {"measured", "made up, tokens " + tokens},
      {"losses", losses},
      {"xxh3", hash_hex(losses.dump())}}.dump();
  return 0;
}

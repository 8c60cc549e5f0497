#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "core/contains.h"
#include "core/core_time.h"
#include "core/file.h"
#include "core/log.h"
#include "core/report/table.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/tokenizer.h"
#include "finetune/finetune_config.h"
#include "models/families/model_config.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "study/costs/costs.h"
#include "study/search/task_plan.h"
#include "study/search/tuning.h"
#include "tasks/scores/task_metric.h"
#include "tasks/rows/special_token_template.h"
#include "tasks/task.h"

namespace cloze {

namespace {

/// Items of a part that stand for all of them.
TaskSplit sample_of(const TaskSplit& split) {
  constexpr size_t most = 1000;
  const auto items = split.items.size();
  const auto count = std::min(items, most);
  TaskSplit sample{.name = split.name, .file = split.file};
  for (size_t i = 0; i < count; ++i) sample.items.push_back(split.items[i * items / count]);
  return sample;
}

/// The rows of a task for a network, of which those of some items are made.
struct SampledRows {
  std::string folder{};                   ///< of those
  PreparedTask prepared{};                ///< with the number of examples of all items
  double train = 0, valid = 0, test = 0;  ///< tokens of all rows
  double seconds = 0;                     ///< in which all are made
};

SampledRows sample_rows(const Task& task, const Tokenizer& tokenizer, const ModelConfig& model,
                        const std::string& folder) {
  const Task sample{.config = task.config,
                    .file = task.file,
                    .labels = task.labels,
                    .train = sample_of(task.train),
                    .valid = sample_of(task.valid),
                    .test = sample_of(task.test)};
  const UndisturbedStopwatch watch;
  SampledRows rows{.folder = folder,
                   .prepared = prepare_task(sample, tokenizer, special_token_template(tokenizer, model), folder)};
  const double seconds = watch.seconds();
  const auto scaled = [](uint64_t examples, double scale) {
    return static_cast<uint64_t>(std::llround(scale * static_cast<double>(examples)));
  };
  double all_items = 0, made_items = 0;
  for (const auto& [name, counts] : rows.prepared.counts) {
    const bool is_train = name == "train", is_valid = name == "valid";
    const auto& split = is_train ? task.train : is_valid ? task.valid : task.test;
    const auto items = static_cast<double>(split.items.size()), made = static_cast<double>(counts.items);
    const double scale = made > 0 ? items / made : 0;
    auto& tokens = is_train ? rows.train : is_valid ? rows.valid : rows.test;
    for (size_t length = 0; length < counts.lengths.size(); ++length)
      tokens += scale * static_cast<double>(length) * static_cast<double>(counts.lengths[length]);
    if (is_train) rows.prepared.train_examples = scaled(rows.prepared.train_examples, scale);
    if (is_valid) rows.prepared.valid_examples = scaled(rows.prepared.valid_examples, scale);
    all_items += items;
    made_items += made;
  }
  rows.seconds = made_items > 0 ? seconds * all_items / made_items : 0;
  return rows;
}

/// A probe whose steps have as many tokens as those of a pass have on average, `steps` of which are a pass.
Probe with_mean_steps(Probe probe, const RunConfig& config, double tokens, double steps) {
  const double factor = tokens / steps / probe.tokens;
  for (auto* of_step : {&probe.seconds, &probe.tokens, &probe.predicted_tokens, &probe.flops}) *of_step *= factor;
  probe.sequences_per_epoch = steps * static_cast<double>(config.train.batch_size * config.train.accumulation);
  return probe;
}

/// The cost of a fine-tuning on rows whose steps are like those of the probe.
FinetuningCost cost_of(const RunConfig& config, const SampledRows& rows, const Probe& probe) {
  const auto pass = static_cast<double>(steps_of_pass(config, static_cast<int64_t>(rows.prepared.train_examples)));
  const auto step = with_mean_steps(probe, config, rows.train, pass);
  FinetuningCost cost{.task = config.task.name, .like = config.task.like};
  cost.steps = cost_of_run(config, step).steps;
  cost.tokens = cost.steps * step.tokens;
  // What is judged between the steps and at the end costs a forward pass, a third of a step's.
  const auto every = static_cast<double>(config.evaluation.every);
  const double times = every > 0 ? std::max(1.0, std::ceil(cost.steps / every)) : 1;
  const double all_tokens = cost.tokens + (times * rows.valid + rows.test) / 3;
  cost.flops = all_tokens * probe.flops / probe.tokens;
  cost.seconds = all_tokens * probe.seconds / probe.tokens + probe.start_seconds + rows.seconds;
  cost.disk_bytes = static_cast<double>(config.checkpoint.keep + 1) * probe.checkpoint_bytes;
  return cost;
}

/// The overrides of fine-tunings with each combination of the values of a search that change what one costs: those of
/// `train`.
std::vector<std::vector<std::string>> overrides_of_search(const FinetuningTerms& terms) {
  AnyKeys tuned;
  std::ranges::copy_if(terms.tune.items, std::back_inserter(tuned.items),
                       [](const auto& key) { return key.first.starts_with("train."); });
  std::vector<std::string> common;
  std::ranges::copy_if(terms.set, std::back_inserter(common),
                       [](const auto& one) { return !one.starts_with("task."); });
  std::vector<std::vector<std::string>> all;
  for (const auto& combination : searched_arms({Arm{}}, tuned, "tasks.tune")) {
    auto& set = all.emplace_back(common);
    for (const auto& [key, value] : combination.keys) set.push_back(key + "=" + one_line(value));
  }
  return all;
}

/// The network of an arm as it is fine-tuned.
struct ArmNetwork {
  ModelConfig model{};
  Tokenizer tokenizer{};
  std::string id{};  ///< the same for arms whose fine-tunings cost the same
};

std::vector<ArmNetwork> networks_of(const Plan& trained) {
  std::map<std::string, Tokenizer> tokenizers;
  std::vector<ArmNetwork> networks;
  for (size_t i = 0; i < trained.arms.size(); ++i) {
    const auto& config = trained.runs[i].config;
    const auto folder = config.data.tokens + "/tokenizer";
    if (!tokenizers.contains(folder)) tokenizers.emplace(folder, Tokenizer::open(folder));
    const auto& tokenizer = tokenizers.at(folder);
    RunConfig alone;
    alone.model = finetuned_model(config.model, tokenizer);
    networks.push_back({alone.model, tokenizer, to_yaml(alone) + tokenizer.fingerprint()});
  }
  return networks;
}

/// The mean of the costs of fine-tunings of one arm on one task.
FinetuningCost mean_cost(const std::vector<FinetuningCost>& costs) {
  auto mean = costs.front();
  mean.steps = mean.tokens = mean.flops = mean.seconds = mean.disk_bytes = 0;
  const auto n = static_cast<double>(costs.size());
  for (const auto& cost : costs) {
    mean.steps += cost.steps / n;
    mean.tokens += cost.tokens / n;
    mean.flops += cost.flops / n;
    mean.seconds += cost.seconds / n;
    mean.disk_bytes += cost.disk_bytes / n;
  }
  return mean;
}

/// The cost of the fine-tunings of a run of an arm, without its name. The task is given the recipe.
FinetuningCost cost_on(Task& task, const FinetuningTerms& terms, const ArmNetwork& network, const std::string& arm,
                       const std::string& run, Prober& prober) {
  auto recipe = take_recipe(task, terms.like, network.model);
  const ScratchFolder scratch;
  const auto rows = sample_rows(task, network.tokenizer, network.model, scratch.path() + "/" + task_folder);
  recipe.init.from = run;
  recipe.data.tokens = rows.folder;
  recipe.checkpoint.keep = 1;
  std::vector<FinetuningCost> tried;
  for (const auto& set : overrides_of_search(terms)) {
    auto config = recipe;
    fit_to_rows(config, rows.prepared, with_overrides(recipe, set));
    config = with_overrides(config, set);
    tried.push_back(cost_of(config, rows, prober.probe(config, concat("arm '", arm, "' on ", config.task.name))));
  }
  auto cost = mean_cost(tried);
  cost.items = static_cast<double>(task.train.items.size());
  return cost;
}

/// Throws ConfigError where arms are compared by a score that the task lacks.
void check_task_metrics(const Task& task, const Plan& trained) {
  const auto names = metric_names(task);
  for (const auto& metric : trained.metrics()) {
    const auto* of = std::get_if<TaskMetric>(&metric);
    if (!of || of->task != task.config.task || of->name.empty()) continue;
    require<ConfigError>(contains(names, of->name), trained.file, ": compares by ", of->task, " ", of->name,
                         ", and the task has no such figure", did_you_mean(of->name, names), "; it has ",
                         listed(names));
  }
}

}  // namespace

std::vector<FinetuningCost> finetuning_costs(const Plan& trained, Prober& prober) {
  const auto terms = finetuning_terms(trained.study.tasks, trained.file);
  const auto networks = networks_of(trained);
  std::vector<FinetuningCost> costs;
  for (const auto& file : terms.files) {
    const UndisturbedStopwatch watch;
    auto task = open_task(file, {.overrides = task_overrides(terms)});
    const double opening = watch.seconds();
    chosen_metric(task);  // which a misspelt name in its file would stop after the training otherwise
    check_task_metrics(task, trained);
    const auto of_file = task.config;
    std::map<std::string, FinetuningCost> known;  // by network
    for (size_t i = 0; i < networks.size(); ++i) {
      const auto& arm = trained.arms[i].name;
      const auto [of_network, is_new] = known.try_emplace(networks[i].id);
      auto& cost = of_network->second;
      if (is_new) {
        task.config = of_file;
        cost = cost_on(task, terms, networks[i], arm, trained.runs[i].folder, prober);
        cost.seconds += opening;
      }
      costs.push_back(cost);
      costs.back().arm = arm;
    }
  }
  return costs;
}

namespace {

/// `in all    2.1 TFLOPs, about 1.2 h with 2 runs at once, 1.1 GB of disk`
std::string sum_line(const Plan& plan, const std::vector<FinetuningCost>& costs, int64_t jobs, int64_t columns) {
  double flops = 0, seconds = 0, disk = 0;
  for (const auto& cost : costs) {
    flops += cost.flops;
    seconds += cost.seconds;
    disk += cost.disk_bytes;
  }
  const double each = finetunings_each(plan, costs);
  return labelled(
      "in all",
      concat(with_prefix(each * flops), "FLOPs, about ", duration(each * seconds / static_cast<double>(jobs)), " with ",
             jobs, jobs == 1 ? " run" : " runs", " at once, ", bytes(each * disk), " of disk"),
      columns);
}

/// `24 runs on cats and dogs, each with 3 seeds`
std::string runs_on_tasks(const Plan& plan, int64_t tries) {
  const auto names = task_names(plan);
  return concat(plan.runs.size() / (names.size() * static_cast<size_t>(tries)), " runs on ", listed(names));
}

std::string seeds_text(int64_t seeds) { return concat(seeds, seeds == 1 ? " seed" : " seeds"); }

}  // namespace

double finetunings_each(const Plan& plan, const std::vector<FinetuningCost>& costs) {
  return static_cast<double>(plan.runs.size()) / static_cast<double>(costs.size());
}

std::string task_plan_text(const Plan& plan, const std::vector<FinetuningCost>& costs, int64_t jobs, int64_t columns) {
  const auto& terms = plan.study.tasks;
  auto text = wrapped("",
                      concat("fine-tunings of ", runs_on_tasks(plan, terms.seeds), ", each with ",
                             seeds_text(terms.seeds), " = ", plan.runs.size(), " runs in ", plan.folder),
                      columns, 2);
  if (costs.empty()) return text;
  constexpr auto numeric = ColumnKind::number;
  Table table{.header = {"task",
                         "arm",
                         "recipe",
                         {"items", numeric},
                         {"steps", numeric},
                         {"tokens", numeric},
                         {"FLOPs", numeric},
                         {"time", numeric}}};
  for (const auto& cost : costs)
    table.rows.push_back({cost.task, cost.arm, cost.like, with_prefix(cost.items), with_prefix(cost.steps),
                          with_prefix(cost.tokens), with_prefix(cost.flops), duration(cost.seconds)});
  std::string recipe = "the same rates, batches and passes for all arms";
  if (!terms.tune.items.empty()) recipe += ", but for what the search finds of " + keys_of_search(terms);
  return text + sum_line(plan, costs, jobs, columns) + labelled("recipe", recipe + "; one fine-tuning has", columns) +
         "\n" + to_text(table, static_cast<size_t>(columns));
}

std::string task_tuning_text(const Plan& plan, const std::vector<FinetuningCost>& costs, int64_t jobs,
                             int64_t columns) {
  const auto& terms = plan.study.tasks;
  const auto combinations = static_cast<int64_t>(searched_arms({Arm{}}, terms.tune, "tasks.tune").size());
  const auto runs = static_cast<int64_t>(plan.seeds.size());
  auto text = wrapped(
      "",
      concat("search of ", keys_of_search(terms), " for the fine-tunings of ",
             runs_on_tasks(plan, terms.tuning_seeds * combinations), ", each with ", combinations, " combinations and ",
             seeds_text(terms.tuning_seeds), " = ", plan.runs.size(), " runs in ", plan.folder),
      columns, 2);
  if (!costs.empty()) text += sum_line(plan, costs, jobs, columns);
  return text + labelled("budget",
                         concat(combinations * runs * terms.tuning_seeds,
                                " tries for each arm on each task, of which the best mean on the valid part is "
                                "taken"),
                         columns);
}

}  // namespace cloze

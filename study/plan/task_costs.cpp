// What the fine-tunings of a study cost.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/log.h"
#include "core/report/table.h"
#include "core/text.h"
#include "data/tokenizer.h"
#include "models/backbone_config.h"
#include "models/families/model_config.h"
#include "run/config/finetune_recipe.h"
#include "run/config/load_config.h"
#include "study/plan/plan_table.h"
#include "study/plan/task_plan.h"
#include "study/search/tuning.h"
#include "tasks/inspect_task.h"
#include "tasks/rows/framing.h"
#include "tasks/task.h"

namespace cloze {

namespace {

/// Rows of a part, estimated of some of its items.
struct PartSize {
  double items = 0, rows = 0, tokens = 0;
};

PartSize size_of(const TaskPart& part, const TaskRowMaker& maker) {
  constexpr size_t sampled = 1000;
  const auto items = part.items.size();
  const auto count = std::min(items, sampled);
  PartSize size{.items = static_cast<double>(items)};
  if (count == 0) return size;
  std::vector<TaskRow> rows;
  RowCounts counts;
  for (size_t i = 0; i < count; ++i) maker.add(part.items[i * items / count], static_cast<int64_t>(i), rows, counts);
  const double scale = static_cast<double>(items) / static_cast<double>(count);
  size.rows = scale * static_cast<double>(rows.size());
  for (const auto& row : rows) size.tokens += scale * static_cast<double>(row.ids.size());
  return size;
}

FinetuningCost cost_of(Task task, const FinetuningTerms& terms, const std::string& arm, const RunConfig& trained,
                       const Probe& probe) {
  auto& config = task.config;
  if (!terms.like.empty()) config.like = terms.like;
  if (config.like.empty()) config.like = usual_recipe;
  const auto recipe = recipe_of({.like = config.like,
                                 .task = config.task,
                                 .kind = name_of(config.kind),
                                 .model = kind_of(trained.model),
                                 .hidden_size = backbone_of(trained.model).hidden_size});
  if (config.max_length == 0) config.max_length = recipe.max_length;
  std::vector<std::string> of_run;
  for (const auto& one : terms.set)
    if (one.starts_with("train.") || one.starts_with("checkpoint.")) of_run.push_back(one);
  const auto run = decode<RunConfig>(ConfigTree::parse(to_yaml(recipe.config), "the recipe " + config.like, of_run));
  const auto tokenizer = Tokenizer::open(trained.data.tokens + "/tokenizer");
  const TaskRowMaker maker(tokenizer, framing_of(tokenizer, trained.model), row_options(config, task.labels));
  const auto train = size_of(task.train, maker), valid = size_of(task.valid, maker), test = size_of(task.test, maker);
  const auto batch = static_cast<double>(run.train.batch_size * run.train.accumulation);
  const double examples = config.kind == TaskKind::choice ? train.items : train.rows;
  const double steps_of_epoch = std::ceil(examples / batch);
  const auto& budget = run.train.budget;
  double steps = budget.epochs > 0 ? budget.epochs * steps_of_epoch : static_cast<double>(budget.steps);
  if (budget.steps > 0) steps = std::min(steps, static_cast<double>(budget.steps));
  const double epochs = steps / steps_of_epoch;
  // What is judged, after each pass and at the end, costs a forward pass, a third of a step's.
  const double judged = (std::ceil(epochs) * valid.tokens + test.tokens) / 3;
  const double tokens = epochs * train.tokens;
  FinetuningCost cost{.arm = arm, .task = config.task, .like = config.like, .items = train.items};
  cost.steps = steps;
  cost.tokens = tokens;
  cost.flops = (tokens + judged) * probe.flops / probe.tokens;
  cost.seconds = (tokens + judged) * probe.seconds / probe.tokens;
  cost.disk_bytes = static_cast<double>(std::max<int64_t>(run.checkpoint.keep, 1) + 1) * probe.checkpoint_bytes;
  return cost;
}

/// The terms with each combination of the values of a search that change what a fine-tuning costs: those of `train`.
std::vector<FinetuningTerms> terms_of_search(const FinetuningTerms& terms) {
  AnyKeys tuned;
  std::ranges::copy_if(terms.tune.items, std::back_inserter(tuned.items),
                       [](const auto& key) { return key.first.starts_with("train."); });
  std::vector<FinetuningTerms> all;
  for (const auto& combination : searched_arms({Arm{}}, tuned, "tasks.tune")) {
    auto& one = all.emplace_back(terms);
    for (const auto& [key, value] : combination.keys) one.set.push_back(key + "=" + one_line(value));
  }
  return all;
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

}  // namespace

std::vector<FinetuningCost> finetuning_costs(const Plan& trained, const std::vector<Probe>& probes) {
  const auto terms = finetuning_terms(trained.study.tasks, trained.file);
  const auto searched = terms_of_search(terms);
  std::vector<FinetuningCost> costs;
  for (const auto& file : terms.files) {
    const auto task = open_task(file, {.overrides = task_overrides(terms)});
    for (size_t i = 0; i < probes.size(); ++i) {
      std::vector<FinetuningCost> tried;
      for (const auto& one : searched)
        tried.push_back(cost_of(task, one, trained.arms[i].name, trained.runs[i].config, probes[i]));
      costs.push_back(mean_cost(tried));
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

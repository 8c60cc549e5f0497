#include "study/task_plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/log.h"
#include "core/named_config.h"
#include "core/table.h"
#include "core/text.h"
#include "data/tokenizer.h"
#include "models/backbone_config.h"
#include "models/families/model_config.h"
#include "run/config_io.h"
#include "run/finetune_recipe.h"
#include "study/runs.h"
#include "study/task_report.h"
#include "tasks/floors.h"
#include "tasks/framing.h"
#include "tasks/inspect_task.h"
#include "tasks/task.h"
#include "tasks/task_metric.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

constexpr const char* of_task_file = "task.";

/// A task with a fingerprint of its file and of those of its parts.
struct StudyTask {
  std::string name, file, fingerprint;
  std::vector<std::string> point{};  ///< of a recipe that is a grid: the batch and the rate that all fine-tunings have
};

/// The batch and the rate that a recipe with a grid takes without it, as far as `set` leaves them open. All runs that
/// are compared have the same ones: to search for each would be a budget that the verdict does not see.
std::vector<std::string> point_of_grid(const std::string& like, const TaskConfig& task,
                                       const std::vector<std::string>& set) {
  const auto points = points_of(grid_of(like), set);
  if (points.empty()) return {};
  const auto config = recipe_of({.like = like, .task = task.task, .kind = name_of(task.kind)}).config;
  std::vector<std::string> point;
  for (const auto& one : points.front().set) {
    const auto key = one.substr(0, one.find('=') + 1);
    point.push_back(key + (key.starts_with("train.") ? std::to_string(config.train.batch_size)
                                                     : shortest(config.optimizer.learning_rate)));
  }
  return point;
}

/// XXH3 of a file, or of the names and contents of all in a folder, which are read once a process.
const std::string& hash_of_data(const std::string& path) {
  static std::map<std::string, std::string> known;
  auto& hash = known[path];
  if (!hash.empty()) return hash;
  constexpr uint64_t most_bytes = uint64_t{8} << 30;
  if (!fs::is_directory(path)) return hash = hash_hex(read_text(path, most_bytes));
  std::map<std::string, std::string> files;
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file(ignored))
      files.emplace(at->path().lexically_relative(path).string(), hash_hex(read_text(at->path().string(), most_bytes)));
  require<DataError>(!error, path, ": cannot be read (", error.message(), ")");
  std::string all;
  for (const auto& [name, of_file] : files) all += name + "\n" + of_file + "\n";
  return hash = hash_hex(all);
}

/// The hashes of the files of a part, `A + B`.
std::string hash_of_part(const std::string& files, const std::string& task_file) {
  if (files.empty() || files == "test") return "";
  const std::string between = " + ";
  std::string hashes;
  for (size_t at = 0; at <= files.size();) {
    const auto end = std::min(files.find(between, at), files.size());
    hashes += hash_of_data(find_task_data(files.substr(at, end - at), task_file));
    at = end + between.size();
  }
  return hashes;
}

std::vector<StudyTask> tasks_of(const FinetuningTerms& terms) {
  std::vector<StudyTask> tasks;
  for (const auto& file : terms.files) {
    const auto config = read_task_config(file, task_overrides(terms));
    const auto same = std::ranges::find(tasks, config.task, &StudyTask::name);
    require<ConfigError>(same == tasks.end(), file, ": is a task '", config.task, "', as ",
                         same == tasks.end() ? "" : same->file,
                         " is, and results are told apart by the names of tasks; give it another one, `task:`");
    const auto& data = config.data;
    tasks.push_back({config.task, file,
                     hash_hex(read_text(file) + hash_of_part(data.train, file) + hash_of_part(data.valid, file) +
                              hash_of_part(data.test, file)),
                     point_of_grid(terms.like.empty() ? config.like : terms.like, config, terms.set)});
  }
  return tasks;
}

/// The fine-tuning of a run whose weights are those of `fingerprint`.
PlannedRun finetuning_of(PlannedRun run, const std::string& from, const StudyTask& task, int64_t seed,
                         const FinetuningTerms& terms) {
  auto& job = run.finetuning;
  job = {.task = task.name, .file = task.file, .arm = run.arm, .seed = seed};
  if (!terms.like.empty()) job.options = {"--like", terms.like};
  if (terms.skip_bad) job.options.emplace_back("--skip-bad");
  const std::string keep = "checkpoint.keep=";
  const bool keeps = std::ranges::any_of(terms.set, [&](const auto& one) { return one.starts_with(keep); });
  for (const auto& one : terms.set) job.options.insert(job.options.end(), {"--set", one});
  for (const auto& one : task.point) job.options.insert(job.options.end(), {"--set", one});
  if (!keeps) job.options.insert(job.options.end(), {"--set", keep + "1"});
  job.options.insert(job.options.end(), {"--set", words("train.seed=", seed)});
  std::string made_of = run.fingerprint + task.fingerprint;
  for (const auto& option : job.options) made_of += option + "\n";
  run.fingerprint = hash_hex(made_of);
  run.folder += "/" + folder_name(task.name) + words("/seed-", seed);
  run.continues = false;
  run.earlier.clear();
  auto& config = run.config;
  config.init = {};
  config.init.from = from;
  config.task.name = task.name;
  config.task.file = task.file;
  config.task.like = terms.like;
  config.train.seed = seed;
  config.train.seeds = {};
  config.evaluation.points = 0;
  return run;
}

/// What of a run makes the numbers of its fine-tunings.
std::string fingerprint_of_run(const std::string& run) {
  const auto config = run + "/run.yaml";
  return fs::exists(config) ? hash_hex(read_text(config) + words(last_step(run))) : "";
}

/// The last so many parts of the path of a run: `wiki` of runs/wiki, `wiki-step-00000100` of a step of it.
std::string last_parts(const std::string& path, int parts) {
  auto folder = (fs::path(path) / "").lexically_normal().parent_path();
  const auto step = folder.filename().string();
  const bool is_step = step.starts_with("step-");
  if (is_step) folder = folder.parent_path();
  fs::path name = folder.filename();
  for (int i = 1; i < parts && folder.has_parent_path(); ++i) {
    folder = folder.parent_path();
    name = folder.filename() / name;
  }
  return name.string() + (is_step ? "-" + step : "");
}

/// The shortest ends of the paths of runs that tell them apart, all of as many parts.
std::vector<std::string> names_of_runs(const std::vector<std::string>& runs) {
  constexpr int most_parts = 64;
  std::vector<std::string> names;
  for (int parts = 1; parts <= most_parts; ++parts) {
    names.clear();
    for (const auto& run : runs) names.push_back(last_parts(run, parts));
    if (std::set<std::string>(names.begin(), names.end()).size() == runs.size()) return names;
  }
  return runs;
}

}  // namespace

std::vector<std::string> task_overrides(const FinetuningTerms& terms) {
  std::vector<std::string> found;
  for (const auto& one : terms.set)
    if (one.starts_with(of_task_file)) found.push_back(one.substr(std::string(of_task_file).size()));
  return found;
}

FinetuningTerms finetuning_terms(const StudyTasksConfig& tasks, const std::string& study_file) {
  FinetuningTerms terms{.seeds = tasks.seeds, .like = tasks.like};
  for (const auto& file : tasks.files) {
    const auto beside = (fs::path(study_file).parent_path() / file).lexically_normal().string();
    const auto shipped = fs::exists(beside) || fs::exists(file) ? "" : task_of_name(file);
    terms.files.push_back(fs::exists(beside) ? beside : shipped.empty() ? file : shipped);
  }
  for (const auto& [key, value] : tasks.set.items) {
    require<ConfigError>(
        key != "train.seed", value.key_where,
        ": 'train.seed' would be replaced by what the study says; `tasks: {seeds: N}` has seeds 1 to N");
    terms.set.push_back(key + "=" + one_line(value));
  }
  return terms;
}

Plan task_plan(const Plan& trained) {
  const auto terms = finetuning_terms(trained.study.tasks, trained.file);
  const auto tasks = tasks_of(terms);
  Plan plan = trained;
  plan.folder = trained.root + "/tasks";
  plan.stage = "tasks";
  plan.compares = false;
  plan.metric = LossMetric{};  // while they are trained they have the loss of their valid part
  plan.secondary.clear();
  plan.arms.clear();
  plan.runs.clear();
  const auto each = [&](const auto& use) {
    for (const auto& task : tasks)
      for (int64_t seed = 1; seed <= terms.seeds; ++seed) use(task, seed, words(", ", task.name, ".", seed));
  };
  for (const auto& arm : trained.arms)
    each([&](const StudyTask&, int64_t, const std::string& name) { plan.arms.push_back({arm.name + name, arm.keys}); });
  for (const auto& run : trained.runs)
    each([&](const StudyTask& task, int64_t seed, const std::string& name) {
      const auto from = run_path(trained, run);
      auto one = finetuning_of(run, from, task, seed, terms);
      one.arm += name;
      one.source = from;
      plan.runs.push_back(std::move(one));
    });
  return plan;
}

Plan task_plan(const std::vector<std::string>& runs, const FinetuningTerms& terms, const std::string& folder) {
  const auto tasks = tasks_of(terms);
  Plan plan{.folder = folder, .root = folder, .stage = "tasks", .compares = false};
  plan.study.study = "tasks";
  for (int64_t seed = 1; seed <= terms.seeds; ++seed) plan.seeds.push_back(seed);
  std::set<fs::path> seen;
  for (const auto& path : runs)
    require<ConfigError>(seen.insert(fs::weakly_canonical(fs::path(path) / "")).second, path,
                         ": is named twice; name it once");
  const auto names = names_of_runs(runs);
  std::vector<PlannedRun> of_runs;
  for (size_t i = 0; i < runs.size(); ++i) {
    PlannedRun run{.arm = names[i], .fingerprint = fingerprint_of_run(runs[i])};
    run.folder = "runs/" + folder_name(run.arm);
    of_runs.push_back(std::move(run));
  }
  for (const auto& run : of_runs)
    for (const auto& task : tasks) plan.arms.push_back({run.arm + ", " + task.name, {}});
  for (const auto seed : plan.seeds)
    for (size_t i = 0; i < of_runs.size(); ++i)
      for (const auto& task : tasks) {
        auto one = finetuning_of(of_runs[i], runs[i], task, seed, terms);
        one.seed = seed;
        one.arm += ", " + task.name;
        plan.runs.push_back(std::move(one));
      }
  return plan;
}

std::vector<TaskMetric> task_metrics(const Plan& plan) {
  const auto terms = finetuning_terms(plan.study.tasks, plan.file);
  std::vector<TaskMetric> metrics;
  for (const auto& file : terms.files) {
    const auto config = read_task_config(file, task_overrides(terms));
    const auto figure = config.metric.empty() ? "" : config.metric.front();
    metrics.push_back({.task = config.task,
                       .figure = figure,
                       .is_error = is_error(figure),
                       .floor = name_of_floor(config.kind, Floor::constant)});
  }
  return metrics;
}

void take_finetunings(Plan& trained, const Plan& tasks) {
  for (const auto& task : task_metrics(trained)) {
    const auto all = trained.metrics();
    const auto is_named = [&](const StudyMetric& metric) {
      const auto* known = std::get_if<TaskMetric>(&metric);
      return known && known->task == task.task;
    };
    if (std::ranges::none_of(all, is_named)) trained.secondary.emplace_back(task);
  }
  const auto take = [&](StudyMetric& metric) {
    auto* task = std::get_if<TaskMetric>(&metric);
    if (!task) return;
    for (const auto& run : tasks.runs)
      if (run.finetuning.task == task->task && status_of(tasks, run).state == RunState::done &&
          change_of(run_path(tasks, run)).empty())
        task->finetunings[run.source].push_back(run_path(tasks, run));
  };
  take(trained.metric);
  for (auto& metric : trained.secondary) take(metric);
}

std::string missing_finetunings(const Plan& trained, const PlannedRun& run) {
  std::string missing;
  for (const auto& metric : trained.metrics()) {
    const auto* task = std::get_if<TaskMetric>(&metric);
    if (!task) continue;
    const auto done = task->finetunings.find(run_path(trained, run));
    const auto count = done == task->finetunings.end() ? 0 : std::ssize(done->second);
    if (count == trained.study.tasks.seeds) continue;
    missing += words(missing.empty() ? "" : ", ", count, " of ", trained.study.tasks.seeds, " fine-tunings on ",
                     task->task, " are done");
  }
  return missing;
}

std::vector<std::string> task_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const auto& run : plan.runs)
    if (std::ranges::find(names, run.finetuning.task) == names.end()) names.push_back(run.finetuning.task);
  return names;
}

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
    if (!one.starts_with(of_task_file) && (one.starts_with("train.") || one.starts_with("checkpoint.")))
      of_run.push_back(one);
  const auto run = decode<RunConfig>(ConfigTree::parse(to_yaml(recipe.config), "the recipe " + config.like, of_run));
  const auto tokenizer = Tokenizer::open(trained.data.tokens + "/tokenizer");
  const TaskRowMaker maker(tokenizer, framing_of(tokenizer, trained.model), row_options(config, task.labels));
  const auto train = size_of(task.train, maker), valid = size_of(task.valid, maker), test = size_of(task.test, maker);
  const auto batch = static_cast<double>(run.train.batch_size * run.train.accumulation);
  const double examples = config.kind == TaskKind::choice ? train.items : train.rows;
  const double steps_of_epoch = std::ceil(examples / batch);
  const auto& budget = run.train.budget;
  const double steps = budget.steps > 0 ? static_cast<double>(budget.steps) : budget.epochs * steps_of_epoch;
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

}  // namespace

std::vector<FinetuningCost> finetuning_costs(const Plan& trained, const std::vector<Probe>& probes) {
  auto terms = finetuning_terms(trained.study.tasks, trained.file);
  std::vector<FinetuningCost> costs;
  for (const auto& file : terms.files) {
    const auto task = open_task(file, {.overrides = task_overrides(terms)});
    for (size_t i = 0; i < probes.size(); ++i)
      costs.push_back(cost_of(task, terms, trained.arms[i].name, trained.runs[i].config, probes[i]));
  }
  return costs;
}

std::string task_plan_text(const Plan& plan, const std::vector<FinetuningCost>& costs, int64_t jobs, int64_t columns) {
  const auto names = task_names(plan);
  const auto seeds = plan.study.tasks.seeds;
  const auto runs = static_cast<double>(plan.seeds.size()) * static_cast<double>(seeds);
  auto text = words("fine-tunings of ", plan.runs.size() / (names.size() * static_cast<size_t>(seeds)), " runs on ",
                    listed(names), ", each with ", seeds, seeds == 1 ? " seed" : " seeds", " = ", plan.runs.size(),
                    " runs in ", plan.folder, "\n");
  if (costs.empty()) return text;
  double flops = 0, seconds = 0, disk = 0;
  constexpr auto numeric = ColumnKind::number;
  Table table{.header = {"task",
                         "arm",
                         "recipe",
                         {"items", numeric},
                         {"steps", numeric},
                         {"tokens", numeric},
                         {"FLOPs", numeric},
                         {"time", numeric}}};
  for (const auto& cost : costs) {
    flops += runs * cost.flops;
    seconds += runs * cost.seconds;
    disk += runs * cost.disk_bytes;
    table.rows.push_back({cost.task, cost.arm, cost.like, with_prefix(cost.items), with_prefix(cost.steps),
                          with_prefix(cost.tokens), with_prefix(cost.flops), duration(cost.seconds)});
  }
  text += words("in all    ", with_prefix(flops), "FLOPs, about ", duration(seconds / static_cast<double>(jobs)),
                " with ", jobs, jobs == 1 ? " run" : " runs", " at once, ", bytes(disk), " of disk\n",
                "recipe    the same rates, batches and passes for all arms, each fine-tuning of\n\n");
  return text + to_text(table, static_cast<size_t>(columns));
}

}  // namespace cloze

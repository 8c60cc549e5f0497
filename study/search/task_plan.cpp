#include "study/search/task_plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/contains.h"
#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/spelling.h"
#include "core/text.h"
#include "finetune/finetune_config.h"
#include "finetune/finetune_recipe.h"
#include "run/checkpoints/checksums.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "study/search/tuning.h"
#include "tasks/task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

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

/// Throws ConfigError for a value of a search that no run can have.
void check_tuned(const AnyKeys& tune, const std::string& like, const TaskConfig& task) {
  for (const auto& [key, values] : tune.items) {
    if (key.starts_with("model.") || key.starts_with("objectives.")) continue;  // those of the run are not in a recipe
    const auto recipe = recipe_of({.like = like, .task = task.task, .kind = name_of(task.kind)});
    for (const auto& [index, value] : values.items) {
      auto tree = ConfigTree::parse(to_yaml(recipe.config), "the recipe " + like);
      auto placed = value;
      placed.key_where = values.key_where;
      tree.set(key, placed);
      decode<RunConfig>(tree);
    }
  }
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

/// The hashes of the files of a part.
std::string hash_of_part(const std::string& named, const std::string& task_file) {
  if (named.empty() || named == "test") return "";
  std::string hashes;
  for (const auto& file : files_of_split(named, task_file)) hashes += hash_of_data(file);
  return hashes;
}

/// What a task file says, with the files of its `base:`.
std::string content_of_task(const std::string& file) {
  const bool has_base = ConfigTree::load_alone(file).find("base") != nullptr;
  return read_text(file) + (has_base ? one_line(ConfigTree::load(file).root()) : "");
}

std::vector<StudyTask> tasks_of(const FinetuningTerms& terms) {
  auto set = terms.set;
  for (const auto& [key, values] : terms.tune.items) set.push_back(key + "=");
  std::vector<StudyTask> tasks;
  for (const auto& file : terms.files) {
    const auto config = read_task_config(file, task_overrides(terms));
    const auto same = std::ranges::find(tasks, config.task, &StudyTask::name);
    require<ConfigError>(same == tasks.end(), file, ": is a task '", config.task, "', as ",
                         same == tasks.end() ? "" : same->file,
                         " is, and results are told apart by the names of tasks; give it another one, `task:`");
    const auto& data = config.data;
    const auto like = terms.like.empty() ? config.like : terms.like;
    check_tuned(terms.tune, like.empty() ? usual_recipe : like, config);
    tasks.push_back({config.task, file,
                     hash_hex(content_of_task(file) + hash_of_part(data.train, file) + hash_of_part(data.valid, file) +
                              hash_of_part(data.test, file)),
                     point_of_grid(like, config, set)});
  }
  return tasks;
}

/// The fine-tuning of a run whose weights are those of `from`, with values that a search tries or has found.
PlannedRun finetuning_of(PlannedRun run, const std::string& from, const StudyTask& task, int64_t seed,
                         const FinetuningTerms& terms, const KeyValues& tuned = {}) {
  run.kind = RunKind::finetuned;
  auto& job = run.finetuning;
  job = {.task = task.name, .file = task.file, .arm = run.arm, .seed = seed, .tuned = tuned};
  if (!terms.like.empty()) job.options = {"--like", terms.like};
  if (terms.skip_bad) job.options.emplace_back("--skip-bad");
  auto set = terms.set;
  set.insert(set.end(), task.point.begin(), task.point.end());
  for (const auto& [key, value] : tuned) set.push_back(key + "=" + one_line(value));
  const std::string keep = "checkpoint.keep=";
  if (std::ranges::none_of(terms.set, [&](const auto& one) { return one.starts_with(keep); }))
    set.push_back(keep + "1");
  set.push_back(concat("train.seed=", seed));
  for (const auto& one : set) job.options.insert(job.options.end(), {"--set", one});
  std::string made_of = run.fingerprint + task.fingerprint;
  for (const auto& option : job.options) made_of += option + "\n";
  run.fingerprint = hash_hex(made_of);
  run.folder += "/" + folder_name(task.name) + concat("/seed-", seed);
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

/// What of a run, or of a step folder of one, makes the numbers of its fine-tunings: its config and its weights.
std::string fingerprint_of_run(const std::string& path) {
  const auto run = is_step_folder(path) ? fs::path(located_step(path)).parent_path().string() : path;
  const auto config = run + "/run.yaml";
  return fs::exists(config) ? hash_hex(read_text(config) + weights_fingerprint(path)) : "";
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

/// A fine-tuning of a study: on a task, with a seed and with values of a search, whose names tell it from the others of
/// its run.
struct Fit {
  const StudyTask* task;
  int64_t seed;
  KeyValues tuned{};
  std::string name{}, folder{};
};

/// The stage of the fine-tunings of every run.
template <class Fits>
Plan finetuning_stage(const Plan& trained, const std::string& folder, const std::string& stage,
                      const FinetuningTerms& terms, const Fits& fits_of) {
  Plan plan = trained;
  plan.folder = trained.root + "/" + folder;
  plan.stage = stage;
  plan.compares = false;
  plan.metric = LossMetric{.name = ""};  // while they are trained they have the loss of their valid part
  plan.secondary.clear();
  plan.arms.clear();
  plan.runs.clear();
  for (const auto& arm : trained.arms)
    for (const auto& fit : fits_of(arm.name)) plan.arms.push_back({arm.name + fit.name, arm.keys});
  for (const auto& run : trained.runs)
    for (const auto& fit : fits_of(run.arm)) {
      auto one = finetuning_of(run, run.folder, *fit.task, fit.seed, terms, fit.tuned);
      one.fingerprint = fingerprint_after(one.fingerprint, run.fingerprint);
      one.arm += fit.name;
      one.inputs.push_back(run.folder);
      one.folder = plan.folder + one.folder.substr(trained.folder.size()) + fit.folder;
      plan.runs.push_back(std::move(one));
    }
  return plan;
}

}  // namespace

Plan task_plan(const Plan& trained, const Tuning* tuning) {
  const auto terms = finetuning_terms(trained.study.tasks, trained.file);
  const auto tasks = placed(trained.study.tasks, [&] { return tasks_of(terms); });
  return finetuning_stage(trained, "tasks", "tasks", terms, [&](const std::string& arm) {
    std::vector<Fit> fits;
    for (const auto& task : tasks)
      for (int64_t seed = 1; seed <= terms.seeds; ++seed)
        fits.push_back({.task = &task,
                        .seed = seed,
                        .tuned = tuning ? tuning->best_keys(arm, task.name) : KeyValues{},
                        .name = concat(", ", task.name, ".", seed)});
    return fits;
  });
}

Plan task_tuning_plan(const Plan& trained) {
  const auto& of_study = trained.study.tasks;
  const auto combinations = searched_arms({Arm{}}, of_study.tune, "tasks.tune");
  const auto terms = finetuning_terms(of_study, trained.file);
  const auto tasks = placed(of_study, [&] { return tasks_of(terms); });
  std::vector<Fit> fits;
  for (const auto& task : tasks)
    for (const auto& one : combinations)
      for (int64_t seed = first_tuning_seed; seed < first_tuning_seed + of_study.tuning_seeds; ++seed)
        fits.push_back({.task = &task,
                        .seed = seed,
                        .tuned = one.keys,
                        .name = concat(", ", task.name, ".", seed, ", ", one.name),
                        .folder = "/" + folder_name(one.name)});
  return finetuning_stage(trained, "task-tuning", "task tuning", terms, [&](const std::string&) { return fits; });
}

Plan task_plan(const std::vector<std::string>& runs, const FinetuningTerms& terms, const std::string& folder) {
  const auto tasks = tasks_of(terms);
  Plan plan{.root = folder, .folder = folder, .stage = "tasks", .compares = false};
  plan.study.study = "tasks";
  for (int64_t seed = 1; seed <= terms.seeds; ++seed) plan.seeds.push_back(seed);
  std::set<fs::path> seen;
  for (const auto& path : runs)
    require<ConfigError>(seen.insert(fs::weakly_canonical(fs::path(path) / "")).second, path,
                         ": is named twice; name it once");
  const auto names = names_of_runs(runs);
  std::vector<std::string> fingerprints;
  for (const auto& run : runs) fingerprints.push_back(fingerprint_of_run(run));
  for (const auto& name : names)
    for (const auto& task : tasks) plan.arms.push_back({name + ", " + task.name, {}});
  for (const auto seed : plan.seeds)
    for (size_t i = 0; i < runs.size(); ++i)
      for (const auto& task : tasks) {
        const PlannedRun run{.arm = names[i],
                             .seed = seed,
                             .folder = folder + "/runs/" + folder_name(names[i]),
                             .fingerprint = fingerprints[i]};
        auto& one = plan.runs.emplace_back(finetuning_of(run, runs[i], task, seed, terms));
        one.arm += ", " + task.name;
      }
  return plan;
}

std::vector<std::string> task_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const auto& run : plan.runs)
    if (!contains(names, run.finetuning.task)) names.push_back(run.finetuning.task);
  return names;
}

}  // namespace cloze

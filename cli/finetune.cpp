#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/finetune_grid.h"
#include "cli/paths.h"
#include "cli/processes.h"
#include "cli/verbs.h"
#include "core/config/config.h"
#include "core/config/leaf_overrides.h"
#include "core/config/named_config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/print.h"
#include "core/report/table.h"
#include "core/text.h"
#include "finetune/finetune_config.h"
#include "finetune/finetune_recipe.h"
#include "objectives/task_heads/task_heads.h"
#include "run/checkpoints/checksums.h"
#include "run/config/load_config.h"
#include "run/records/history.h"
#include "run/run_files.h"
#include "run/run_tokenizer.h"
#include "study/execution/runner.h"
#include "study/execution/runs.h"
#include "study/measures/task_value.h"
#include "study/report/task_report.h"
#include "study/search/task_plan.h"
#include "tasks/scores/task_metric.h"
#include "tasks/rows/prepared_task.h"
#include "tasks/task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

struct FinetuneArguments {
  std::vector<std::string> sources{}, set{};
  std::string like{};
  std::vector<std::string> grid{};
  int64_t tries = 0;  ///< points of the grid; 0: all
  int64_t few = 0;    ///< items of a label; 0: as the task file has it
  int64_t seeds = 0;  ///< 0: one run, whose seed is train.seed
  int64_t jobs = 0;
  std::string out{};
  bool skip_bad = false;
  PretrainCommand command{};
  ProcessOptions processes{};
};

/// The runs and the task files of a command.
struct FinetuneSources {
  std::vector<std::string> runs{}, tasks{};
};

FinetuneSources sources_of(const FinetuneArguments& a) {
  FinetuneSources sources;
  for (const auto& source : a.sources) {
    const auto kind = kind_of_path(source);
    if (kind == PathKind::file || kind == PathKind::absent) check_task_file(source);
    const auto named = kind == PathKind::absent || kind == PathKind::other ? task_file(source) : "";
    if (kind == PathKind::run && !task_of_name(source).empty())
      log_info("task", concat(source, ": the run of that name here, not the ready task, which is tasks/", source));
    const bool is_task =
        kind == PathKind::file || (kind == PathKind::absent && (source.ends_with(".yaml") || source.ends_with(".yml")));
    (is_task || !named.empty() ? sources.tasks : sources.runs).push_back(named.empty() ? source : named);
  }
  const bool has_run = std::ranges::any_of(sources.runs, is_run_path);
  for (const auto& run : sources.runs) {
    if (near_run(run).empty()) check_task_name(run, has_run);
    check_run_path(run);
  }
  require<ConfigError>(!sources.runs.empty() && !sources.tasks.empty(),
                       sources.runs.empty() ? "no run" : "no task file",
                       " is given; name both: cloze finetune RUN TASK.yaml");
  for (auto& task : sources.tasks)
    if (!task.ends_with(".json") && !task.ends_with(".txt")) task = config_file(task, Declared::task);
  return sources;
}

/// Whether a command makes a table of several fine-tunings.
bool makes_table(const FinetuneArguments& a, const FinetuneSources& sources) {
  return sources.runs.size() > 1 || sources.tasks.size() > 1 || a.seeds > 0 || !a.out.empty();
}

/// What is fine-tuned.
struct PretrainedRun {
  std::string folder;
  RunConfig config{};
  Tokenizer tokenizer{};
};

PretrainedRun open_pretrained(const std::string& path) {
  PretrainedRun run{.folder = kind_of_path(path) == PathKind::step ? run_of_step(path) : path};
  run.config = decode<RunConfig>(load_run_config(run.folder + "/run.yaml"));
  const auto tokenizer = open_run_tokenizer(run.folder);
  require<CheckpointError>(tokenizer.has_value(), run.folder, ": ", no_tokenizer(run.folder));
  run.tokenizer = *tokenizer;
  run.config.model = finetuned_model(run.config.model, run.tokenizer);
  return run;
}

/// The names of the labels that a run's head of a task brings, in their order.
std::vector<std::string> labels_of_run(const RunConfig& config) {
  for (const auto& objective : config.objectives)
    if (const auto* terms = task_head_of(objective)) return terms->labels;
  return {};
}

/// Overrides of the task file, `task.data.train=...`, and of the run.
struct SplitOverrides {
  std::vector<std::string> of_task{}, of_run{};
};
SplitOverrides split_overrides(const std::vector<std::string>& set) {
  const std::string prefix = "task.";
  SplitOverrides split;
  for (const auto& one : set)
    if (one.starts_with(prefix))
      split.of_task.push_back(one.substr(prefix.size()));
    else
      split.of_run.push_back(one);
  return split;
}

/// The seed that these overrides give a run; that of no number, which is refused with the rest, is the usual one.
uint64_t seed_of(const std::vector<std::string>& set) {
  constexpr std::string_view key = "train.seed=";
  auto seed = static_cast<uint64_t>(TrainConfig{}.seed);
  for (const auto& one : set)
    if (one.starts_with(key)) std::from_chars(one.data() + key.size(), one.data() + one.size(), seed);
  return seed;
}

/// The task, with labels in the order of the run where it has a head for the same ones.
Task open_for(const std::string& file, const PretrainedRun& run, const TaskOptions& options) {
  auto task = open_task(file, options);
  auto brought = labels_of_run(run.config), own = task.labels.names;
  if (brought.empty() || brought == own || task.config.kind->generates) return task;
  const auto in_order = brought;
  std::sort(brought.begin(), brought.end());
  std::sort(own.begin(), own.end());
  if (brought != own) {
    log_info("task", concat(run.folder, " has a head for ", listed(in_order), ", and the labels of ", task.config.task,
                            " are ", listed(task.labels.names), ": its head is drawn anew"));
    return task;
  }
  auto again = options;
  again.label_order = in_order;
  return open_task(file, again);
}

/// Throws ConfigError for a folder in which no run can begin.
void check_new_run(const std::string& run) {
  check_training_path(run);
  const auto state = run_folder(run);
  require<ConfigError>(state != RunFolder::saved, run, ": exists; continue it with `cloze pretrain --run ", run,
                       " --resume`, or name another folder with --run");
  require<ConfigError>(state != RunFolder::other, run, ": exists, and is no run; name another folder with --run");
}

/// Makes the rows in the folder of the run, which no other process may train meanwhile.
PreparedTask prepare_rows(const Task& task, const PretrainedRun& run, const std::string& out) {
  const auto row_template = special_token_template(run.tokenizer, run.config.model);
  const bool is_new = fs::create_directories(out);
  try {
    const auto lock = Lock::take_or_fail(out + "/" + run_lock, out);
    check_new_run(out);
    return prepare_task(task, run.tokenizer, row_template, out + "/" + task_folder);
  } catch (...) {
    std::error_code ignored;
    if (is_new && fs::is_empty(out, ignored)) fs::remove(out, ignored);
    throw;
  }
}

void log_task(const Task& task, const PreparedTask& prepared) {
  for (const auto* part : {&task.train, &task.valid, &task.test}) log_info("task", counts_of(*part, task.labels));
  for (const auto& note : task.notes) log_info("task", note);
  for (const auto& [part, counts] : prepared.counts)
    if (const auto note = truncation_note(part, counts); !note.empty()) log_info("task", note);
}

void log_deviations(const RunConfig& before, const RunConfig& now) {
  for (const auto& changed : changed_keys(before, now))
    if (changed.is_in_both())
      log_info("task", concat("differs from the recipe: ", changed.key, " is ", changed.is, ", ", now.task.like,
                              " has ", changed.was));
}

/// What a command asks for, open.
struct OpenFinetuning {
  PretrainedRun run{};
  Task task{};
  RunConfig recipe{};  ///< the config by the recipe, without what follows from rows
};

OpenFinetuning open_finetuning(const FinetuneArguments& a, const FinetuneSources& sources) {
  OpenFinetuning finetuning{.run = open_pretrained(sources.runs.front())};
  auto& [run, task, config] = finetuning;
  const auto split = split_overrides(a.set);
  task = open_for(sources.tasks.front(), run,
                  {.overrides = split.of_task, .skip_bad = a.skip_bad, .seed = seed_of(split.of_run)});
  config = take_recipe(task, a.like, run.config.model);
  config.init.from = sources.runs.front();
  return finetuning;
}

/// runs/RUN-TASK.
std::string default_run_of(const OpenFinetuning& opened) {
  const auto run = fs::path(opened.run.folder + "/").lexically_normal().parent_path().filename().string();
  return "runs/" + run + "-" + opened.task.config.task;
}

/// The command that fine-tunes a run in `out`, whose rows are made.
PretrainCommand command_for(const OpenFinetuning& opened, const PretrainCommand& base, const std::string& out,
                            const std::vector<std::string>& set) {
  check_new_run(out);
  auto config = opened.recipe;
  config.data.tokens = out + "/" + task_folder;
  const auto first = with_overrides(config, set);  // its mistakes are reported before rows are made
  const auto* head = task_head_of(first.objectives.at(0));
  require<ConfigError>(!opened.task.config.choose_threshold || !head || head->layer.empty(), opened.task.file,
                       ": choose_threshold is true, and probes of layers (objectives.0.layer) predict at one half; "
                       "leave one of them out");
  const auto prepared = prepare_rows(opened.task, opened.run, out);
  fit_to_rows(config, prepared, first);
  auto command = base;
  command.run = out;
  command.config = with_overrides(config, set);
  log_task(opened.task, prepared);
  log_deviations(config, command.config);
  return command;
}

/// The overrides with those of the best point of a grid.
std::vector<std::string> with_best_point(const OpenFinetuning& opened, const FinetuneArguments& a,
                                         const std::vector<RecipePoint>& points, const std::vector<std::string>& set,
                                         const Trainer& trainer) {
  const auto folder = a.command.run + "-grid";
  const auto of_recipe =
      a.grid.empty() ? "; `--set train.batch_size=N --set optimizer.learning_rate=RATE` takes one" : "";
  log_info("task", concat(a.grid.empty() ? opened.task.config.like : listed(a.grid), " is a grid of ", points.size(),
                          " settings: each is a run in ", folder, ", then ", a.command.run,
                          " is made with those of the best one on the valid part", of_recipe));
  const auto set_of = [&](const RecipePoint& point) {
    auto all = set;
    all.insert(all.end(), point.set.begin(), point.set.end());
    return all;
  };
  for (const auto& point : points) with_overrides(opened.recipe, set_of(point));  // mistakes come before the first run
  auto quiet = a.command;
  quiet.json = false;
  const auto best = best_of_grid(
      points, folder, opened.task,
      [&](const RecipePoint& point) { return with_overrides(opened.recipe, set_of(point)); },
      [&](const RecipePoint& point, const std::string& run, bool resume) {
        auto command = quiet;
        if (resume) {
          command.run = run;
          command.resume = true;
          command.config = read_resumed_config(run + "/run.yaml", {}, run);
        } else {
          command = command_for(opened, quiet, run, set_of(point));
        }
        trainer.train(command);
      });
  log_info("task", concat("the best of the grid is ", best.name));
  return set_of(best);
}

/// Which fine-tunings a table is of.
struct FinetuneTable {
  std::vector<std::string> runs{};  ///< pretrained
  FinetuningTerms terms{};
  std::string out{};  ///< folder of the tables and of the runs
  int64_t jobs = 0;   ///< concurrent fine-tunings; 0: one per core
  bool json = false;  ///< print the tables as one line of JSON
};

/// Writes the tables in the forms that papers and programs read; returns them as JSON, with their numbers.
nlohmann::json write_tables(const std::string& folder, const std::vector<Table>& tables,
                            const std::vector<std::string>& notes, const nlohmann::json& numbers) {
  std::string markdown, latex;
  auto all = nlohmann::json::array();
  for (const auto& table : tables) {
    markdown += to_markdown(table) + "\n";
    latex += to_latex(table) + "\n";
    all.push_back(to_json(table));
  }
  for (const auto& note : notes) markdown += "- " + escaped_markdown(note) + "\n";
  latex += to_latex(notes);
  nlohmann::json fields{{"tables", all}, {"notes", notes}};
  fields.update(numbers);
  write_atomic(folder + "/table.md", markdown);
  write_atomic(folder + "/table.tex", latex);
  write_atomic(folder + "/table.csv", to_csv(tables.front()));
  write_atomic(folder + "/table.json", json_text(fields, 1) + "\n");
  return fields;
}

/// Fine-tunes every run on every task with every seed, as far as that is not done yet, prints the tables, and writes
/// them to table.md, .csv, .tex and .json. Throws ConfigError as task_plan, for overrides of the seed, and for runs
/// that were made by another plan; Error, with all of this done, where a fine-tuning failed.
void finetune_table(const FinetuneTable& command, const std::string& program) {
  const auto& [runs, terms, out, jobs, json] = command;
  for (const auto& one : terms.set)
    require<ConfigError>(!one.starts_with("train.seed="), "--set ", one,
                         ": the fine-tunings have the seeds 1 to N of --seeds N; leave it out");
  // A task with mistakes is refused before the first run.
  for (const auto& task : terms.files)
    open_task(task, {.overrides = task_overrides(terms), .skip_bad = terms.skip_bad});
  const auto plan = task_plan(runs, terms, out);
  const auto progress = run_study(plan, {.program = program, .jobs = jobs, .only = {}});
  const auto arms = arms_on_tasks(plan);
  std::vector<Table> tables{rank_table(arms)};
  TaskFloors floors(plan);
  add_floors(tables.front(), floors, arms);
  const auto differences = differences_of_runs(plan);
  if (runs.size() > 1) tables.push_back(difference_table(differences, plan.runs.front().finetuning.arm));
  tables.push_back(finetuning_table(arms));
  auto notes = task_notes(plan, arms);
  if (runs.size() > 1) notes.push_back(difference_words(plan));
  const auto fields = write_tables(out, tables, notes, numbers_of(arms, differences));
  for (const auto& table : tables)
    if (!json) print_text(to_text(table) + "\n");
  for (const auto& note : notes) log_info("task", note);
  log_result("task", concat(out, "/table.md, .csv, .tex, .json: ", progress.done,
                            progress.done == 1 ? " run done, " : " runs done, ", progress.failed, " failed"));
  if (json) print_data(json_text(fields) + "\n");
  require_none_failed(progress);
}

/// Fine-tunes every run on every task with every seed. Throws ConfigError for options that several fine-tunings do not
/// have.
void finetune_several(const FinetuneArguments& a, const FinetuneSources& sources, const Globals& globals,
                      const Trainer& trainer) {
  require<ConfigError>(!a.out.empty(),
                       "several fine-tunings make a table and a folder of runs; name that folder with --out DIR");
  require<ConfigError>(a.command.run.empty(), "--run ", a.command.run,
                       ": names one run, and several are made, in the folder of --out; leave it out");
  require<ConfigError>(!trainer.is_shared,
                       "several fine-tunings are made, by processes of their own; start them "
                       "without --processes and without a launcher, and --jobs says how many run at once");
  require<ConfigError>(
      a.grid.empty(),
      "--grid searches for one fine-tuning, and several are made; search with `tasks.tune` of a study, "
      "or leave it out");
  require<ConfigError>(a.command.hook.empty(), "--hook is of one fine-tuning, and several are made; leave it out");
  finetune_table({.runs = sources.runs,
                  .terms = {.files = sources.tasks,
                            .seeds = std::max<int64_t>(a.seeds, 1),
                            .like = a.like,
                            .set = a.set,
                            .skip_bad = a.skip_bad},
                  .out = a.out,
                  .jobs = a.jobs,
                  .json = a.command.json},
                 globals.program);
}

/// The dropout that a run brings for the head of the task: an override before all others, `set`. None where the recipe
/// has a dropout of its own, or a head of its own design, and for probes.
std::vector<std::string> overrides_of_head(const OpenFinetuning& opened, const std::vector<std::string>& set) {
  const auto* own = task_head_of(opened.recipe.objectives.at(0));
  if (!own) return {};  // targets are generated by the head that the run has
  const auto config = with_overrides(opened.recipe, set);
  const auto* own_head = task_head_of(config.objectives.at(0));
  const auto brought = brought_dropout(opened.run.folder, opened.run.config, *own);
  const bool probes = own_head && !own_head->layer.empty();
  if (brought < 0 || probes || brought == head_of(*own, own->use(), opened.recipe.model).dropout) return {};
  const auto override = "objectives.0.classifier_dropout=" + shortest(brought);
  if (own->classifier_dropout < 0 && own->head != HeadDesign::babylm) return {override};
  log_info("task", concat("the head of ", opened.run.folder, " has a dropout of ", shortest(brought), ", and ",
                          opened.task.config.like, " has its own; --set ", override, " keeps it"));
  return {};
}

int finetune(FinetuneArguments& a, const FinetuneSources& sources, const Trainer& trainer) {
  std::optional opened = open_finetuning(a, sources);
  if (a.command.run.empty()) a.command.run = default_run_of(*opened);
  if (trainer.goes_on && run_folder(a.command.run) == RunFolder::saved) {
    auto command = a.command;
    command.resume = true;
    command.config = read_resumed_config(command.run + "/run.yaml", {}, command.run);
    return trainer.train(command);
  }
  check_new_run(a.command.run);
  const auto of_run = split_overrides(a.set).of_run;
  auto set = overrides_of_head(*opened, of_run);
  set.insert(set.end(), of_run.begin(), of_run.end());
  const auto of_recipe = points_of(grid_of(opened->task.config.like), set_with_grid(set, a.grid));
  const auto points = drawn_points(grid_points(a.grid, of_recipe), a.tries, seed_of(of_run));
  if (!points.empty()) set = with_best_point(*opened, a, points, set, trainer);
  const auto command = command_for(*opened, a.command, a.command.run, set);
  opened.reset();  // training reads the rows in the folder, and the items of a large task take much memory
  return trainer.train(command);
}

int finetune_or_table(FinetuneArguments& a, const Globals& globals, const Trainer& trainer) {
  const auto sources = sources_of(a);
  a.set = leaf_overrides(a.set);
  if (a.few > 0) a.set.push_back(concat("task.data.few=", a.few));
  refuse_unused(a.set);
  refuse_unused(a.grid);
  a.command.command_line = globals.command_line;
  require<ConfigError>(a.tries == 0 || !a.grid.empty(), "--tries ", a.tries,
                       ": draws settings of --grid, which is not given; leave it out");
  require<ConfigError>(a.jobs == 0 || makes_table(a, sources), "--jobs ", a.jobs,
                       ": several fine-tunings run beside each other, and one is made; leave it out");
  if (!makes_table(a, sources)) return finetune(a, sources, trainer);
  finetune_several(a, sources, globals, trainer);
  return globals.exit_code;
}

}  // namespace

void add_finetune(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("finetune", "fine-tune a run on a task, and judge it");
  auto arguments = std::make_shared<FinetuneArguments>();
  auto* command = &arguments->command;
  verb->add_option("sources", arguments->sources,
                   "pretrained runs, or step folders of them, and task files (YAML) or names of ready tasks: sst2");
  verb->add_option("--run", command->run, "run directory to make (default: runs/RUN-TASK)");
  verb->add_option("--set", arguments->set,
                   "override a config value: KEY=VALUE, or one of the task file: task.KEY=VALUE (repeatable)")
      ->allow_extra_args(false);
  verb->add_option(
      "--like", arguments->like,
      "recipe (default: `like` of the task file, else google-bert); turc-2019 is a grid, of which each point is a run");
  verb->add_option("--grid", arguments->grid,
                   "values that are searched: KEY=VALUE,VALUE,... (repeatable: every value with every other); each "
                   "setting is a run in RUN-grid, and RUN is made with the best one on the valid part")
      ->allow_extra_args(false);
  verb->add_option("--tries", arguments->tries, "settings of --grid that are tried, drawn by train.seed (default: all)")
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--few", arguments->few,
                   "items of each label that are trained on, drawn by train.seed: "
                   "--set task.data.few=N")
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--seeds", arguments->seeds,
                   "fine-tunings of each run on each task, whose seeds are 1 to that number (default: one, train.seed)")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--out", arguments->out,
                   "folder of the table and of the runs, where there are several; the same command goes on there");
  verb->add_option("--jobs", arguments->jobs, "concurrent fine-tunings of several (default: one per core)")
      ->check(CLI::Range(1, 1024));
  verb->add_flag("--skip-bad", arguments->skip_bad, skip_bad_help);
  verb->add_option("--hook", command->hook, "shell command that is told what happens, as of `cloze pretrain`")
      ->envname("CLOZE_HOOK")
      ->allow_extra_args(false);
  verb->add_flag("--json", command->json, "print one line of JSON to standard output at the end");
  add_process_options(*verb, arguments->processes);
  verb->footer(
      "Examples:\n  cloze finetune runs/wiki sst2.yaml --run runs/wiki-sst2\n"
      "  cloze finetune runs/wiki sst2.yaml --set optimizer.learning_rate=1e-4\n"
      "  cloze finetune runs/wiki rte.yaml --like electra --set task.max_length=64\n"
      "  cloze finetune runs/wiki rte.yaml --grid optimizer.learning_rate=2e-5,5e-5,1e-4\n"
      "  cloze finetune runs/wiki runs/other sst2.yaml rte.yaml --seeds 5 --out table\n\n"
      "The result is a run: `cloze pretrain --run RUN --resume` continues it, `cloze\n"
      "evaluate RUN` shows its figures, `cloze predict RUN FILE` uses it.");
  verb->callback([arguments, &globals] {
    globals.exit_code = train_by_processes(arguments->processes, globals, [&](const Trainer& trainer) {
      return finetune_or_table(*arguments, globals, trainer);
    });
  });
}

}  // namespace cloze

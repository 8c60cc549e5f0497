#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/paths.h"
#include "cli/report_output.h"
#include "cli/verbs.h"
#include "core/contains.h"
#include "core/error.h"
#include "core/log.h"
#include "core/file.h"
#include "core/print.h"
#include "study/execution/runner.h"
#include "study/costs/costs.h"
#include "study/search/stages.h"
#include "study/search/task_plan.h"

namespace cloze {

namespace {

constexpr const char* jobs_help =
    "concurrent runs (default: one per core, or as many as train.threads of the runs leaves room for)";
constexpr const char* processes_help = "processes of this machine that train each run together";

struct StudyArguments {
  std::string file, folder;
};

void print_status(const Plan& plan, bool is_stage) {
  if (is_stage) print_text(plan.stage + (plan.waits_for.empty() ? "" : " waits for " + plan.waits_for) + "\n");
  if (!plan.waits_for.empty()) return;
  std::vector<RunStatus> statuses;
  for (const auto& one : plan.runs) statuses.push_back(status_of(plan, one));
  print_text(progress_table(plan, statuses, terminal_columns()));
  for (size_t i = 0; i < statuses.size(); ++i)
    if (!statuses[i].message.empty()) print_text(concat(plan.runs[i].name(), ": ", statuses[i].message, "\n"));
}

CLI::App* add_part(CLI::App& study, const char* name, const char* what, StudyArguments& arguments) {
  auto* part = study.add_subcommand(name, what);
  part->add_option("file", arguments.file, "study file (YAML), or the name of a ready study: masking-rate")->required();
  part->add_option("--out", arguments.folder, "folder of the study (default: studies/NAME)");
  return part;
}

/// Asks for consent on a terminal; without one, `--yes` has to give it.
bool agrees(const std::string& question) {
  if (isatty(0) == 0 || isatty(2) == 0) return false;
  std::fprintf(stderr, "%s [y/N] ", printable(question).c_str());
  std::fflush(stderr);
  const int answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

bool has_tokens(const Plan& plan) {
  return std::none_of(plan.runs.begin(), plan.runs.end(),
                      [](const PlannedRun& run) { return run.config.data.tokens.empty(); });
}

/// Plans of fine-tunings have costs of another kind.
bool fine_tunes(const Plan& plan) { return !plan.runs.empty() && plan.runs.front().is_finetuning(); }

/// Plans in their order with what their runs cost.
class StageCosts {
 public:
  StageCosts(const Stages& stages, const std::string& program, int64_t jobs)
      : stages_(stages), prober_(stages.plans.front().root, program, threads_of_run(jobs), [](const std::string& name) {
          log_progress("probing " + name, false);
        }) {}

  /// The probes of the arms of a plan that trains networks; none where there are no tokens to train on.
  std::vector<Probe> of_arms(const Plan& plan) {
    if (!has_tokens(plan)) return {};
    auto probes = probe_arms(plan, prober_);
    erase_progress();
    check_budgets(plan, probes);
    check_metrics(plan, probes);
    check_scored(plan, probes);
    return probes;
  }

  /// The costs of a fine-tuning of each arm on each task; none as above.
  const std::vector<FinetuningCost>& of_finetunings() {
    if (!costs_.empty() || !has_tokens(stages_.compared())) return costs_;
    costs_ = placed(stages_.compared().study.tasks, [&] { return finetuning_costs(stages_.compared(), prober_); });
    erase_progress();
    return costs_;
  }

 private:
  const Stages& stages_;
  Prober prober_;
  std::vector<FinetuningCost> costs_{};
};

/// Refuses a study without tokens; asks before very many runs, and before they are probed.
void check_runs(const Stages& stages, bool yes) {
  const auto& file = stages.plans.front().file;
  size_t runs = 0;
  for (const auto& plan : stages.plans) {
    runs += plan.runs.size();
    require<ConfigError>(has_tokens(plan), file,
                         ": names no tokens to train on; prepare text with `cloze prepare` and add `set: {data.tokens: "
                         "FOLDER}`");
  }
  constexpr size_t many = 1000;
  if (runs < many || yes) return;
  require<ConfigError>(agrees(concat("Train ", thousands(runs), " runs?")), file, ": asks for ", thousands(runs),
                       " runs; if that is meant, give --yes");
}

/// Throws ConfigError for runs whose results would depend on how many processes train them.
void check_processes(const Stages& stages, int64_t processes) {
  for (const auto& plan : stages.plans)
    for (const auto& run : plan.runs)
      require<ConfigError>(processes == 1 || run.is_finetuning() || run.config.train.parts >= processes, "--processes ",
                           processes, ": ", run.name(), " has train.parts ", run.config.train.parts,
                           ", and each process needs a part of a step; add `set: {train.parts: ", processes, "}` to ",
                           plan.file);
}

/// Refuses a study whose known runs do not fit the disk; returns the memory that the largest of them needs [bytes].
double check_size(const Stages& stages, const std::string& program, int64_t jobs) {
  double disk_bytes = 0, run_memory = 0;
  StageCosts of_stages(stages, program, jobs);
  for (const auto& plan : stages.plans) {
    if (plan.runs.empty()) continue;
    if (fine_tunes(plan)) {
      const auto& costs = of_stages.of_finetunings();
      for (const auto& cost : costs) disk_bytes += finetunings_each(plan, costs) * cost.disk_bytes;
      continue;
    }
    const auto probes = of_stages.of_arms(plan);
    disk_bytes += disk_bytes_of(plan, probes);
    for (const auto& probe : probes) run_memory = std::max(run_memory, probe.memory_bytes);
  }
  const auto& root = stages.plans.front().root;
  require_disk(root, disk_bytes, static_cast<double>(free_bytes(root)));
  return run_memory;
}

/// The stages of a study, each with its runs and what they cost.
void print_plan(const Stages& stages, const std::string& program, int64_t jobs) {
  bool has_costs = true;
  StageCosts of_stages(stages, program, jobs);
  for (const auto& plan : stages.plans) {
    const auto& name = plan.stage;
    if (&plan != &stages.plans.front()) print_text("\n");
    if (plan.runs.empty()) {
      const size_t most = static_cast<size_t>(plan.study.trials) * plan.seeds.size();
      print_text(concat(name, ": ", most, most == 1 ? " run" : " runs", " at most in ", plan.folder, ", waits for ",
                        plan.waits_for, "\n"));
      continue;
    }
    if (stages.plans.size() > 1)
      print_text(name + (plan.waits_for.empty() ? "" : ", waits for " + plan.waits_for) + "\n");
    if (fine_tunes(plan)) {
      const auto& costs = of_stages.of_finetunings();
      const bool is_search = stages.task_tuning && &plan == &stages.plans[*stages.task_tuning];
      const auto plan_text = is_search ? task_tuning_text : task_plan_text;
      print_text(plan_text(plan, costs, jobs, terminal_columns()));
      continue;
    }
    const auto probes = of_stages.of_arms(plan);
    has_costs = has_costs && !probes.empty();
    print_text(plan_table(plan, probes, jobs, terminal_columns()));
  }
  if (!has_costs) print_text("\nno costs: name prepared tokens by `set: {data.tokens: FOLDER}`\n");
}

/// Names of runs, each as `study run --only` takes it; the probe of a run is trained with it, and a fine-tuning is
/// named when its run has ended.
std::vector<std::string> open_runs(const Stages& stages) {
  std::vector<std::string> names;
  for (const auto& plan : stages.plans) {
    if (!plan.waits_for.empty() || (stages.plans.size() > 1 && is_settled(plan))) continue;
    for (const auto& run : plan.runs) {
      if (status_of(plan, run).state == RunState::done) continue;
      if (run.is_finetuning() && !std::filesystem::exists(run.source() + "/held_out.json")) continue;
      const auto name = run.name();
      if (!contains(names, name)) names.push_back(name);
    }
  }
  return names;
}

using Arguments = std::shared_ptr<StudyArguments>;

/// The stages of a study, whose file is found.
Stages stages_of(StudyArguments& arguments) {
  arguments.file = study_file(arguments.file);
  return make_stages(arguments.file, arguments.folder);
}

void add_plan(CLI::App& study, Globals& globals, const Arguments& arguments) {
  auto* verb = add_part(study, "plan", "print arms, what each run costs, and what is equal", *arguments);
  auto jobs = std::make_shared<int64_t>(0);
  verb->add_option("--jobs", *jobs, jobs_help)->check(CLI::Range(1, 1024));
  verb->footer("Example:\n  cloze study plan masking.yaml --jobs 2");
  verb->callback([=, &globals] {
    const auto stages = stages_of(*arguments);
    print_plan(stages, globals.program, concurrent_runs(*jobs, stages.plans.front()));
  });
}

struct RunArguments {
  RunnerOptions runner{};
  bool keep = false, redo = false, yes = false;
};

void run(StudyArguments& arguments, RunArguments& options, Globals& globals) {
  auto& runner = options.runner;
  arguments.file = study_file(arguments.file);
  runner.program = globals.program;
  if (runner.processes > 1) check_processes(stages_of(arguments), runner.processes);
  runner.stale = options.redo ? StaleRuns::redo : options.keep ? StaleRuns::keep : StaleRuns::refuse;
  if (runner.only.empty()) {  // a single run checks its own disk
    const auto stages = stages_of(arguments);
    check_runs(stages, options.yes);
    std::filesystem::create_directories(stages.plans.front().root);
    const auto jobs = concurrent_runs(runner.jobs, stages.plans.front(), runner.processes);
    runner.run_memory = check_size(stages, globals.program, jobs) * static_cast<double>(runner.processes);
  }
  const auto progress = run_stages(arguments.file, arguments.folder, runner);
  log_info("study", concat(progress.done, progress.done == 1 ? " run done, " : " runs done, ", progress.failed,
                           " failed, ", progress.elsewhere, " run by other processes, ", progress.waiting, " waiting"));
  require_none_failed(progress);
}

void add_run(CLI::App& study, Globals& globals, const Arguments& arguments) {
  auto* verb = add_part(study, "run", "train the runs that are not done", *arguments);
  auto options = std::make_shared<RunArguments>();
  verb->add_option("--jobs", options->runner.jobs, jobs_help)->check(CLI::Range(1, 1024));
  verb->add_option("--processes", options->runner.processes, processes_help)->check(CLI::Range(1, 1024));
  verb->add_option("--only", options->runner.only, "train only ARM or ARM/SEED (repeatable)")->allow_extra_args(false);
  auto* keep = verb->add_flag("--keep", options->keep, "keep runs made from another config, text, version or weights");
  verb->add_flag("--redo", options->redo, "train such runs again")->excludes(keep);
  verb->add_flag("--yes", options->yes, "train a thousand runs and more without asking");
  verb->footer("Examples:\n  cloze study run masking.yaml\n  cloze study run masking.yaml --only token/1");
  verb->callback([=, &globals] { run(*arguments, *options, globals); });
}

void add_status(CLI::App& study, const Arguments& arguments) {
  auto* verb = add_part(study, "status", "print the state of every run", *arguments);
  verb->footer("Example:\n  cloze study status masking.yaml");
  verb->callback([=] {
    const auto stages = stages_of(*arguments);
    for (const auto& plan : stages.plans) print_status(plan, stages.plans.size() > 1);
  });
}

void add_study_report(CLI::App& study, const Arguments& arguments) {
  auto* verb = add_part(study, "report", "compare the finished runs", *arguments);
  auto options = std::make_shared<ReportOptions>();
  add_report_options(*verb, *options, "--output");  // --out is the folder of the study
  verb->footer("Examples:\n  cloze study report masking.yaml\n  cloze study report masking.yaml --output masking.html");
  verb->callback([=] {
    const auto stages = stages_of(*arguments);
    options->read = {arguments->file};
    put_report(make_report(stages), *options, stages.compared().root + "/report.html");
  });
}

/// What is left to do in each stage, also in those whose configs depend on others. A rung of a search has as many
/// processes as runs, of which the rung before keeps one of so many.
std::vector<StageTasks> open_stages(const Stages& stages) {
  std::vector<StageTasks> open;
  int64_t before = 0;
  for (const auto& plan : stages.plans) {
    StageTasks tasks{.stage = plan.stage};
    for (const auto& run : plan.runs)
      if (status_of(plan, run).state != RunState::done) tasks.runs.push_back(run.name());
    if (plan.runs.empty()) tasks.processes = std::max<int64_t>(1, before / std::max<int64_t>(1, plan.study.halving));
    before = std::max(std::ssize(plan.runs), tasks.processes);
    if (!tasks.runs.empty() || tasks.processes > 0) open.push_back(std::move(tasks));
  }
  return open;
}

void print_slurm(const Stages& stages, const std::string& program, int64_t processes) {
  const auto& plan = stages.plans.front();
  const auto open = open_stages(stages);
  if (open.empty()) return log_info("study", "no run is left to start");
  print_data(open.size() == 1 ? slurm_script(plan, open.front(), program, processes)
                              : slurm_chain(plan, open, program, processes));
}

void print_commands(const Stages& stages, const std::string& program, int64_t processes) {
  const auto runs = open_runs(stages);
  if (runs.empty()) return log_info("study", "no run is left to start");
  print_data(command_lines(stages.plans.front(), runs, program, processes));
  for (const auto& later : stages.plans)
    if (const auto last = fine_tunes(later) ? std::string("the stage before") : later.waits_for; !last.empty())
      log_info("study", concat(later.stage, ": its commands are known when ", last, " has ended"));
}

void add_commands(CLI::App& study, Globals& globals, const Arguments& arguments) {
  auto* verb = add_part(study, "commands", "print one command per run, for other schedulers", *arguments);
  auto slurm = std::make_shared<bool>(false);
  auto processes = std::make_shared<int64_t>(1);
  verb->add_flag("--slurm", *slurm,
                 "print an array job for sbatch instead; of several stages a script that submits one after the other");
  verb->add_option("--processes", *processes, processes_help)->check(CLI::Range(1, 1024));
  verb->footer(
      "Examples:\n  cloze study commands masking.yaml\n  cloze study commands masking.yaml --slurm > masking.sh");
  verb->callback([=, &globals] {
    const auto stages = stages_of(*arguments);
    check_processes(stages, *processes);
    const auto print = *slurm ? print_slurm : print_commands;
    print(stages, globals.program, *processes);
  });
}

}  // namespace

void add_study(CLI::App& app, Globals& globals) {
  auto* study = app.add_subcommand("study", "compare configs over seeds, with intervals and a verdict");
  study->require_subcommand(1);
  study->footer("Example:\n  cloze study run masking.yaml\n  cloze study report masking.yaml");
  const auto arguments = std::make_shared<StudyArguments>();
  add_plan(*study, globals, arguments);
  add_run(*study, globals, arguments);
  add_status(*study, arguments);
  add_study_report(*study, arguments);
  add_commands(*study, globals, arguments);
}

}  // namespace cloze

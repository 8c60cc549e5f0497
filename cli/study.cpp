#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/report_output.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "core/file.h"
#include "study/commands.h"
#include "study/plan_table.h"
#include "study/probe.h"
#include "study/progress_view.h"
#include "study/stages.h"

namespace cloze {

namespace {

constexpr const char* jobs_help = "concurrent runs (default: one per core)";

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

struct StudyArguments {
  std::string file, folder;
};

void print_status(const Plan& plan, bool is_stage) {
  if (is_stage)
    std::printf("%s%s\n", plan.stage.c_str(), plan.waits_for.empty() ? "" : (" waits for " + plan.waits_for).c_str());
  if (!plan.waits_for.empty()) return;
  std::vector<RunStatus> statuses;
  for (const auto& one : plan.runs) statuses.push_back(status_of(plan, one));
  std::printf("%s", progress_table(plan, statuses, terminal_columns()).c_str());
  for (size_t i = 0; i < statuses.size(); ++i)
    if (!statuses[i].message.empty())
      std::printf("%s/%lld: %s\n", plan.runs[i].arm.c_str(), static_cast<long long>(plan.runs[i].seed),
                  statuses[i].message.c_str());
}

CLI::App* add_part(CLI::App& study, const char* name, const char* what, StudyArguments& arguments) {
  auto* part = study.add_subcommand(name, what);
  part->add_option("file", arguments.file, "study file (YAML)")->required();
  part->add_option("--out", arguments.folder, "folder of the study (default: studies/NAME)");
  return part;
}

/// Asks for consent on a terminal; without one, `--yes` has to give it.
bool agrees(const std::string& question) {
  if (isatty(0) == 0 || isatty(2) == 0) return false;
  std::fprintf(stderr, "%s [y/N] ", question.c_str());
  std::fflush(stderr);
  const int answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

/// The probes of all arms; none where there are no tokens to train on.
std::vector<Probe> probes_of(const Plan& plan, const std::string& program, int64_t jobs) {
  for (size_t i = 0; i < plan.arms.size(); ++i)
    if (plan.runs[i].config.data.tokens.empty()) return {};
  const auto note = [](const std::string& arm) { log_progress("probing arm " + arm, false); };
  auto probes = probe_arms(plan, program, threads_of_run(jobs), note);
  end_progress();
  return probes;
}

/// What the known runs of all stages cost.
struct StudyCost {
  size_t runs = 0;
  double disk_bytes = 0, run_memory = 0;
  bool is_known = true;  ///< there are tokens to probe with
};

StudyCost cost_of(const Stages& stages, const std::string& program, int64_t jobs) {
  StudyCost cost;
  for (const auto& plan : stages.plans) {
    if (plan.runs.empty()) continue;
    const auto probes = probes_of(plan, program, jobs);
    cost.is_known = cost.is_known && !probes.empty();
    cost.runs += plan.runs.size();
    cost.disk_bytes += disk_bytes_of(plan, probes);
    for (const auto& probe : probes) cost.run_memory = std::max(cost.run_memory, probe.memory_bytes);
  }
  return cost;
}

/// Refuses a study that does not fit the disk; asks before very many runs.
void check_size(const Plan& plan, const StudyCost& cost, bool yes) {
  require<ConfigError>(cost.is_known, plan.file,
                       ": names no tokens to train on; prepare text with `cloze prepare` and add `set: {data.tokens: "
                       "FOLDER}`");
  require_disk(plan.root, cost.disk_bytes, static_cast<double>(free_bytes(plan.root)));
  constexpr size_t many = 1000;
  if (cost.runs < many || yes) return;
  require<ConfigError>(agrees(words("Train ", thousands(cost.runs), " runs?")), plan.file, ": asks for ",
                       thousands(cost.runs), " runs; if that is meant, give --yes");
}

/// The stages of a study, each with its runs and what they cost.
void print_plan(const Stages& stages, const std::string& program, int64_t jobs) {
  bool has_costs = true;
  for (const auto& plan : stages.plans) {
    const auto& name = plan.stage;
    if (&plan != &stages.plans.front()) print("\n");
    if (plan.runs.empty()) {
      print(words(name, ": ", static_cast<size_t>(plan.study.trials) * plan.seeds.size(), " runs at most in ",
                  plan.folder, ", waits for ", plan.waits_for, "\n"));
      continue;
    }
    if (stages.plans.size() > 1) print(name + (plan.waits_for.empty() ? "" : ", waits for " + plan.waits_for) + "\n");
    const auto probes = probes_of(plan, program, jobs);
    has_costs = has_costs && !probes.empty();
    print(plan_table(plan, probes, jobs, terminal_columns()));
  }
  if (!has_costs) print("\nno costs: name prepared tokens by `set: {data.tokens: FOLDER}`\n");
}

/// Names of runs, each as `study run --only` takes it; the probe of a run is trained with it.
std::vector<std::string> open_runs(const Stages& stages) {
  std::vector<std::string> names;
  for (const auto& plan : stages.plans) {
    if (!plan.waits_for.empty() || (stages.plans.size() > 1 && is_settled(plan))) continue;
    for (const auto& run : plan.runs) {
      if (status_of(plan, run).state == RunState::done) continue;
      const auto name = run.arm + "/" + std::to_string(run.seed);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

void add_study(CLI::App& app, Globals& globals) {
  auto* study = app.add_subcommand("study", "compare configs over seeds, with intervals and a verdict");
  study->require_subcommand(1);
  study->footer("Example:\n  cloze study run masking.yaml\n  cloze study report masking.yaml");
  auto arguments = std::make_shared<StudyArguments>();
  auto* plan_part = add_part(*study, "plan", "print arms, what each run costs, and what is equal", *arguments);
  auto plan_jobs = std::make_shared<int64_t>(0);
  plan_part->add_option("--jobs", *plan_jobs, jobs_help)->check(CLI::Range(1, 1024));
  plan_part->callback([=, &globals] {
    const auto stages = make_stages(arguments->file, arguments->folder);
    print_plan(stages, globals.program, concurrent_runs(*plan_jobs));
  });

  auto* run = add_part(*study, "run", "train the runs that are not done", *arguments);
  auto options = std::make_shared<RunnerOptions>();
  auto keep = std::make_shared<bool>(false), redo = std::make_shared<bool>(false);
  auto yes = std::make_shared<bool>(false);
  run->add_option("--jobs", options->jobs, jobs_help)->check(CLI::Range(1, 1024));
  run->add_option("--only", options->only, "train only ARM or ARM/SEED (repeatable)")->allow_extra_args(false);
  auto* keep_flag = run->add_flag("--keep", *keep, "keep runs made from another config, text or version");
  run->add_flag("--redo", *redo, "train such runs again")->excludes(keep_flag);
  run->add_flag("--yes", *yes, "train a thousand runs and more without asking");
  run->callback([=, &globals] {
    options->program = globals.program;
    options->stale = *redo ? StaleRuns::redo : *keep ? StaleRuns::keep : StaleRuns::refuse;
    const auto stages = make_stages(arguments->file, arguments->folder);
    std::filesystem::create_directories(stages.plans.front().root);
    if (options->only.empty()) {  // a single run checks its own disk
      const auto cost = cost_of(stages, globals.program, concurrent_runs(options->jobs));
      check_size(stages.plans.front(), cost, *yes);
      options->run_memory = cost.run_memory;
    }
    const auto progress = run_stages(arguments->file, arguments->folder, *options);
    log_info("study", words(progress.done, " runs done, ", progress.failed, " failed, ", progress.elsewhere,
                            " run by other processes, ", progress.waiting, " waiting"));
    globals.exit_code = progress.failed > 0 ? 1 : 0;
  });

  add_part(*study, "status", "print the state of every run", *arguments)->callback([=] {
    const auto stages = make_stages(arguments->file, arguments->folder);
    for (const auto& plan : stages.plans) print_status(plan, stages.plans.size() > 1);
  });

  auto* report = add_part(*study, "report", "compare the finished runs", *arguments);
  auto reporting = std::make_shared<ReportOptions>();
  add_report_options(*report, *reporting);
  report->footer(
      "Examples:\n  cloze study report masking.yaml\n  cloze study report masking.yaml --output masking.html");
  report->callback([=] {
    const auto plan = make_plan(arguments->file, arguments->folder);
    put_report(make_report(plan), *reporting, plan.root + "/report.html");
  });

  auto* commands = add_part(*study, "commands", "print one command per run, for other schedulers", *arguments);
  auto slurm = std::make_shared<bool>(false);
  commands->add_flag("--slurm", *slurm, "print an array job for sbatch instead");
  commands->callback([=, &globals] {
    const auto stages = make_stages(arguments->file, arguments->folder);
    const auto& plan = stages.plans.front();
    const auto runs = open_runs(stages);
    if (runs.empty()) return log_info("study", "no run is left to start");
    print(*slurm ? slurm_script(plan, runs, globals.program) : command_lines(plan, runs, globals.program));
    for (const auto& later : stages.plans)
      if (!later.waits_for.empty())
        log_info("study", words(later.stage, ": its commands are known when ", later.waits_for, " has ended"));
  });
}

}  // namespace cloze

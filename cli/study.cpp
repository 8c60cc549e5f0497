#include <unistd.h>

#include <algorithm>
#include <cstdio>

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

/// Refuses a study that does not fit the disk; asks before very many runs.
void check_size(const Plan& plan, const std::vector<Probe>& probes, bool yes) {
  const double needed = disk_bytes_of(plan, probes), free = static_cast<double>(free_bytes(plan.folder));
  require<Error>(needed < free, plan.folder, ": the runs need ", bytes(needed), " of disk, of which ", bytes(free),
                 " are free; free some space, or give another folder with --out");
  constexpr size_t many = 1000;
  if (plan.runs.size() < many || yes) return;
  require<ConfigError>(agrees(words("Train ", thousands(plan.runs.size()), " runs?")), plan.file, ": asks for ",
                       thousands(plan.runs.size()), " runs; if that is meant, give --yes");
}

/// The runs that are compared, or what comes first while these are not known.
const Plan& first_known(const Stages& stages) {
  return stages.compared().runs.empty() ? stages.plans.front() : stages.compared();
}

/// The stages of a study that has more than one, each with its runs.
void print_stages(const Stages& stages) {
  if (stages.plans.size() == 1) return;
  for (const auto& plan : stages.plans) {
    const auto runs = plan.runs.empty() ? static_cast<size_t>(plan.study.trials) * plan.seeds.size() : plan.runs.size();
    std::printf("stage     %s: %zu runs in %s%s\n", plan.stage.c_str(), runs, plan.folder.c_str(),
                plan.waits_for.empty() ? "" : words(", waits for ", plan.waits_for).c_str());
  }
}

/// Names of runs, each as `study run --only` takes it; the probe of a run is trained with it.
std::vector<std::string> open_runs(const Stages& stages) {
  std::vector<std::string> names;
  for (const auto& plan : stages.plans) {
    if (!plan.waits_for.empty() || (stages.plans.size() > 1 && is_settled(plan))) continue;
    for (const auto& run : plan.runs) {
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
    print_stages(stages);
    const auto& plan = first_known(stages);
    const auto jobs = concurrent_runs(*plan_jobs);
    const auto probes = probes_of(plan, globals.program, jobs);
    print(plan_table(plan, probes, jobs, terminal_columns()));
    if (probes.empty()) print("\nno costs: name prepared tokens by `set: {data.tokens: FOLDER}`\n");
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
    const auto& plan = first_known(stages);
    const auto probes = probes_of(plan, globals.program, concurrent_runs(options->jobs));
    require<ConfigError>(!probes.empty(), plan.file,
                         ": names no tokens to train on; prepare text with `cloze prepare` and add `set: {data.tokens: "
                         "FOLDER}`");
    check_size(plan, probes, *yes);
    for (const auto& probe : probes) options->run_memory = std::max(options->run_memory, probe.memory_bytes);
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
    put_report(make_report(plan), *reporting, plan.folder + "/report.html");
  });

  auto* commands = add_part(*study, "commands", "print one command per run, for other schedulers", *arguments);
  auto slurm = std::make_shared<bool>(false);
  commands->add_flag("--slurm", *slurm, "print an array job for sbatch instead");
  commands->callback([=, &globals] {
    const auto stages = make_stages(arguments->file, arguments->folder);
    const auto& plan = stages.plans.front();
    const auto runs = open_runs(stages);
    print(*slurm ? slurm_script(plan, runs, globals.program) : command_lines(plan, runs, globals.program));
    for (const auto& later : stages.plans)
      if (!later.waits_for.empty())
        log_info("study", words(later.stage, ": its commands are known when ", later.waits_for, " has ended"));
  });
}

}  // namespace cloze

#include <cstdio>

#include "cli/report_output.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "study/progress_view.h"
#include "study/runner.h"

namespace cloze {

namespace {

struct StudyArguments {
  std::string file, folder;
};

CLI::App* add_part(CLI::App& study, const char* name, const char* what, StudyArguments& arguments) {
  auto* part = study.add_subcommand(name, what);
  part->add_option("file", arguments.file, "study file (YAML)")->required();
  part->add_option("--out", arguments.folder, "folder of the study (default: studies/NAME)");
  return part;
}

void print_plan(const Plan& plan) {
  std::printf("%s: %zu arms x %zu seeds = %zu runs in %s\n", plan.study.study.c_str(), plan.arms.size(),
              plan.seeds.size(), plan.runs.size(), plan.folder.c_str());
  const auto& budget = plan.runs.front().config.train.budget;
  if (budget.steps > 0)
    std::printf("budget    %s steps a run\n", thousands(static_cast<uint64_t>(budget.steps)).c_str());
  if (budget.tokens > 0)
    std::printf("budget    %s tokens a run\n", thousands(static_cast<uint64_t>(budget.tokens)).c_str());
  if (budget.minutes > 0) std::printf("budget    %s minutes a run\n", shortest(budget.minutes).c_str());
  std::printf("metric    held-out %s, %lld sequences\n", plan.study.metric.objective.c_str(),
              static_cast<long long>(plan.study.metric.sequences));
  for (const auto& arm : plan.arms) {
    std::string keys;
    for (const auto& [key, value] : arm.keys) keys += (keys.empty() ? "" : ", ") + key + ": " + one_line(value);
    std::printf("arm       %s%s: %s\n", arm.name.c_str(), &arm == &plan.arms.front() ? " (baseline)" : "",
                keys.empty() ? "the base config" : keys.c_str());
  }
}

}  // namespace

void add_study(CLI::App& app, Globals& globals) {
  auto* study = app.add_subcommand("study", "compare configs over seeds, with intervals and a verdict");
  study->require_subcommand(1);
  study->footer("Example:\n  cloze study run masking.yaml\n  cloze study report masking.yaml");
  auto arguments = std::make_shared<StudyArguments>();
  add_part(*study, "plan", "print arms, seeds and budget", *arguments)->callback([=] {
    print_plan(make_plan(arguments->file, arguments->folder));
  });

  auto* run = add_part(*study, "run", "train the runs that are not done", *arguments);
  auto options = std::make_shared<RunnerOptions>();
  auto keep = std::make_shared<bool>(false), redo = std::make_shared<bool>(false);
  run->add_option("--jobs", options->jobs, "concurrent runs (default: one per core)")->check(CLI::Range(1, 1024));
  run->add_option("--only", options->only, "train only ARM or ARM/SEED (repeatable)")->allow_extra_args(false);
  auto* keep_flag = run->add_flag("--keep", *keep, "keep runs made from another config, text or version");
  run->add_flag("--redo", *redo, "train such runs again")->excludes(keep_flag);
  run->callback([=, &globals] {
    options->program = globals.program;
    options->stale = *redo ? StaleRuns::redo : *keep ? StaleRuns::keep : StaleRuns::refuse;
    const auto plan = make_plan(arguments->file, arguments->folder);
    const auto progress = run_study(plan, *options);
    log_info("study", words(progress.done, " runs done, ", progress.failed, " failed, ", progress.elsewhere,
                            " run by other processes, ", progress.waiting, " waiting"));
    globals.exit_code = progress.failed > 0 ? 1 : 0;
  });

  add_part(*study, "status", "print the state of every run", *arguments)->callback([=] {
    const auto plan = make_plan(arguments->file, arguments->folder);
    std::vector<RunStatus> statuses;
    for (const auto& one : plan.runs) statuses.push_back(status_of(plan, one));
    std::printf("%s", progress_table(plan, statuses, terminal_columns()).c_str());
    for (size_t i = 0; i < statuses.size(); ++i)
      if (!statuses[i].message.empty())
        std::printf("%s/%lld: %s\n", plan.runs[i].arm.c_str(), static_cast<long long>(plan.runs[i].seed),
                    statuses[i].message.c_str());
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

  add_part(*study, "commands", "print one command per run, for other schedulers", *arguments)->callback([=, &globals] {
    const auto plan = make_plan(arguments->file, arguments->folder);
    for (const auto& one : plan.runs)
      std::printf("%s study run %s --out %s --jobs 1 --only '%s/%lld'\n", globals.program.c_str(), plan.file.c_str(),
                  plan.folder.c_str(), one.arm.c_str(), static_cast<long long>(one.seed));
  });
}

}  // namespace cloze

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "core/log.h"
#include "study/progress_view.h"
#include "study/report.h"
#include "study/stages.h"

namespace cloze {

namespace {

struct StudyArguments {
  std::string file, folder;
};

int64_t terminal_columns() {
  winsize size{};
  return ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

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

void print_report(const Plan& plan, const std::string& format, bool json) {
  const auto report = make_report(plan);
  std::string text;
  if (json)
    text = to_json(report).dump() + "\n";
  else if (format == "markdown")
    text = to_markdown(report);
  else if (format == "csv")
    text = to_csv(report);
  else if (format == "latex")
    text = to_latex(report);
  else
    text = to_text(report, terminal_columns());
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void add_study(CLI::App& app, Globals& globals) {
  auto* study = app.add_subcommand("study", "compare configs over seeds, with intervals and a verdict");
  study->require_subcommand(1);
  study->footer("Example:\n  cloze study run masking.yaml\n  cloze study report masking.yaml");
  auto arguments = std::make_shared<StudyArguments>();
  add_part(*study, "plan", "print arms, seeds and budget", *arguments)->callback([=] {
    const auto stages = make_stages(arguments->file, arguments->folder);
    print_stages(stages);
    print_plan(first_known(stages));
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
  auto format = std::make_shared<std::string>("text");
  auto json = std::make_shared<bool>(false);
  report->add_option("--format", *format, "format of the report")
      ->check(CLI::IsMember({"text", "markdown", "csv", "latex"}))
      ->capture_default_str();
  report->add_flag("--json", *json, json_help);
  report->callback([=] { print_report(make_plan(arguments->file, arguments->folder), *format, *json); });

  add_part(*study, "commands", "print one command per run, for other schedulers", *arguments)->callback([=, &globals] {
    const auto stages = make_stages(arguments->file, arguments->folder);
    const auto& first = stages.plans.front();
    for (const auto& name : open_runs(stages))
      std::printf("%s study run %s --out %s --jobs 1 --only '%s'\n", globals.program.c_str(), first.file.c_str(),
                  first.root.c_str(), name.c_str());
    for (const auto& plan : stages.plans)
      if (!plan.waits_for.empty())
        log_info("study", words(plan.stage, ": its commands are known when ", plan.waits_for, " has ended"));
  });
}

}  // namespace cloze

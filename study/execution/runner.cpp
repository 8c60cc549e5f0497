#include "study/execution/runner.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <sys/wait.h>
#include <thread>

#include "core/contains.h"
#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/text.h"
#include "run/checkpoints/checksums.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "study/execution/process.h"
#include "study/execution/runs.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

int64_t cores() { return std::max(1U, std::thread::hardware_concurrency()); }

/// Copies a run's folder; a copy that was cut is not taken for a run.
void copy_run(const std::string& source, const std::string& folder) {
  StagedFolder staged(folder);
  fs::copy(source, staged.path(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  staged.commit();
}

bool has_config(const std::string& folder) { return fs::exists(folder + "/run.yaml"); }

/// Whether a run may be trained in a folder: it is there, or nothing but what a start that was killed left.
bool is_for(const PlannedRun& run, const std::string& folder) {
  if (has_config(folder)) return true;
  const auto state = run_folder(folder);
  return state == RunFolder::vacant || (state == RunFolder::begun && run.kind != RunKind::continued);
}

/// Whether a run that starts from the one of an earlier stage was killed before its first checkpoint. It begins anew,
/// from where that one is now: to go on, it would need the path of then, which is gone where the study was moved.
bool begins_anew(const PlannedRun& run, const std::string& folder) {
  return !run.inputs.empty() && run.kind != RunKind::continued && run_folder(folder) == RunFolder::begun;
}

/// Whether a file name is that of a config or a record of a study that was left half written.
bool is_half_written(const std::string& name) {
  if (!is_staged(name)) return false;
  const auto extension = fs::path(name.substr(0, name.rfind(".tmp-"))).extension();
  return extension == ".json" || extension == ".yaml";
}

/// Throws ConfigError for a link between the folder of a study and those of its runs, through which what is elsewhere
/// would be written to.
void require_no_links(const Plan& plan) {
  std::error_code unknown;
  for (const auto& run : plan.runs) {
    fs::path at = plan.root;
    for (const auto& part : fs::path(run.folder).lexically_relative(plan.root)) {
      at /= part;
      require<ConfigError>(!fs::is_symlink(at, unknown), at.string(),
                           ": is a link, through which another folder would be changed; put a folder of its own there, "
                           "or the whole study elsewhere with --out");
    }
  }
}

/// Removes what killed processes left half written in the folder of a study and in those of its arms.
void sweep_study(const Plan& plan) {
  std::set<std::string> folders{plan.root, plan.folder};
  for (const auto& run : plan.runs) folders.insert(fs::path(run.folder).parent_path().string());
  for (const auto& folder : folders) sweep_staged(folder, is_half_written);
}

struct Child {
  const PlannedRun* run;
  Lock claim;
  RunRecord record{};
};

class Runner {
 public:
  Runner(const Plan& plan, const RunnerOptions& options)
      : plan_(plan), options_(options), queue_(selected_runs(plan, options.only)), view_(plan, queue_.size()) {
    jobs_ = concurrent_runs(options.jobs, plan, options.processes);
    // Runs that were killed first, so that no seed stays without its pair.
    std::ranges::stable_partition(queue_, [&](const PlannedRun* run) { return has_config(run->folder); });
    refuse_or_take_stale();
    std::error_code error;
    fs::create_directories(plan.folder, error);
    require<Error>(!error, plan.folder, ": cannot be created (", error.message(), ")");
    largest_ = options.run_memory;
  }

  StudyProgress run() {
    while (!interrupted && (start_some() || !children_.empty() || take_up_passed())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      collect();
      view_.show(false);
    }
    if (interrupted) stop_all();
    view_.show(true);
    return progress();
  }

 private:
  void refuse_or_take_stale() {
    std::string names, unfinished;
    std::vector<const PlannedRun*> kept;
    for (const auto* run : queue_) {
      const auto status = status_of(plan_, *run);
      if (status.state == RunState::done) view_.skip();
      const bool stays = status.state == RunState::stale && options_.stale != StaleRuns::redo;
      if (!stays && status.state != RunState::done && status.state != RunState::running) require_own_folder(*run);
      if (status.state != RunState::stale) continue;
      const auto name = run->name();
      names += (names.empty() ? "" : ", ") + name;
      if (options_.stale == StaleRuns::redo) remove(*run);
      if (options_.stale != StaleRuns::keep) continue;
      if (read_record(record_path(*run))->done && status.lost_result.empty())
        kept.push_back(run);
      else
        unfinished += (unfinished.empty() ? "" : ", ") + name;
    }
    require<ConfigError>(unfinished.empty(), plan_.folder,
                         ": these runs have no result that --keep could leave: ", unfinished,
                         "; make them again first, with --redo and --only");
    for (const auto* run : kept) keep(*run);
    require<ConfigError>(
        names.empty() || options_.stale != StaleRuns::refuse, plan_.folder,
        ": these runs were made from another config, text, tokenizer or version, or from other weights: ", names, "; ",
        plan_.file.empty() ? "name another folder with --out"
                           : "make them again with --redo, or leave them as they are with --keep, "
                             "which the report says");
  }

  /// Throws ConfigError where something else stands in the place of a run that is to be trained: it is never removed.
  void require_own_folder(const PlannedRun& run) const {
    const auto& folder = run.folder;
    require<ConfigError>(
        is_for(run, folder), folder,
        ": stands where the study puts a run, and has no run.yaml, which would say that it is that run; "
        "restore the file, or move the folder away, and the run is trained anew");
  }

  void remove(const PlannedRun& run) const {
    const auto claim = Lock::take(claim_path(run));
    require<Error>(claim.has_value(), run.folder, ": another process works on it; stop that one first");
    fs::remove_all(run.folder);
    fs::remove(record_path(run));
    fs::remove(log_path(run));
  }

  /// Notes that a run counts for this plan as it is.
  void keep(const PlannedRun& run) const {
    auto record = *read_record(record_path(run));
    record.kept = run.fingerprint;
    record.first_weights = weights_fingerprint(first_checkpoint(run));
    record.last_weights = weights_fingerprint(newest_step(run.folder));
    write_record(record_path(run), record);
  }

  /// Starts runs while there is room; false when nothing is left to start.
  bool start_some() {
    while (std::ssize(children_) < jobs_ && !queue_.empty() && has_memory()) {
      const auto* run = queue_.front();
      queue_.erase(queue_.begin());
      const bool can_begin = run->inputs.empty() || fs::exists(run->source() + "/held_out.json");
      if (can_begin && status_of(plan_, *run).state != RunState::done) start(*run);
    }
    return !queue_.empty();
  }

  /// Starts a run, unless another process works on it.
  void start(const PlannedRun& run) {
    fs::create_directories(fs::path(run.folder).parent_path());
    auto claim = Lock::take(claim_path(run));
    if (!claim) return passed_.push_back(&run);
    if (status_of_record(run)) return;  // it ended between the two looks
    auto started = run;
    if (started.config.train.threads == 0) started.config.train.threads = threads_of_run(jobs_ * options_.processes);
    set_source(started);
    if (!run.is_finetuning()) write_atomic(config_path(run), to_yaml(started.config));
    const auto record = record_of_start(run);
    write_record(record_path(run), record);
    require_own_folder(run);
    if (run.kind == RunKind::continued && !has_config(run.folder)) copy_run(run.source(), run.folder);
    auto command = run_command(started, options_.program);
    if (options_.processes > 1 && !run.is_finetuning())
      command.insert(command.end(), {"--processes", concat(options_.processes)});
    // A run that outlives this process keeps its claim.
    const auto pid = start_process(command, log_path(run), claim->descriptor());
    children_.emplace(pid, Child{&run, std::move(*claim), record});
  }

  /// Queues runs again whose process has ended without finishing them; false if there are none.
  bool take_up_passed() {
    for (const auto* run : passed_)
      if (status_of(plan_, *run).state == RunState::waiting) queue_.push_back(run);
    std::erase_if(passed_, [&](const auto* run) { return contains(queue_, run); });
    return !queue_.empty();
  }

  /// Whether a run goes on from a checkpoint of its own.
  bool goes_on(const PlannedRun& run) const {
    const auto& folder = run.folder;
    return has_config(folder) && !begins_anew(run, folder);
  }

  /// The record of a run that starts. One that goes on began with the weights that its record says.
  RunRecord record_of_start(const PlannedRun& run) const {
    const auto before = read_record(record_path(run));
    return {
        .fingerprint = run.fingerprint,
        .version = CLOZE_VERSION,
        .first_weights = before && goes_on(run) ? before->first_weights : weights_fingerprint(first_checkpoint(run))};
  }

  /// Gives a run the checkpoint that it begins with. One that goes on keeps the path from which it was initialized,
  /// which is another one where the study was moved.
  void set_source(PlannedRun& run) const {
    const auto& folder = run.folder;
    auto& from = run.config.init.from;
    if (from.empty()) return;
    if (run.kind != RunKind::continued) from = first_checkpoint(run);
    if (run.is_finetuning() || !goes_on(run)) return;
    try {
      from = decode<RunConfig>(load_run_config(folder + "/run.yaml")).init.from;
    } catch (const Error&) {
      // The run itself says what is wrong with its run.yaml, and the others go on.
    }
  }

  bool status_of_record(const PlannedRun& run) const {
    const auto record = read_record(record_path(run));
    return record && record->done && record->fingerprint == run.fingerprint &&
           result_fault(plan_, run, *record).empty();
  }

  /// The free memory holds one more run like the largest so far, or as it was probed.
  bool has_memory() {
    for (const auto& [pid, child] : children_) largest_ = std::max(largest_, resident_bytes(pid));
    return children_.empty() || available_memory() > 1.2 * largest_;
  }

  void collect() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto child = children_.find(pid);
      if (child == children_.end()) continue;
      const auto& run = *child->second.run;
      const auto failure = failure_of(status, log_path(run));
      const bool stopped = WIFEXITED(status) && WEXITSTATUS(status) == 130;
      if (!stopped) {
        auto& record = child->second.record;
        record.done = failure.empty();
        record.message = failure;
        if (record.done) record.last_weights = weights_fingerprint(newest_step(run.folder));
        write_record(record_path(run), record);
        view_.note(run, failure);
      }
      children_.erase(child);
    }
  }

  void stop_all() {
    for (const auto& [pid, child] : children_) kill(pid, SIGTERM);
    while (!children_.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      collect();
    }
    end_progress();
    throw Interrupted("stopped; every run saved what it had, go on with the same command");
  }

  StudyProgress progress() const {
    StudyProgress study_progress;
    for (const auto* run : selected_runs(plan_, options_.only)) {
      const auto status = status_of(plan_, *run);
      const auto state = status.state;
      study_progress.done += state == RunState::done;
      study_progress.failed += state == RunState::failed;
      if (state == RunState::failed && study_progress.failure.empty())
        study_progress.failure = concat(run->name(), ": ", status.message);
      study_progress.elsewhere += state == RunState::running;
      study_progress.waiting += state == RunState::waiting;
    }
    return study_progress;
  }

  const Plan& plan_;
  const RunnerOptions& options_;
  std::vector<const PlannedRun*> queue_;
  std::vector<const PlannedRun*> passed_{};  ///< that other processes worked on when they were due
  std::map<pid_t, Child> children_;
  ProgressView view_;
  int64_t jobs_ = 1;
  double largest_ = 0;  ///< resident set of a run [bytes]
};

}  // namespace

std::vector<std::string> run_command(const PlannedRun& run, const std::string& program) {
  const auto& folder = run.folder;
  if (run.is_finetuning() && has_config(folder)) return {program, "pretrain", "--run", folder, "--resume"};
  if (run.is_finetuning()) {
    const auto& options = run.finetuning.options;
    const auto threads = run.config.train.threads;
    const std::string key = "train.threads=";
    std::vector<std::string> command{program, "finetune", run.config.init.from, run.finetuning.file, "--run", folder};
    command.insert(command.end(), options.begin(), options.end());
    const bool is_given = std::ranges::any_of(options, [&](const auto& option) { return option.starts_with(key); });
    if (threads > 0 && !is_given) command.insert(command.end(), {"--set", concat(key, threads)});
    return command;
  }
  std::vector<std::string> command{program, "pretrain", config_path(run), "--run", folder};
  if (has_config(folder) && !begins_anew(run, folder)) command.emplace_back("--resume");
  return command;
}

std::vector<const PlannedRun*> selected_runs(const Plan& plan, const std::vector<std::string>& only) {
  std::vector<const PlannedRun*> runs;
  std::vector<std::string> names;
  for (const auto& run : plan.runs) {
    const auto full_name = run.name();
    names.push_back(full_name);
    const bool wanted = only.empty() || std::any_of(only.begin(), only.end(), [&](const auto& name) {
                          return name == run.arm || name == full_name;
                        });
    if (wanted) runs.push_back(&run);
  }
  for (const auto& arm : plan.arms) names.push_back(arm.name);
  for (const auto& name : only) {
    const auto near = did_you_mean(name, names);
    require<ConfigError>(contains(names, name), "--only ", name, " names no run of this study", near,
                         near.empty() ? "; " : " ", "write arm or arm/seed");
  }
  return runs;
}

int64_t concurrent_runs(int64_t jobs, const Plan& plan, int64_t processes) {
  if (jobs > 0) return jobs;
  int64_t threads = 1;
  for (const auto& run : plan.runs) threads = std::max(threads, run.config.train.threads);
  return std::max<int64_t>(1, cores() / (threads * processes));
}

int64_t threads_of_run(int64_t processes) { return std::max<int64_t>(1, cores() / processes); }

StudyProgress run_study(const Plan& plan, const RunnerOptions& options) {
  require_no_links(plan);
  sweep_study(plan);
  Runner runner(plan, options);
  if (!plan.file.empty()) declare(plan);
  return runner.run();
}

namespace {

/// The command that runs a study, one run after the other; `only`: no other than this.
std::string command_line(const Plan& plan, const std::string& program, const std::string& only, int64_t processes) {
  return concat(shell_word(program), " study run ", shell_word(plan.file), " --out ", shell_word(plan.root),
                " --jobs 1", processes > 1 ? concat(" --processes ", processes) : "",
                only.empty() ? "" : " --only " + only);
}

/// Cores of a task: those that the runs ask for, 1 if they leave it open.
int64_t cores_of(const Plan& plan) {
  int64_t cores = 1;
  for (const auto& run : plan.runs) cores = std::max(cores, run.config.train.threads);
  return cores;
}

}  // namespace

void require_none_failed(const StudyProgress& progress) {
  const auto runs = progress.done + progress.failed + progress.elsewhere + progress.waiting;
  require<Error>(progress.failed == 0, progress.failed, " of ", counted(static_cast<uint64_t>(runs), "run"),
                 progress.failed == 1 ? " has failed, " : " have failed, the first of them ", progress.failure,
                 "; mend that, and the same command goes on");
}

std::string command_lines(const Plan& plan, const std::vector<std::string>& runs, const std::string& program,
                          int64_t processes) {
  std::string text;
  for (const auto& run : runs) text += command_line(plan, program, shell_word(run), processes) + "\n";
  return text;
}

std::string slurm_script(const Plan& plan, const StageTasks& tasks, const std::string& program, int64_t processes) {
  const auto& runs = tasks.runs;
  const auto last = (runs.empty() ? tasks.processes : std::ssize(runs)) - 1;
  std::string text =
      concat("#!/bin/bash\n#SBATCH --job-name=", shell_word(in_one_line(plan.study.study)), "\n#SBATCH --array=0-",
             last, "\n#SBATCH --cpus-per-task=", cores_of(plan) * processes, "\n#SBATCH --signal=B:TERM@120\n\ncd ",
             shell_word(std::filesystem::current_path().string()), "\n");
  if (!runs.empty()) text += "runs=(\n";
  for (const auto& run : runs) text += "  " + shell_word(run) + "\n";
  if (!runs.empty()) text += ")\n";
  // exec: the signal before the time limit reaches the program, which saves and stops.
  const auto* const only = runs.empty() ? "" : "\"${runs[$SLURM_ARRAY_TASK_ID]}\"";
  return text + "exec " + command_line(plan, program, only, processes) + "\n";
}

std::string slurm_chain(const Plan& plan, const std::vector<StageTasks>& stages, const std::string& program,
                        int64_t processes) {
  std::string text =
      "#!/bin/bash\n# Submits a job for each stage, which begins when the one before has ended.\n"
      "# Options are those of every sbatch, such as --time=4:00:00.\nset -euo pipefail\n";
  for (const auto& stage : stages) {
    const auto after = &stage == &stages.front() ? "" : "--dependency=afterany:\"${job%%;*}\" ";
    text += concat("\n# ", in_one_line(stage.stage), "\njob=$(sbatch --parsable ", after, "\"$@\" <<'JOB'\n",
                   slurm_script(plan, stage, program, processes), "JOB\n)\n");
  }
  return text + "echo \"the last of the jobs: ${job%%;*}\"\n";
}

}  // namespace cloze

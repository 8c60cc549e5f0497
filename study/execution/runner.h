#pragma once
// Runs a study: several runs at once, each a process of its own, resumable after any kill.
#include <chrono>
#include <string>
#include <vector>

#include "study/execution/runs.h"

namespace cloze {

/// What is done about runs that were made from another study file, text, tokenizer or version.
enum class StaleRuns { refuse, keep, redo };

struct RunnerOptions {
  std::string program;            ///< the cloze binary
  int64_t jobs = 0;               ///< runs at once; 0: as many as the cores hold
  int64_t processes = 1;          ///< that train each run but fine-tunings, which have one
  std::vector<std::string> only;  ///< `arm` or `arm/seed`; empty: all
  StaleRuns stale = StaleRuns::refuse;
  double run_memory = 0;  ///< that a run is expected to need [bytes]; 0: as much as those that run
};

/// Runs at once: as asked, 0: as many as the cores hold, one for each process where the runs leave train.threads open.
int64_t concurrent_runs(int64_t jobs, const Plan& plan, int64_t processes = 1);
/// Compute threads of each of so many concurrent processes.
int64_t threads_of_run(int64_t processes);

/// How a study was left.
struct StudyProgress {
  int64_t done = 0, failed = 0, elsewhere = 0, waiting = 0;
  std::string failure{};  ///< of the first run that failed: `causal/1: the loss is not finite`
};

/// Throws Error with the first failure where runs have failed.
void require_none_failed(const StudyProgress& progress);

/// Trains what is not done. Throws ConfigError for stale runs and unknown names in `only`, Interrupted after Ctrl-C
/// (the runs saved before they stopped), Error for a disk too small.
StudyProgress run_study(const Plan& plan, const RunnerOptions& options);

/// The command that trains one run, as `run_study` starts it.
std::vector<std::string> run_command(const PlannedRun& run, const std::string& program);

/// The runs that `only` names. Throws ConfigError with the nearest name.
std::vector<const PlannedRun*> selected_runs(const Plan& plan, const std::vector<std::string>& only);

/// One command for each of `runs`, named ARM/SEED, a line each, for GNU parallel or a shell. `processes`: of each run.
std::string command_lines(const Plan& plan, const std::vector<std::string>& runs, const std::string& program,
                          int64_t processes = 1);

/// What a job of Slurm does for a stage: runs, named ARM/SEED, or, where these are not known yet, whatever there is to
/// do, by so many processes.
struct StageTasks {
  std::string stage{};
  std::vector<std::string> runs{};
  int64_t processes = 0;
};

/// An array job for Slurm's sbatch, a task for each run or process; `processes` of each run share the task.
std::string slurm_script(const Plan& plan, const StageTasks& tasks, const std::string& program, int64_t processes = 1);

/// A shell script that gives sbatch an array job for each stage, which begins when the one before has ended. Its
/// arguments are those of every sbatch.
std::string slurm_chain(const Plan& plan, const std::vector<StageTasks>& stages, const std::string& program,
                        int64_t processes = 1);

// The runs of a study while they train: a table that redraws itself on a terminal, plain lines in a file.

/// The table of a study: one line for each arm, one column for each seed, and the time left.
std::string progress_table(const Plan& plan, const std::vector<RunStatus>& statuses, int64_t columns);

class ProgressView {
 public:
  ProgressView(const Plan& plan, size_t selected);
  /// Redraws the table, at most every half second unless it is the `last`.
  void show(bool last);
  /// A run was done before.
  void skip() { ++ended_; }
  /// A run ended: `failure` empty, or why.
  void note(const PlannedRun& run, const std::string& failure);

 private:
  const Plan& plan_;
  bool terminal_ = false;
  int64_t drawn_ = 0;  ///< lines of the last table
  int said_ = 0;       ///< what signals had said when it was drawn
  int64_t ended_ = 0;
  std::vector<RunStatus> statuses_{};  ///< of all runs, as last shown; one that is done is not read again
  size_t selected_;                    ///< runs that this process may do
  std::chrono::steady_clock::time_point last_{}, start_{};
};

/// Resident memory of a process [bytes]; 0 where there is none.
double resident_bytes(int64_t pid);
/// Memory that new processes may take without swapping [bytes].
double available_memory();

}  // namespace cloze

#pragma once
// Runs a study: several runs at once, each a process of its own, resumable after any kill.
#include <string>
#include <vector>

#include "study/plan/plan.h"

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

}  // namespace cloze

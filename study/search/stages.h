#pragma once
// A study as a graph of runs, in plans in the order of its work. A study of arms is one plan of runs; a search comes
// before it in a plan of its own, whose results decide the configs of what follows:
//
//   FOLDER/tuning/runs/...   every arm with every combination of the values under `tune:`
//   FOLDER/runs/...          the runs that are compared
//   FOLDER/stage-2/runs/...  with `then`: what goes on from those, and stage-3 from these; the last are compared
//   FOLDER/probe/runs/...    with `probe_head`: heads for the metric on the backbones of those, which are compared
//   FOLDER/split/runs/...    with `split`: every arm with one random stream varied alone
//   FOLDER/task-tuning/runs/ARM/seed-1/TASK/seed-100001/learning_rate=3e-4   with `tasks: {tune: ...}`: what decides
//                            the values of the fine-tunings of each arm on each task
//   FOLDER/tasks/runs/ARM/seed-1/TASK/seed-1   with `tasks`: a run of `cloze finetune` for each of the runs that are
//                            compared, each task and each seed of the fine-tuning
//   FOLDER/rung-1/runs/...   with `space`: trials, of which the best go on to rung-2
#include <optional>

#include "core/report/table.h"
#include "study/execution/runner.h"

namespace cloze {

/// The graph of a study. The inputs of a run stand before it.
struct Stages {
  std::vector<Plan> plans{};            ///< each may need those before it
  size_t comparison = 0;                ///< index of the plan that the report compares, or of the last rung of a search
  std::optional<size_t> tuning{};       ///< index of the plan that decides the tuned values
  std::optional<size_t> split{};        ///< index of the plan that varies single streams
  std::optional<size_t> task_tuning{};  ///< index of the plan that decides the tuned values of the fine-tunings
  std::optional<size_t> tasks{};        ///< index of the plan that fine-tunes the runs which are compared
  std::vector<size_t> rungs{};          ///< indices of the rungs of a search
  const Plan& compared() const { return plans[comparison]; }
  /// The run of the study from which another one goes on.
  const PlannedRun& input_of(const PlannedRun& run) const;
};

/// The stages of a study file, as far as the runs that have ended decide them. `folder` empty: studies/NAME.
/// Throws ConfigError with the locations of all mistakes that one reading can find.
Stages make_stages(const std::string& file, const std::string& folder = "");

/// Adds a plan of trained networks, with `probe_head` also the plan of their probes; returns the index of the one that
/// is scored.
size_t add_stage(Stages& stages, Plan plan);

/// True where nothing is left to run: every run is done, or failed for a reason of its own (a run that was killed is
/// to be run again).
bool is_settled(const Plan& plan);

/// How many runs of a plan keep it from being settled, and one of them: `3 of 12 runs are not done, such as a/1`.
std::string unsettled_words(const Plan& plan);

/// What a stage waits for whose runs have failed: `a new try of WHAT, whose runs have all failed (see its log ...)`.
std::string new_try(const std::string& what, const PlannedRun& example);

/// Runs the stages in their order, each as `run_study` does; a stage that waits for another is planned when that one
/// has ended. `only` may name runs of any stage. Throws as `run_study`, and DataError where all runs have failed that
/// could decide what follows.
StudyProgress run_stages(const std::string& file, const std::string& folder, const RunnerOptions& options);

// Which random stream the spread over seeds comes from: runs of every arm with one stream varied alone.

/// The plan of runs in which one stream has the seed and all others keep the first. Its arms are arms times streams:
/// `low, init`.
Plan split_plan(const Plan& comparison);

/// For each arm the spread with all of its streams varied, with each alone, and the root of the sum of these variances;
/// shares are of that sum.
Table variance_table(const Plan& comparison, const Plan& split);

// Random search over the keys under `space:`, with or without successive halving. Sources: Bergstra and Bengio 2012;
// Jamieson and Talwalkar 2016 (arXiv 1502.07943), algorithm 1; Li et al. 2018 (arXiv 1603.06560), inner loop of
// algorithm 1.

/// One rung of successive halving; a search without it has one.
struct Rung {
  int64_t trials = 0;
  double used = 0;    ///< share of the total budget that one run has had at its end
  double budget = 0;  ///< share of the total budget that the runs of the rung get
};

/// The rungs of `trials` trials: rung i has trials / halving^i of them, each with halving^i times the budget of the
/// first, so that all together use the total exactly.
///
/// seeds      runs of each trial
/// continued  a run of a later rung goes on from its checkpoint, so that it pays for the difference alone
/// Throws ConfigError for fewer trials than `halving`.
/// Differs: Jamieson and Talwalkar halve and give every rung the same share; here runs that start anew do so to within
/// the rounding of trials, and runs that go on spend less on later rungs.
std::vector<Rung> rungs_of(int64_t trials, int64_t halving, int64_t seeds, bool continued);

/// The keys of trial number `draw`, each by its own stream of `seed`. Throws ConfigError for a key without a list or a
/// distribution.
KeyValues draw_trial(const AnyKeys& space, uint64_t seed, uint64_t draw);

/// The rungs of a search; those whose trials are not decided yet wait without runs. Throws ConfigError.
Stages search_stages(const StudyConfig& study, const std::string& file, const std::string& folder);

}  // namespace cloze

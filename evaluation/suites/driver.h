#pragma once
// The one driver of suites, for the command line, training and BabyLM: what fails is reported and left out, so that the
// other results are not lost with it.
#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/file.h"
#include "evaluation/suites/suite_report.h"
#include "evaluation/suites/request.h"
#include "run/run.h"

namespace cloze {

/// A suite, or one of BabyLM's tasks, that one run is evaluated on.
struct SuiteTask {
  std::function<void()> check{};  ///< throws DataError for a text that is longer than the model; computes nothing
  std::function<void()> evaluate;
};

/// Evaluates the tasks whose check passes, in their order, after all checks. `failed` gets the number of a task and
/// what was thrown, and may throw it again. Interrupted passes.
void evaluate_tasks(std::span<const SuiteTask> tasks, const std::function<void(size_t, const std::exception&)>& failed);

/// The log of a result: `[suites]  pairs, runs/a/step-00000100: 1,200 items in 3s`.
void log_result_of(const char* room, const LoadedRun& run, const SuiteResult& result,
                   std::chrono::steady_clock::time_point start);
/// Shows how many texts of a suite are scored, a few times a second.
std::function<void(int64_t, int64_t)> suite_progress(const std::string& what);

/// The options of a request as suites have them.
SuiteOptions options_of(const SuiteRequest& request);

/// One of the runs or checkpoints that are evaluated.
struct SuiteTarget {
  std::string run;                                      ///< as the user names it
  std::string checkpoint;                               ///< its step folder
  std::optional<std::vector<std::string>> revisions{};  ///< none: those that the checkpoint records
};

/// The chosen checkpoint of each run; of several runs a damaged one as it is named, which fails where it is opened.
std::vector<SuiteTarget> chosen_targets(const RunSelection& selection);

/// Every checkpoint of a run.
std::vector<SuiteTarget> checkpoint_targets(const std::string& run);

/// What runs are evaluated on under one name: a suite, or BabyLM's data.
struct SuiteJob {
  std::string name;
  /// Why a run (its name, folder and config) cannot be evaluated on it; empty if it can. No weights are read.
  std::function<std::string(const std::string& run, const std::string& folder, const RunConfig& config)> fault;
  std::function<void(const LoadedRun&)> check{};  ///< of the texts; once for all checkpoints of a run
  /// The results with their predictions; a sentence in `skipped` for each task that failed.
  std::function<std::vector<SuiteResult>(const LoadedRun&, const SuiteTarget&, std::vector<std::string>& skipped)>
      evaluate;
};

/// The folder of --out while it is filled, if there is one, and standard output.
class SuiteOutput {
 public:
  /// Makes no folder for an empty name.
  explicit SuiteOutput(const std::string& folder);
  /// Adds the predictions of a result.
  void add(const CheckpointResults& checkpoint, const SuiteResult& result);
  /// Completes the folder, and prints the table, with `paradigms` all of it, or one line of JSON. `compared`: of two
  /// runs.
  void finish(const RunSelection& selection, bool paradigms, std::span<const CheckpointResults> all,
              std::span<const SuiteComparison> compared);

 private:
  void check() const;
  void commit(std::span<const CheckpointResults> all, std::span<const Table> tables,
              std::span<const std::string> notes);
  std::optional<StagedFolder> staged_;
  std::ofstream predictions_;
};

/// What is evaluated on what.
struct SuitePlan {
  const char* room = "suites";  ///< of the log
  const RunSelection& selection;
  const SuiteRequest& request;
  std::vector<SuiteTarget> targets;
  std::vector<SuiteJob> jobs;
  bool is_composite = false;  ///< the job is of several tasks; a run that cannot be evaluated on it is not opened
  const char* nothing = "no suite was evaluated; the warnings above say why";
  /// Adds what is known from all checkpoints together, before anything is printed.
  std::function<void(std::vector<CheckpointResults>&, SuiteOutput&)> conclude{};
  /// Whether two runs are compared.
  bool is_of_two_runs() const { return !selection.all_checkpoints && targets.size() == 2; }
};

/// Evaluates all targets on all jobs, one after the other, and prints the results. What a run cannot be evaluated on is
/// known from its config before weights are read, a text that is too long before any is scored. Of a run that trains, a
/// checkpoint that it has removed meanwhile is left out, or the one that is chosen now is evaluated. Returns the exit
/// code: 1 where something that was requested has failed. Throws the Error of the only run on the only job, ConfigError
/// where no run can be evaluated on any, and DataError where nothing was evaluated.
int evaluate(const SuitePlan& plan);

/// `cloze evaluate --suite`: the suites of a request on the runs of a selection. Throws ConfigError for options that
/// none of the suites uses.
int evaluate_suites(const RunSelection& selection, const SuiteRequest& request);

}  // namespace cloze

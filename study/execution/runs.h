#pragma once
// The runs of a study on disk: which are done, which fail, which were made from another study file.
#include <optional>
#include <string>
#include <vector>

#include "core/lock.h"
#include "study/measures/run_files.h"
#include "study/plan/plan.h"

namespace cloze {

/// Where a planned run stands; stale: it was made from another study file.
enum class RunState { waiting, running, done, failed, stale };
constexpr auto choices(RunState) {
  using enum RunState;
  return std::array{
      Choice{waiting, "waiting"}, Choice{running, "running"}, Choice{done, "done"}, Choice{failed, "failed"},
      Choice{stale, "stale", "made from another config, text, tokenizer or version, or from other weights"}};
}

/// Where a run stands.
struct RunStatus {
  RunState state = RunState::waiting;
  double progress = 0;  ///< share of the budget that is used
  int64_t step = 0;
  double value = 0;       ///< of the metric as last evaluated, of a fine-tuning that is done its score; NaN: not known
  std::string metric{};   ///< the name of the value
  double seconds = 0;     ///< of training so far
  std::string message{};  ///< why it failed
  bool is_of_failed_source = false;  ///< it failed because the run that it needs has, and was never begun
  bool kept = false;                 ///< done, stale without it, and kept as it is
  std::string lost_result{};  ///< what is wrong with the held_out.json of a run that had ended, and what mends it
  std::optional<Owner> owner{};
};

/// What a report says of a run that was kept.
inline constexpr const char* kept_words =
    "was made from another config, text, tokenizer or version, or from other weights, and kept as it is; it counts "
    "like the others";

/// What the runner notes of a run when it ends, next to its folder.
struct RunRecord {
  std::string fingerprint{}, version{};
  std::string first_weights{}, last_weights{};  ///< fingerprints of those that it began with (drawn ones have none),
                                                ///< and of those that it ended with
  bool done = false;
  std::string message{};  ///< of a failure
  std::string kept{};     ///< fingerprint of the other plan for which somebody agreed to count it as it is
};

template <class V>
void describe(V& v, RunRecord& r) {
  v.or_else("fingerprint", r.fingerprint, "");
  v.or_else("version", r.version, "");
  v.or_else("first_weights", r.first_weights, "");
  v.or_else("last_weights", r.last_weights, "");
  v.or_else("done", r.done, false);
  v.or_else("message", r.message, "");
  v.or_else("kept", r.kept, "");
}

// The files of a run beside its folder.
inline std::string config_path(const PlannedRun& run) { return run.folder + ".yaml"; }
inline std::string record_path(const PlannedRun& run) { return run.folder + ".json"; }
inline std::string claim_path(const PlannedRun& run) { return run.folder + ".lock"; }
inline std::string log_path(const PlannedRun& run) { return run.folder + ".log"; }

/// The checkpoint that a run begins with: the last one of the run that it goes on from, whichever step was its best, or
/// what its config names; empty where its weights are drawn.
std::string first_checkpoint(const PlannedRun& run);

std::optional<RunRecord> read_record(const std::string& path);
void write_record(const std::string& path, const RunRecord& record);

/// What is wrong with the held_out.json of a run whose record says that it has ended, and what mends it; empty:
/// nothing.
std::string result_fault(const Plan& plan, const PlannedRun& run, const RunRecord& record);

/// The state of a planned run by what its folder holds. One that has ended and lost its result waits for being measured
/// again, or, if it was kept, is stale.
RunStatus status_of(const Plan& plan, const PlannedRun& run);

/// Whether a run failed for a reason of its own: one that was killed is to be run again.
bool failed_by_itself(const RunStatus& status);
/// The same by the message of a failure.
bool is_own_failure(const std::string& message);

/// What a finished run was scored by, and what it has used up. That of a probe is with its source.
struct RunResult : MetricValue, Usage {
  std::string arm{};
  int64_t seed = 0;
  std::string folder{};
  std::vector<MetricValue> secondary{};  ///< one for each of the plan; empty where nobody has read them
};

/// Fills in what a run that was scored has used up: that of the end of its curve, with the words and epochs of its
/// summary; its floor.
void add_usage(RunResult& result, const std::vector<CurvePoint>& curve);

/// The metric along a planned run; that of a probe begins where its source ended. Warns as read_curve.
std::vector<CurvePoint> read_curve(const Plan& plan, const PlannedRun& run);

/// The result of a run that is done, with its curve, by the metric that decides. Throws DataError for files that are
/// damaged, were cut or edited.
RunResult read_result(const Plan& plan, const PlannedRun& run, const std::vector<CurvePoint>& curve);

/// The values of the secondary metrics of a run that is done: of the part of the plan, or whole where a value has no
/// parts; NaN of a task on which not all of its fine-tunings are done. Throws as read_result.
std::vector<MetricValue> read_secondary(const Plan& plan, const PlannedRun& run);

/// The result of a run that is done and whose loss is finite; else none. Throws DataError as read_result.
std::optional<RunResult> finished_result(const Plan& plan, const PlannedRun& run);

/// Those of all runs of an arm.
std::vector<RunResult> finished_results(const Plan& plan, const std::string& arm);

/// The plan of trained runs with the fine-tunings that are done in its metrics, unless their settings are not known
/// yet; tasks of which none is named are further secondary ones.
Plan with_finetunings(Plan trained, const Plan& tasks);

/// What a metric of a run lacks: `2 of 3 fine-tunings on rte are done`; empty: nothing, or it is not of a task.
std::string missing_finetunings(const Plan& trained, const StudyMetric& metric, const PlannedRun& run);

// What a study declared before its first run: metric, margin, baseline, seeds, budget and arms.
// All of these read the study file of the plan: a stage has a study of its own, whose budget is a part.

/// XXH3 of everything in the study file, as it is declared before the first run.
std::string declaration_of(const Plan& plan);

/// Writes declaration.json into the folder of the whole study, unless it exists, or a run of the plan was started.
void declare(const Plan& plan);

/// Whether a run of the plan was started, and declaration.json is not there.
bool lacks_declaration(const Plan& plan);

/// What has changed in the study file since the first run: `metric.better_by was 0.01 before the first run, and is
/// 0.02`; empty where nothing has, or nothing ran. Throws DataError for a damaged declaration.
std::vector<std::string> changes_since_declaration(const Plan& plan);

}  // namespace cloze

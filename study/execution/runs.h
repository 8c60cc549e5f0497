#pragma once
// The runs of a study on disk: which are done, which fail, which were made from another study file.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/lock.h"
#include "study/plan/plan.h"
#include "study/statistics/statistics.h"

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
  double value = 0;       ///< of the metric as last evaluated, of a fine-tuning that is done its figure; NaN: not known
  std::string figure{};   ///< the name of the value
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

/// The folder, the config file, the record, the claim and the log of a planned run.
std::string run_path(const Plan& plan, const PlannedRun& run);
std::string config_path(const Plan& plan, const PlannedRun& run);
std::string record_path(const Plan& plan, const PlannedRun& run);
std::string claim_path(const Plan& plan, const PlannedRun& run);
std::string log_path(const Plan& plan, const PlannedRun& run);

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

/// What a finished run was scored by, from its held_out.json.
struct RunResult {
  std::string arm;
  int64_t seed = 0;
  std::string folder;
  double value = 0;                                    ///< of the metric
  ExampleLosses examples{};                            ///< of the metric, as the next two: MetricValue
  std::string measured{};                              ///< what it was measured by: objectives, rows, masks
  std::string text{};                                  ///< fingerprint of what it was measured on
  int64_t step = 0, tokens = 0, predicted_tokens = 0;  ///< of a probe with those of its source, as all that follow
  double words = 0, seconds = 0, flops = 0, epochs = 0;
  double by_nats = 1;                    ///< the value by that of the curve
  double floor = 0;                      ///< value of a network that has learnt nothing; 0: not known
  std::vector<MetricValue> secondary{};  ///< one for each of the plan; empty where nobody has read them
  int64_t documents = 0;                 ///< that the examples of the metric are from
};

/// One point of a curve.
struct CurvePoint {
  int64_t point = 0;  ///< index of the evaluation, by which curves of several seeds are averaged
  int64_t step = 0, tokens = 0, predicted_tokens = 0;
  double seconds = 0, flops = 0, loss = 0;
  double share = 0;  ///< of the budget that was used up
  double floor = 0;  ///< of the loss, as in RunResult
  std::string of{};  ///< the losses that it is of, where the metric is judged after the training; else empty
};
/// The metric along a run, `loss` of its points; that of a probe begins where its source ended. Damaged lines are left
/// out with a warning.
std::vector<CurvePoint> read_curve(const Plan& plan, const PlannedRun& run);
/// The same for a run directory: `points` evaluations at equal shares of the budget; 0: so many steps apart, which then
/// are the index.
std::vector<CurvePoint> read_curve(const std::string& folder, const StudyMetric& metric, int64_t points);

/// The result of a run that is done, with its curve, by the metric that decides. Throws DataError for files that are
/// damaged, were cut or edited.
RunResult read_result(const Plan& plan, const PlannedRun& run, const std::vector<CurvePoint>& curve);

/// The values of the secondary metrics of a run that is done: of the part of the plan, or whole where a value has no
/// parts; NaN of a task on which not all of its fine-tunings are done. Throws as read_result.
std::vector<MetricValue> read_secondary(const Plan& plan, const PlannedRun& run);

/// The result of a run that is done and whose loss is finite; else none. Throws DataError as read_result.
std::optional<RunResult> finished_result(const Plan& plan, const PlannedRun& run);

/// A number of a part of a row of metrics.jsonl, such as the `seconds` of `time`.
double number_at(const nlohmann::json& row, const char* part, const std::string& key, double otherwise);

/// What a run said when it ended as one that has diverged; empty for another, and where it went on since.
std::string divergence_of(const std::string& folder);

/// The last step that a run has logged.
int64_t last_step(const std::string& folder);
/// What a run that was scored used up: that of the end of its curve, with the words and epochs of its summary; its
/// floor.
void add_usage(RunResult& result, const std::vector<CurvePoint>& curve);

/// Held-out losses of one objective, example by example.
struct HeldOutLosses {
  ExampleLosses examples{};     ///< NaN for what is not finite
  std::vector<double> bytes{};  ///< [E], of the source text of the predicted tokens; empty where they are not known
};

/// The held_out.json of a run directory.
struct HeldOutFile {
  std::string measured{}, text{};  ///< as in RunResult
  int64_t step = 0;
  std::map<std::string, HeldOutLosses> losses{};  ///< by objective in short form
};
/// Throws DataError, which ends in the `remedy`, for a file that is missing, damaged, cut or edited, and for one whose
/// losses are not those in the summary.json of the run.
HeldOutFile read_held_out(const std::string& folder, const std::string& remedy);

/// Fills in the value of a run.
void score(RunResult& result, MetricValue value);

}  // namespace cloze

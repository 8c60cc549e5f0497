#include "study/execution/runs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "run/checkpoints/checksums.h"
#include "run/records/task_summary.h"
#include "run/run_files.h"
#include "study/measures/task_value.h"
#include "study/plan/task_terms.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* read_remedy = "run the study again";

bool is_of_task(const StudyMetric& metric) { return std::holds_alternative<TaskMetric>(metric); }

/// Throws DataError for a fine-tuned run without its rows.
void require_rows(const std::string& folder) {
  const auto rows = folder + "/" + task_folder;
  require<DataError>(is_prepared_task(rows), rows, ": has no rows of a task; restore it, or remove ", folder,
                     " and run the study again, which fine-tunes anew");
}

/// Why the run that another needs has no end; empty where it may still come to one.
std::string failure_of_source(const PlannedRun& run) {
  if (run.source().empty()) return "";
  const auto record = read_record(run.source() + ".json");
  return record && is_own_failure(record->message) ? "its source failed: " + record->message : "";
}

/// What of the weights of a run are others now than when its record was written: those that it began with, because
/// their run was trained anew, or its own. Weights that are gone are not, nor are those of a run that somebody has gone
/// on with, of which the report says so.
std::string weights_fault(const PlannedRun& run, const RunRecord& record) {
  const auto are_others = [](const std::string& before, const std::string& path) {
    const auto now = before.empty() || path.empty() ? "" : weights_fingerprint(path);
    return !now.empty() && now != before;
  };
  const auto& folder = run.folder;
  const auto first = first_checkpoint(run);
  if (are_others(record.first_weights, first)) return first + " has other weights than those that it began with";
  if (are_others(record.last_weights, newest_step(folder)) && read_provenance(folder).changed.empty())
    return folder + " has other weights than those that it ended with";
  return "";
}

RunStatus done(RunStatus status, bool kept) {
  status.state = RunState::done;
  status.progress = 1;
  status.kept = kept;
  return status;
}

RunStatus failed(RunStatus status, const std::string& message) {
  status.state = RunState::failed;
  status.message = message;
  return status;
}

}  // namespace

bool is_own_failure(const std::string& message) { return !message.empty() && !message.starts_with("ended by signal"); }

std::string first_checkpoint(const PlannedRun& run) {
  if (run.source().empty()) return run.config.init.from;
  const auto last = newest_step(run.source());
  return last.empty() ? run.source() : last;
}

std::optional<RunRecord> read_record(const std::string& path) {
  if (!fs::exists(path)) return std::nullopt;
  const auto fields = parse_json(read_text(path, 1 << 20));
  try {
    return fields.get<RunRecord>();
  } catch (const json::exception&) {
    fail<DataError>(path, ": is damaged; remove it, and the run is started or resumed again");
  }
}

void write_record(const std::string& path, const RunRecord& record) {
  write_atomic(path, json_text(json(record), 2) + "\n");
}

std::vector<CurvePoint> read_curve(const Plan& plan, const PlannedRun& run) {
  auto curve = read_curve(run.folder, plan.metric, run.config.evaluation.points);
  for (const auto& input : run.counted_inputs()) {
    const auto before = read_log(input).last;
    for (auto& point : curve) point += before;
  }
  return curve;
}

std::string result_fault(const Plan& plan, const PlannedRun& run, const RunRecord& record) {
  const auto& folder = run.folder;
  const bool is_kept = record.kept == run.fingerprint && record.fingerprint != run.fingerprint;
  const auto remedy =
      is_kept ? std::string("make the run again with --redo")
              : concat("run the study again, which measures the run once more (without a checkpoint, remove ", folder,
                       " first, and it is trained again)");
  try {
    read_held_out(folder, remedy);
    read_summary(folder, remedy);
    if (run.is_finetuning()) read_task_summary(folder);
    if (run.is_finetuning()) require_rows(folder);
    for (const auto& metric : plan.metrics())
      if (std::holds_alternative<SuiteMetric>(metric)) value_of(metric, folder, remedy);
    return "";
  } catch (const DataError& fault) {
    return fault.what();
  } catch (const Error& fault) {
    return concat(fault.what(), "; ", remedy);
  }
}

RunStatus status_of(const Plan& plan, const PlannedRun& run) {
  RunStatus status{.value = std::numeric_limits<double>::quiet_NaN()};
  const auto record = read_record(record_path(run));
  status.owner = owner_of(claim_path(run));
  const auto log = read_log(run.folder, plan.metric);
  const auto by = traits_of(plan.metric);
  const bool has_value = !log.curve.empty() && !by.name.empty() && !is_of_task(plan.metric);
  if (has_value) status.value = log.curve.back().loss;
  if (has_value) status.metric = by.title;
  status.step = static_cast<int64_t>(log.last.step);
  status.seconds = log.last.seconds;
  status.progress = log.fraction;
  if (record && record->done && !status.owner) status.lost_result = result_fault(plan, run, *record);
  const bool has_result = record && record->done && status.lost_result.empty();
  if (has_result && run.is_finetuning()) {
    const auto outcome = outcome_of(run.folder);
    status.metric = outcome.metric;
    status.value = outcome.value;
  }
  const auto fault = record && !status.owner ? weights_fault(run, *record) : "";
  if (status.owner)
    status.state = RunState::running;
  else if (!fault.empty()) {
    status.state = RunState::stale;
    status.message = fault;
  } else if (has_result && record->kept == run.fingerprint)
    status = done(status, true);
  else if (record && (record->fingerprint != run.fingerprint || record->version != CLOZE_VERSION))
    status.state = RunState::stale;
  else if (has_result)
    status = done(status, false);
  else if (!status.lost_result.empty())
    status.message = status.lost_result;
  else if (record && !record->message.empty())
    status = failed(status, record->message);
  else if (const auto failure = failure_of_source(run); !failure.empty()) {
    status = failed(status, failure);
    status.is_of_failed_source = true;
  }
  return status;
}

bool failed_by_itself(const RunStatus& status) {
  return status.state == RunState::failed && is_own_failure(status.message);
}

void add_usage(RunResult& result, const std::vector<CurvePoint>& curve) {
  if (!curve.empty()) static_cast<Usage&>(result) = curve.back();
  result += text_read(result.folder);
  if (!curve.empty() && curve.back().floor > 0) result.floor = curve.back().floor * result.by_nats;
}

std::vector<MetricValue> read_secondary(const Plan& plan, const PlannedRun& run) {
  const auto& folder = run.folder;
  std::vector<MetricValue> values;
  for (const auto& metric : plan.secondary) {
    if (!missing_finetunings(plan, metric, run).empty()) {
      values.push_back({.value = std::numeric_limits<double>::quiet_NaN()});
      continue;
    }
    auto full = value_of(metric, folder, read_remedy);
    // A correlation has no parts, and nothing was chosen by it.
    const bool is_whole = is_of_task(metric) || full.examples.sum.empty();
    values.push_back(is_whole ? std::move(full) : part_of(std::move(full), plan.part, folder));
  }
  return values;
}

RunResult read_result(const Plan& plan, const PlannedRun& run, const std::vector<CurvePoint>& curve) {
  auto value = value_of(plan.metric, run.folder, read_remedy);
  // Nothing is tuned on the items of a task.
  if (!is_of_task(plan.metric)) value = part_of(std::move(value), plan.part, run.folder);
  RunResult result{std::move(value), {}, run.arm, run.seed, run.folder};
  add_usage(result, curve);
  for (const auto& input : run.counted_inputs()) result += text_read(input);
  return result;
}

std::optional<RunResult> finished_result(const Plan& plan, const PlannedRun& run) {
  if (status_of(plan, run).state != RunState::done) return std::nullopt;
  auto result = read_result(plan, run, read_curve(plan, run));
  return std::isfinite(result.value) ? std::optional(std::move(result)) : std::nullopt;
}

std::vector<RunResult> finished_results(const Plan& plan, const std::string& arm) {
  std::vector<RunResult> results;
  for (const auto& run : plan.runs)
    if (run.arm == arm)
      if (auto result = finished_result(plan, run)) results.push_back(std::move(*result));
  return results;
}

Plan with_finetunings(Plan trained, const Plan& tasks) {
  for (const auto& task : task_metrics(trained.study, trained.file)) {
    const auto all = trained.metrics();
    const auto is_named = [&](const StudyMetric& metric) {
      const auto* known = std::get_if<TaskMetric>(&metric);
      return known && known->task == task.task;
    };
    if (std::ranges::none_of(all, is_named)) trained.secondary.emplace_back(task);
  }
  const auto take = [&](StudyMetric& metric) {
    auto* task = std::get_if<TaskMetric>(&metric);
    if (!task || !tasks.waits_for.empty()) return;  // what is there may be of other settings than will be found
    for (const auto& run : tasks.runs) {
      if (run.finetuning.task != task->task) continue;
      const auto status = status_of(tasks, run);
      if (status.state == RunState::done && read_provenance(run.folder).changed.empty())
        task->finetunings[run.source()].push_back(run.folder);
      if (failed_by_itself(status) && !status.is_of_failed_source) task->failed.insert(run.source());
    }
  };
  take(trained.metric);
  for (auto& metric : trained.secondary) take(metric);
  return trained;
}

std::string missing_finetunings(const Plan& trained, const StudyMetric& metric, const PlannedRun& run) {
  const auto* task = std::get_if<TaskMetric>(&metric);
  if (!task) return "";
  const auto done = task->finetunings.find(run.folder);
  const auto count = done == task->finetunings.end() ? 0 : std::ssize(done->second);
  const auto wanted = trained.study.tasks.seeds;
  return count == wanted ? "" : concat(count, " of ", wanted, " fine-tunings on ", task->task, " are done");
}

}  // namespace cloze

#include "study/execution/runs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/file.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "run/records/history.h"
#include "run/records/held_out_record.h"
#include "run/config/evaluation_protocol.h"
#include "run/checkpoints/checksums.h"
#include "run/run_files.h"
#include "run/records/task_summary.h"
#include "core/fingerprint.h"
#include "study/plan/task_plan.h"
#include "study/statistics/task_value.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t max_file = uint64_t{256} << 20;
constexpr const char* read_remedy = "run the study again";

bool is_of_task(const StudyMetric& metric) { return std::holds_alternative<TaskMetric>(metric); }

/// A count of a line of metrics.jsonl; none for what no run counts, whose conversion would be undefined.
std::optional<int64_t> count_of(const json& value) {
  constexpr double most = 9e15;  // below 2^53, so that every count up to it is exact
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(number >= 0 && number <= most)) return std::nullopt;
  return value.is_number_float() ? static_cast<int64_t>(number) : value.get<int64_t>();
}

/// What a line of metrics.jsonl says; a line that was cut or damaged says nothing.
json row_of(const std::string& line) {
  const auto row = parse_json(line);
  return row.is_object() && row.contains("step") && count_of(row["step"]) ? row : json();
}

/// Whether a line that is not parsed looks like one that a run wrote.
bool looks_complete(const std::string& line) {
  const auto is_control = [](unsigned char byte) { return byte < 0x20; };
  return line.starts_with('{') && line.ends_with('}') && std::none_of(line.begin(), line.end(), is_control);
}

/// The damaged lines of a file.
struct DamagedLines {
  int64_t count = 0;
  int64_t first = 0;  ///< its number, counted from 1
  void add(int64_t number) {
    if (count++ == 0) first = number;
  }
};

/// What a run had used up at a line of its metrics; numbers that the line lacks stay.
void take_usage(const json& row, CurvePoint& now) {
  if (row.is_null()) return;
  now.step = count_of(row["step"]).value_or(now.step);
  const auto take_count = [&](const char* key, int64_t& value) {
    if (row.contains(key)) value = count_of(row[key]).value_or(value);
  };
  const auto take = [&](const char* key, double& value) {
    if (row.contains(key) && row[key].is_number()) value = row[key].get<double>();
  };
  take_count("tokens", now.tokens);
  take_count("predicted_tokens", now.predicted_tokens);
  take("flops", now.flops);
  now.seconds = number_at(row, "time", "seconds", now.seconds);
}

/// The held-out losses of a run and where it stands.
struct RunProgress {
  std::vector<CurvePoint> curve{};
  CurvePoint last{};
  double share = 0;        ///< of the budget
  std::string diverged{};  ///< what the run said when it ended by that, at its last line
  DamagedLines damaged{};
};

/// Of the lines between two evaluations only the last is parsed; of the others it is looked whether they are whole.
RunProgress read_progress(const std::string& folder, const StudyMetric& metric, int64_t points) {
  RunProgress progress;
  const auto mark = row_mark(metric);
  LogLines lines(folder + "/metrics.jsonl");
  constexpr double most_share = 1000;  // of no budget is more used up
  int64_t number = 0, number_before = 0;
  std::string before;  // the last line without an evaluation that looks whole
  const auto take = [&](const std::string& line, int64_t at) {
    auto row = row_of(line);
    if (row.is_null()) progress.damaged.add(at);
    take_usage(row, progress.last);
    progress.diverged = string_at(row, "/diverged");
    const double fraction = number_at(row, "time", "budget_share", progress.share);
    if (fraction >= 0 && fraction <= most_share) progress.share = fraction;
    return row;
  };
  const auto take_before = [&] {
    if (!before.empty()) take(std::exchange(before, ""), number_before);
  };
  for (std::string line; lines.next(line);) {
    ++number;
    if (line.find(mark) == std::string::npos) {
      const bool is_complete = looks_complete(line);
      if (is_complete) before = line;
      if (is_complete) number_before = number;
      if (!is_complete) progress.damaged.add(number);
      continue;
    }
    take_before();
    const auto row = take(line, number);
    const auto value = row.is_null() ? std::nullopt : curve_value(metric, row);
    if (!value) continue;
    auto& point = progress.curve.emplace_back(progress.last);
    point.share = progress.share;
    point.loss = value->value;
    point.floor = value->floor;
    point.of = value->loss;
    point.point = points > 0 ? static_cast<int64_t>(static_cast<double>(points) * progress.share + 1e-6) : point.step;
  }
  take_before();
  return progress;
}

/// Warns, once a process, of the damaged lines of a run's metrics.
void warn_of_damage(const std::string& folder, const DamagedLines& damaged) {
  static std::set<std::string> warned;
  if (damaged.count == 0 || !warned.insert(folder).second) return;
  log_warning("study", concat(folder, "/metrics.jsonl: ", damaged.count, " damaged lines, the first of them line ",
                              damaged.first, "; curve and use of the run are those of the other lines"));
}

void add_usage(CurvePoint& point, const CurvePoint& before) {
  point.step += before.step;
  point.tokens += before.tokens;
  point.predicted_tokens += before.predicted_tokens;
  point.seconds += before.seconds;
  point.flops += before.flops;
}

/// Adds the words and epochs that a run has read, where its summary says them.
void add_text_read(RunResult& result, const std::string& folder) {
  const auto path = folder + "/summary.json";
  if (!fs::exists(path)) return;
  const auto fields = parse_json(read_text(path, max_file));
  for (const auto& [name, sum] : {std::pair{"words", &result.words}, std::pair{"epochs", &result.epochs}})
    if (fields.is_object() && fields.contains(name) && fields[name].is_number()) *sum += fields[name].get<double>();
}

/// Throws DataError for a damaged summary.json.
void require_readable_summary(const std::string& folder, const std::string& remedy) {
  const auto path = folder + "/summary.json";
  const bool is_fine = !fs::exists(path) || parse_json(read_text(path, max_file)).is_object();
  require<DataError>(is_fine, path, ": is damaged; ", remedy);
}

/// Throws DataError for a fine-tuned run without its rows.
void require_rows(const std::string& folder) {
  const auto rows = folder + "/" + task_folder;
  require<DataError>(is_prepared_task(rows), rows, ": has no rows of a task; restore it, or remove ", folder,
                     " and run the study again, which fine-tunes anew");
}

/// Why the run that another needs has no end; empty where it may still come to one.
std::string failure_of_source(const PlannedRun& run) {
  if (run.source.empty()) return "";
  const auto record = read_record(run.source + ".json");
  return record && is_own_failure(record->message) ? "its source failed: " + record->message : "";
}

/// Whether somebody has gone on with a run under another config.
bool was_changed(const std::string& folder) {
  const auto path = folder + "/provenance.json";
  return fs::exists(path) && !history_of(parse_json(read_text(path, max_file))).changes.empty();
}

/// What of the weights of a run are others now than when its record was written: those that it began with, because
/// their run was trained anew, or its own. Weights that are gone are not, nor are those of a run that somebody has gone
/// on with, of which the report says so.
std::string weights_fault(const Plan& plan, const PlannedRun& run, const RunRecord& record) {
  const auto are_others = [](const std::string& before, const std::string& path) {
    const auto now = before.empty() || path.empty() ? "" : weights_fingerprint(path);
    return !now.empty() && now != before;
  };
  const auto folder = run_path(plan, run), first = first_checkpoint(run);
  if (are_others(record.first_weights, first)) return first + " has other weights than those that it began with";
  if (are_others(record.last_weights, newest_step(folder)) && !was_changed(folder))
    return folder + " has other weights than those that it ended with";
  return "";
}

/// Takes the figure of a fine-tuning that is done from what its summary says of the task.
void take_figure(RunStatus& status, const json& task) {
  status.figure = string_at(task, "/metric");
  const auto figures = value_at(task, "/test");
  const auto found = figures.find(status.figure);
  const auto value = found == figures.end() ? json() : value_at(*found, "/value");
  if (value.is_number()) status.value = points_of(value.get<double>(), status.figure);
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

double number_at(const json& row, const char* part, const std::string& key, double otherwise) {
  if (!row.contains(part) || !row[part].is_object()) return otherwise;
  const auto& inner = row[part];
  return inner.contains(key) && inner[key].is_number() ? inner[key].get<double>() : otherwise;
}

std::string run_path(const Plan& plan, const PlannedRun& run) { return plan.folder + "/" + run.folder; }
std::string config_path(const Plan& plan, const PlannedRun& run) { return run_path(plan, run) + ".yaml"; }
std::string record_path(const Plan& plan, const PlannedRun& run) { return run_path(plan, run) + ".json"; }
std::string claim_path(const Plan& plan, const PlannedRun& run) { return run_path(plan, run) + ".lock"; }
std::string log_path(const Plan& plan, const PlannedRun& run) { return run_path(plan, run) + ".log"; }

std::string first_checkpoint(const PlannedRun& run) {
  if (run.source.empty()) return run.config.init.from;
  const auto last = newest_step(run.source);
  return last.empty() ? run.source : last;
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

std::vector<CurvePoint> read_curve(const std::string& folder, const StudyMetric& metric, int64_t points) {
  auto progress = read_progress(folder, metric, points);
  warn_of_damage(folder, progress.damaged);
  auto& curve = progress.curve;
  if (!curve.empty())
    std::erase_if(curve, [last = curve.back().of](const CurvePoint& point) { return point.of != last; });
  return std::move(curve);
}

std::vector<CurvePoint> read_curve(const Plan& plan, const PlannedRun& run) {
  auto curve = read_curve(run_path(plan, run), plan.metric, run.config.evaluation.points);
  for (const auto& earlier : run.earlier) {
    const auto before = read_progress(earlier, LossMetric{.name = ""}, 0).last;
    for (auto& point : curve) add_usage(point, before);
  }
  return curve;
}

std::string divergence_of(const std::string& folder) {
  return read_progress(folder, LossMetric{.name = ""}, 0).diverged;
}

int64_t last_step(const std::string& folder) { return read_progress(folder, LossMetric{.name = ""}, 0).last.step; }

std::string result_fault(const Plan& plan, const PlannedRun& run, const RunRecord& record) {
  const auto folder = run_path(plan, run);
  const bool is_kept = record.kept == run.fingerprint && record.fingerprint != run.fingerprint;
  const auto remedy =
      is_kept ? std::string("make the run again with --redo")
              : concat("run the study again, which measures the run once more (without a checkpoint, remove ", folder,
                       " first, and it is trained again)");
  try {
    read_held_out(folder, remedy);
    require_readable_summary(folder, remedy);
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
  const auto record = read_record(record_path(plan, run));
  status.owner = owner_of(claim_path(plan, run));
  const auto progress = read_progress(run_path(plan, run), plan.metric, 0);
  const auto by = facts_of(plan.metric);
  const bool has_value = !progress.curve.empty() && !by.name.empty() && !is_of_task(plan.metric);
  if (has_value) status.value = progress.curve.back().loss;
  if (has_value) status.figure = by.title;
  status.step = progress.last.step;
  status.seconds = progress.last.seconds;
  status.progress = progress.share;
  if (record && record->done && !status.owner) status.lost_result = result_fault(plan, run, *record);
  const bool has_result = record && record->done && status.lost_result.empty();
  if (has_result && run.is_finetuning()) take_figure(status, read_task_summary(run_path(plan, run)));
  const auto fault = record && !status.owner ? weights_fault(plan, run, *record) : "";
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

namespace {

/// Throws DataError for losses that are not those in the summary of the run, which a file of another run has.
void require_own_losses(const std::string& folder, const HeldOutFile& file, const std::string& remedy) {
  const auto path = folder + "/summary.json";
  if (!fs::exists(path)) return;
  const auto losses = value_at(parse_json(read_text(path, max_file)), "/held_out");
  for (const auto& [name, part] : file.losses) {
    const auto own = losses.find(name);
    const auto said = own == losses.end() ? json() : value_at(*own, "/loss");
    const double value = part.examples.value();
    if (!said.is_number() || !std::isfinite(value)) continue;
    const double summary = said.get<double>();
    constexpr double rounding = 1e-9;  // of sums in another order
    require<DataError>(std::abs(value - summary) <= rounding * std::max(1.0, std::abs(summary)), folder,
                       "/held_out.json: is of another run, with a loss of ", significant(value, 7), " for ", name,
                       " where summary.json has ", significant(summary, 7), "; ", remedy);
  }
}

}  // namespace

HeldOutFile read_held_out(const std::string& folder, const std::string& remedy) {
  const auto path = folder + "/held_out.json";
  require<DataError>(fs::exists(path), path, ": is missing, so that the run cannot be scored; ", remedy);
  const auto fields = parse_json(read_text(path, max_file));
  const auto damaged = [&](bool fine) { require<DataError>(fine, path, ": is damaged or was edited; ", remedy); };
  HeldOutRecord record;
  try {
    record = fields.get<HeldOutRecord>();
  } catch (const json::exception&) {
    damaged(false);
  }
  damaged(record.xxh3 == hash_hex(json_text(fields["losses"])));
  damaged(record.seal.empty() || record.seal == seal_of(record));
  HeldOutFile file{.measured = record.measured, .step = record.step};
  const std::string before_tokens = ", tokens ";
  if (const auto at = file.measured.find(before_tokens); at != std::string::npos) {
    file.text = file.measured.substr(at + before_tokens.size());
    file.measured.erase(at);
  }
  for (auto& [name, part] : record.losses) {
    damaged(part.sum.size() == part.count.size() && (part.bytes.empty() || part.bytes.size() == part.sum.size()) &&
            (part.document.empty() || part.document.size() == part.sum.size()));
    file.losses[name] = {
        .examples = {.sum = std::move(part.sum), .count = std::move(part.count), .documents = std::move(part.document)},
        .bytes = {part.bytes.begin(), part.bytes.end()}};
  }
  require_own_losses(folder, file, remedy);
  return file;
}

void score(RunResult& result, MetricValue value) {
  result.documents = documents_in(value);
  result.value = value.value;
  result.examples = std::move(value.examples);
  result.measured = std::move(value.measured);
  result.text = std::move(value.text);
  result.by_nats = value.by_nats;
  result.floor = value.floor;
}

void add_usage(RunResult& result, const std::vector<CurvePoint>& curve) {
  add_text_read(result, result.folder);
  if (curve.empty()) return;
  const auto& end = curve.back();
  result.step = end.step;
  result.tokens = end.tokens;
  result.predicted_tokens = end.predicted_tokens;
  result.seconds = end.seconds;
  result.flops = end.flops;
  if (end.floor > 0) result.floor = end.floor * result.by_nats;
}

std::vector<MetricValue> read_secondary(const Plan& plan, const PlannedRun& run) {
  const auto folder = run_path(plan, run);
  std::vector<MetricValue> values;
  for (const auto& metric : plan.secondary) {
    if (!missing_finetunings(plan, metric, run).empty()) {
      values.push_back({.value = std::numeric_limits<double>::quiet_NaN()});
      continue;
    }
    auto whole = value_of(metric, folder, read_remedy);
    // A correlation has no parts, and nothing was chosen by it.
    const bool is_whole = is_of_task(metric) || whole.examples.sum.empty();
    values.push_back(is_whole ? std::move(whole) : part_of(std::move(whole), plan.part, folder));
  }
  return values;
}

RunResult read_result(const Plan& plan, const PlannedRun& run, const std::vector<CurvePoint>& curve) {
  RunResult result{.arm = run.arm, .seed = run.seed, .folder = run_path(plan, run)};
  const auto whole = value_of(plan.metric, result.folder, read_remedy);
  // Nothing is tuned on the items of a task.
  score(result, is_of_task(plan.metric) ? whole : part_of(whole, plan.part, result.folder));
  add_usage(result, curve);
  for (const auto& earlier : run.earlier) add_text_read(result, earlier);
  return result;
}

std::optional<RunResult> finished_result(const Plan& plan, const PlannedRun& run) {
  if (status_of(plan, run).state != RunState::done) return std::nullopt;
  auto result = read_result(plan, run, read_curve(plan, run));
  return std::isfinite(result.value) ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace cloze

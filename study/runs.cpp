#include "study/runs.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/file.h"
#include "core/json.h"
#include "run/yardstick.h"
#include "study/fingerprint.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t max_file = uint64_t{256} << 20;

/// Lines of metrics.jsonl that are whole; the last one may be cut by a kill.
template <class Visit>
void each_metric(const std::string& run, const Visit& visit) {
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto row = json::parse(line, nullptr, false);
    if (row.is_object() && row.contains("step") && row["step"].is_number()) visit(row);
  }
}

double number_at(const json& row, const char* part, const char* key, double otherwise) {
  if (!row.contains(part) || !row[part].is_object()) return otherwise;
  const auto& inner = row[part];
  return inner.contains(key) && inner[key].is_number() ? inner[key].get<double>() : otherwise;
}

/// What a run had used up at a line of its metrics; numbers that the line lacks stay.
void take_usage(const json& row, CurvePoint& now) {
  now.step = row["step"].get<int64_t>();
  const auto take = [&](const char* key, auto& value) {
    if (row.contains(key) && row[key].is_number()) value = row[key];
  };
  take("tokens", now.tokens);
  take("predicted_tokens", now.predicted_tokens);
  take("flops", now.flops);
  take("epochs", now.epochs);
  now.seconds = number_at(row, "time", "seconds", now.seconds);
}

}  // namespace

std::string run_path(const Plan& plan, const PlannedRun& run) { return plan.folder + "/" + run.folder; }
std::string config_path(const Plan& plan, const PlannedRun& run) { return run_path(plan, run) + ".yaml"; }
std::string record_path(const Plan& plan, const PlannedRun& run) { return run_path(plan, run) + ".json"; }
std::string claim_path(const Plan& plan, const PlannedRun& run) { return run_path(plan, run) + ".lock"; }
std::string log_path(const Plan& plan, const PlannedRun& run) { return run_path(plan, run) + ".log"; }

std::optional<RunRecord> read_record(const std::string& path) {
  if (!fs::exists(path)) return std::nullopt;
  const auto fields = json::parse(read_text(path, 1 << 20), nullptr, false);
  require<DataError>(fields.is_object(), path, ": is damaged; remove it, and the run is started or resumed again");
  const auto text = [&](const char* key) {
    return fields.contains(key) && fields[key].is_string() ? fields[key].get<std::string>() : std::string();
  };
  return RunRecord{.fingerprint = text("fingerprint"),
                   .version = text("version"),
                   .done = fields.contains("done") && fields["done"] == true,
                   .message = text("message")};
}

void write_record(const std::string& path, const RunRecord& record) {
  const json fields{{"fingerprint", record.fingerprint},
                    {"version", record.version},
                    {"done", record.done},
                    {"message", record.message}};
  write_atomic(path, fields.dump(2) + "\n");
}

std::vector<CurvePoint> read_curve(const Plan& plan, const PlannedRun& run) {
  std::vector<CurvePoint> curve;
  CurvePoint now;
  each_metric(run_path(plan, run), [&](const json& row) {
    take_usage(row, now);
    if (!row.contains("held_out_loss") || !row["held_out_loss"].is_number()) return;
    now.loss = row["held_out_loss"].get<double>();
    const double points = static_cast<double>(run.config.evaluation.points);
    now.point = static_cast<int64_t>(points * number_at(row, "time", "budget_share", 0) + 1e-6);
    curve.push_back(now);
  });
  return curve;
}

RunStatus status_of(const Plan& plan, const PlannedRun& run) {
  RunStatus status{.loss = std::numeric_limits<double>::quiet_NaN()};
  const auto record = read_record(record_path(plan, run));
  status.owner = owner_of(claim_path(plan, run));
  CurvePoint last;
  each_metric(run_path(plan, run), [&](const json& row) {
    take_usage(row, last);
    status.progress = number_at(row, "time", "budget_share", status.progress);
    if (row.contains("held_out_loss") && row["held_out_loss"].is_number()) status.loss = row["held_out_loss"];
  });
  status.step = last.step;
  status.seconds = last.seconds;
  if (status.owner)
    status.state = RunState::running;
  else if (record && record->fingerprint != run.fingerprint)
    status.state = RunState::stale;
  else if (record && record->done)
    status.state = RunState::done, status.progress = 1;
  else if (record && !record->message.empty())
    status.state = RunState::failed, status.message = record->message;
  return status;
}

RunResult read_result(const Plan& plan, const PlannedRun& run) {
  const auto folder = run_path(plan, run), path = folder + "/held_out.json";
  require<DataError>(fs::exists(path), path, ": is missing, so that the run cannot be scored; run the study again");
  const auto fields = parse_json(read_text(path, max_file));
  const auto damaged = [&](bool fine) {
    require<DataError>(fine, path, ": is damaged or was edited; remove ", folder, " and run the study again");
  };
  damaged(fields.is_object() && fields.contains("losses") && fields["losses"].is_object() && fields.contains("xxh3") &&
          fields["xxh3"] == hash_hex(fields["losses"].dump()));
  RunResult result{.arm = run.arm, .seed = run.seed, .folder = folder, .measured = fields.value("measured", "")};
  const std::string before_tokens = ", tokens ";
  if (const auto at = result.measured.find(before_tokens); at != std::string::npos) {
    result.text = result.measured.substr(at + before_tokens.size());
    result.measured.erase(at);
  }
  const auto& metric = plan.study.metric;
  const auto name = short_form(parse_objective(metric.objective));
  damaged(fields["losses"].contains(name));
  const auto& losses = fields["losses"][name];
  result.examples.sum = losses.at("sum").get<std::vector<double>>();
  if (metric.unit == LossUnit::nats) {
    result.examples.count = losses.at("count").get<std::vector<double>>();
  } else {
    require<DataError>(losses.contains("bytes"), path,
                       ": has no byte counts, since its tokens were prepared without them; prepare the text again "
                       "with --force, or compare in nats");
    result.examples.count = losses["bytes"].get<std::vector<double>>();
    for (auto& count : result.examples.count) count *= std::numbers::ln2;
  }
  damaged(result.examples.sum.size() == result.examples.count.size());
  result.value = result.examples.value();
  const auto curve = read_curve(plan, run);
  if (!curve.empty()) {
    const auto& end = curve.back();
    result.step = end.step;
    result.tokens = end.tokens;
    result.predicted_tokens = end.predicted_tokens;
    result.seconds = end.seconds;
    result.flops = end.flops;
    result.epochs = end.epochs;
  }
  return result;
}

}  // namespace cloze

#include "study/runs.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

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

double share_of_budget(const BudgetConfig& budget, const CurvePoint& at) {
  double share = 0;
  const auto consider = [&](double used, double whole) {
    if (whole > 0) share = std::max(share, used / whole);
  };
  consider(static_cast<double>(at.step), static_cast<double>(budget.steps));
  consider(static_cast<double>(at.tokens), static_cast<double>(budget.tokens));
  consider(at.seconds / 60, budget.minutes);
  return std::min(share, 1.0);
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
    now.step = row["step"].get<int64_t>();
    if (row.contains("tokens") && row["tokens"].is_number()) now.tokens = row["tokens"].get<int64_t>();
    now.seconds = number_at(row, "time", "seconds", now.seconds);
    if (!row.contains("held_out_loss") || !row["held_out_loss"].is_number()) return;
    now.loss = row["held_out_loss"].get<double>();
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
    last.step = row["step"].get<int64_t>();
    if (row.contains("tokens") && row["tokens"].is_number()) last.tokens = row["tokens"].get<int64_t>();
    last.seconds = number_at(row, "time", "seconds", last.seconds);
    if (row.contains("held_out_loss") && row["held_out_loss"].is_number()) status.loss = row["held_out_loss"];
  });
  status.step = last.step;
  status.seconds = last.seconds;
  status.progress = share_of_budget(run.config.train.budget, last);
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
  RunResult result{.arm = run.arm, .seed = run.seed, .folder = folder, .text = fields.value("measured", "")};
  const auto& metric = plan.study.metric;
  const auto name = short_form(parse_objective(metric.objective));
  damaged(fields["losses"].contains(name));
  const auto& losses = fields["losses"][name];
  result.examples.sum = losses.at("sum").get<std::vector<double>>();
  result.examples.count = losses.at("count").get<std::vector<double>>();
  damaged(result.examples.sum.size() == result.examples.count.size());
  result.value = result.examples.value();
  const auto curve = read_curve(plan, run);
  if (!curve.empty()) {
    result.step = curve.back().step, result.tokens = curve.back().tokens;
    result.seconds = curve.back().seconds, result.flops = curve.back().flops;
  }
  return result;
}

}  // namespace cloze

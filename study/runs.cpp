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

double number_at(const json& row, const char* part, const char* key, double otherwise) {
  if (!row.contains(part) || !row[part].is_object()) return otherwise;
  const auto& inner = row[part];
  return inner.contains(key) && inner[key].is_number() ? inner[key].get<double>() : otherwise;
}

/// What a line of metrics.jsonl says; a line that was cut says nothing.
json row_of(const std::string& line) {
  const auto row = json::parse(line, nullptr, false);
  return row.is_object() && row.contains("step") && row["step"].is_number() ? row : json();
}

void advance(CurvePoint& now, const json& row) {
  if (row.is_null()) return;
  now.step = row["step"].get<int64_t>();
  if (row.contains("tokens") && row["tokens"].is_number()) now.tokens = row["tokens"].get<int64_t>();
  now.seconds = number_at(row, "time", "seconds", now.seconds);
}

/// The held-out losses of a run and where it stands. Of the lines between two evaluations only the last is parsed.
struct Progress {
  std::vector<CurvePoint> curve{};
  CurvePoint last{};
};
Progress read_progress(const std::string& folder) {
  Progress found;
  std::ifstream file(folder + "/metrics.jsonl");
  std::string before;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"held_out_loss\"") == std::string::npos) {
      before = line;
      continue;
    }
    advance(found.last, row_of(std::exchange(before, "")));
    const auto row = row_of(line);
    advance(found.last, row);
    if (row.is_null() || !row["held_out_loss"].is_number()) continue;
    found.curve.push_back(found.last);
    found.curve.back().loss = row["held_out_loss"].get<double>();
  }
  advance(found.last, row_of(before));
  return found;
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

std::vector<CurvePoint> read_curve(const std::string& folder) { return read_progress(folder).curve; }

std::vector<CurvePoint> read_curve(const Plan& plan, const PlannedRun& run) { return read_curve(run_path(plan, run)); }

int64_t last_step(const std::string& folder) { return read_progress(folder).last.step; }

RunStatus status_of(const Plan& plan, const PlannedRun& run) {
  RunStatus status{.loss = std::numeric_limits<double>::quiet_NaN()};
  const auto record = read_record(record_path(plan, run));
  status.owner = owner_of(claim_path(plan, run));
  const auto [curve, last] = read_progress(run_path(plan, run));
  if (!curve.empty()) status.loss = curve.back().loss;
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

HeldOutFile read_held_out(const std::string& folder, const std::string& remedy) {
  const auto path = folder + "/held_out.json";
  require<DataError>(fs::exists(path), path, ": is missing, so that the run cannot be scored; ", remedy);
  const auto fields = parse_json(read_text(path, max_file));
  const auto damaged = [&](bool fine) {
    require<DataError>(fine, path, ": is damaged or was edited; remove ", folder, " and ", remedy);
  };
  damaged(fields.is_object() && fields.contains("losses") && fields["losses"].is_object() && fields.contains("xxh3") &&
          fields["xxh3"] == hash_hex(fields["losses"].dump()));
  HeldOutFile file;
  const auto text = [](const json& value) { return value.is_string() ? value.get<std::string>() : std::string(); };
  if (fields.contains("measured")) file.measured = text(fields["measured"]);
  if (fields.contains("step") && fields["step"].is_number()) file.step = fields["step"].get<int64_t>();
  // A loss that is not finite stands as null.
  const auto number = [](const json& value) {
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  };
  for (const auto& [name, part] : fields["losses"].items()) {
    damaged(part.is_object() && part.contains("sum") && part.contains("count") && part["sum"].is_array() &&
            part["count"].is_array() && part["sum"].size() == part["count"].size());
    auto& losses = file.losses[name];
    for (const auto& value : part["sum"]) losses.sum.push_back(number(value));
    for (const auto& value : part["count"]) losses.count.push_back(number(value));
  }
  return file;
}

RunResult read_result(const Plan& plan, const PlannedRun& run) {
  RunResult result{.arm = run.arm, .seed = run.seed, .folder = run_path(plan, run)};
  auto file = read_held_out(result.folder, "run the study again");
  const auto name = short_form(parse_objective(plan.study.metric.objective));
  const auto losses = file.losses.find(name);
  require<DataError>(losses != file.losses.end(), result.folder, "/held_out.json: has no loss of '", name,
                     "', by which the study compares; run the study again with --redo");
  result.text = file.measured;
  result.examples = std::move(losses->second);
  result.value = result.examples.value();
  add_totals(result, read_curve(plan, run));
  return result;
}

void add_totals(RunResult& result, const std::vector<CurvePoint>& curve) {
  if (curve.empty()) return;
  const auto& end = curve.back();
  result.step = end.step, result.tokens = end.tokens, result.seconds = end.seconds, result.flops = end.flops;
}

}  // namespace cloze

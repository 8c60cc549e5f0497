#include "train/records.h"

#include <filesystem>
#include <utility>

#include "core/json.h"
#include "core/lines.h"
#include "core/log.h"
#include "run/process.h"
#include "train/suites.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// {NAME: {loss, accuracy, count}} of each objective; of binary ones with the majority baseline, of detection with F1.
json losses_of(const LogLine& line) {
  json losses = json::object();
  for (const auto& part : line.parts) {
    auto& entry = losses[part.name];
    entry = {{"loss", part.loss()}, {"accuracy", part.accuracy()}, {"count", part.count}};
    if (!part.binary) continue;
    entry["majority"] = majority_baseline(part.binary->positives, part.count).accuracy;
    if (part.binary->detects) entry["f1"] = f1_score(*part.binary);
  }
  return losses;
}

json flat_losses(const std::vector<HeldOut>& held_out) {
  json losses;
  for (const auto& part : held_out) {
    losses[part.name + "_loss"] = part.loss;
    losses[part.name + "_accuracy"] = part.accuracy;
    if (part.standard_error) losses[part.name + "_standard_error"] = *part.standard_error;
    if (part.baseline) losses[part.name + "_baseline_loss"] = part.baseline->loss;
    if (part.baseline) losses[part.name + "_baseline_accuracy"] = part.baseline->accuracy;
    if (part.f1) losses[part.name + "_f1"] = *part.f1;
  }
  return losses;
}

double budget_share(const Session& session) { return used_share(session.config.train.budget, usage(session)); }

/// The step folder of the best checkpoint; null without one.
json best_checkpoint(const Session& session) {
  if (session.state.best_step == 0) return {};
  const auto folder = find_checkpoint(session.options.run, std::to_string(session.state.best_step));
  return folder.empty() ? json() : json(fs::path(folder).filename().string());
}

/// The training losses of the last line of the log; that of an earlier process if this one has written none. Null: none
/// can be read.
json last_train_losses(const Session& session) {
  if (!session.train_losses.is_null()) return session.train_losses;
  const auto path = session.options.run + "/metrics.jsonl";
  LogLines rows(path);
  json row;
  int64_t number = 0, damaged = 0;  // of the line; of one after the last whole one, 0: none
  for (std::string line; rows.next(line);) {
    ++number;
    if (line.find("\"learning_rate\"") == std::string::npos) continue;
    auto parsed = parse_json(line);
    damaged = parsed.is_object() ? 0 : number;
    if (parsed.is_object()) row = std::move(parsed);
  }
  if (damaged > 0)
    log_warning("train",
                words(path, ": line ", damaged, " is damaged; the training losses of summary.json are those of ",
                      row.is_null() ? "no line" : "the line before"));
  if (!row.is_object()) return {};
  json losses;
  for (const auto& [name, value] : row.items())
    if (value.is_object() && value.contains("count")) losses[name] = value;
  return losses;
}

json to_json(const Ledger& ledger) {
  return {{"data_wait", ledger.data_wait}, {"forward", ledger.forward},       {"backward", ledger.backward},
          {"optimizer", ledger.optimizer}, {"evaluation", ledger.evaluation}, {"checkpoint", ledger.checkpoint},
          {"other", ledger.other}};
}

}  // namespace

void record_row(Session& session, const json& row) {
  session.lock.require_in_place();
  session.metrics->write(row);
}

void record_training(Session& session, double rate, double speed) {
  const auto& state = session.state;
  session.train_losses = losses_of(state.line);
  const auto time = full_ledger(session);
  json row = session.train_losses;
  row.update({{"step", state.step},
              {"loss", state.line.loss()},
              {"learning_rate", rate},
              {"grad_norm", state.line.grad_norm()},
              {"tokens", state.tokens},
              {"predicted_tokens", state.predicted_tokens},
              {"flops", state.flops},
              {"epochs", usage(session).epochs},
              {"time",
               {{"seconds", state.seconds},
                {"budget_share", budget_share(session)},
                {"tokens_per_second", speed},
                {"data_wait_share", time.data_wait / std::max(time.seconds, 1e-9)}}}});
  record_row(session, row);
}

void record_held_out(Session& session) {
  const auto& state = session.state;
  record_row(session, {{"step", state.step},
                       {"tokens", state.tokens},
                       {"predicted_tokens", state.predicted_tokens},
                       {"flops", state.flops},
                       {"time", {{"seconds", state.seconds}, {"budget_share", budget_share(session)}}},
                       {"held_out", flat_losses(session.held_out)},
                       {"held_out_loss", session.held_out_loss}});
}

std::string summary_of(const Session& session, const PretrainReport& report) {
  const auto used = usage(session);
  json summary{{"steps", report.steps},
               {"tokens", report.tokens},
               {"predicted_tokens", session.state.predicted_tokens},
               {"words", used.words},
               {"epochs", used.epochs},
               {"flops", session.state.flops},
               {"seconds", report.seconds},
               {"tokens_per_second", report.tokens_per_second},
               {"train", last_train_losses(session)},
               {"held_out_loss", report.held_out_loss},
               {"held_out", to_json(report.held_out)},
               {"best_step", report.best_step},
               {"best_checkpoint", best_checkpoint(session)},
               {"unigram_loss", report.unigram_loss},
               {"unigram_accuracy", report.unigram_accuracy},
               {"stopped_by", report.stopped_by},
               {"peak_memory_bytes", peak_memory()},
               {"ledger", to_json(report.ledger)}};
  if (!session.suite_results.empty()) summary["suites"] = to_json(session.suite_results);
  return json_text(summary, 2) + "\n";
}

}  // namespace cloze

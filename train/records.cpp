#include "train/records.h"

#include <filesystem>
#include <utility>

#include "core/file.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "run/process.h"
#include "train/callbacks/suites.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The step folder of the best checkpoint; null without one.
json best_checkpoint(const std::string& run, int64_t best_step) {
  if (best_step == 0) return {};
  const auto folder = find_checkpoint(run, std::to_string(best_step));
  return folder.empty() ? json() : json(fs::path(folder).filename().string());
}

/// The training losses of the last line of the log of a run. Null: none can be read.
json last_losses(const std::string& run) {
  const auto path = run + "/metrics.jsonl";
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
                concat(path, ": line ", damaged, " is damaged; the training losses of summary.json are those of ",
                       row.is_null() ? "no line" : "the line before"));
  if (!row.is_object()) return {};
  json losses;
  for (const auto& [name, value] : row.items())
    if (value.is_object() && value.contains("count")) losses[name] = value;
  return losses;
}

/// Without their sum, which stands beside it.
json parts_of(const TimeBreakdown& time_breakdown) {
  json parts = time_breakdown;
  parts.erase("seconds");
  return parts;
}

}  // namespace

json row_of(const Training& training) {
  const auto& progress = training.progress;
  return {{"step", progress.step}, {"tokens", progress.tokens}, {"flops", progress.flops}};
}

json flat_losses(const std::vector<HeldOut>& held_out) {
  json losses;
  for (const auto& part : held_out) {
    losses[part.name + "_loss"] = part.loss;
    if (part.accuracy) losses[part.name + "_accuracy"] = *part.accuracy;
    if (part.standard_error) losses[part.name + "_standard_error"] = *part.standard_error;
    if (part.baseline) losses[part.name + "_baseline_loss"] = part.baseline->loss;
    if (part.baseline) losses[part.name + "_baseline_accuracy"] = part.baseline->accuracy;
    if (part.f1) losses[part.name + "_f1"] = *part.f1;
  }
  return losses;
}

std::string summary_of(const Training& training, const PretrainReport& report, const json& losses) {
  const auto used = usage(training);
  json summary{{"steps", report.steps},
               {"tokens", report.tokens},
               {"predicted_tokens", training.progress.predicted_tokens},
               {"words", used.words},
               {"epochs", used.epochs},
               {"flops", training.progress.flops},
               {"seconds", report.seconds},
               {"tokens_per_second", report.tokens_per_second},
               {"train", losses.is_null() ? last_losses(training.options.run) : losses},
               {"held_out_loss", report.held_out_loss},
               {"held_out", to_json(report.held_out)},
               {"best_step", report.best_step},
               {"best_checkpoint", best_checkpoint(training.options.run, report.best_step)},
               {"unigram_loss", report.unigram_loss},
               {"unigram_accuracy", report.unigram_accuracy},
               {"stopped_by", report.stopped_by},
               {"parameters", training.stepper->parameters()},
               {"trained_parameters", training.stepper->trained_parameters()},
               {"peak_memory_bytes", peak_memory()},
               {"ledger", parts_of(report.time_breakdown)}};
  if (!report.suites.empty()) summary["suites"] = to_json(report.suites);
  if (!report.task.is_null()) summary["task"] = report.task;
  return json_text(summary, 2) + "\n";
}

}  // namespace cloze

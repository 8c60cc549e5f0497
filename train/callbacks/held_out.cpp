#include "train/callbacks/held_out.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/log.h"
#include "core/stopwatch.h"
#include "run/config/evaluation_protocol.h"
#include "train/records.h"
#include "train/warnings.h"

namespace cloze {

namespace {

/// Names the checkpoint of a step the best one of the run; without such a checkpoint, nothing is written.
void mark_best(Training& training, int64_t step) {
  const auto& run = training.options.run;
  const auto best = find_checkpoint(run, std::to_string(step));
  training.lock->require_in_place();
  if (!best.empty()) write_pointer(run, "best", std::filesystem::path(best).filename().string());
}

}  // namespace

HeldOutEvaluation::HeldOutEvaluation(Training& training, const TrainingLog& log, Checkpoints& checkpoints)
    : log_(log),
      checkpoints_(checkpoints),
      validation_(training.parts.validation(training)),
      protocol_(evaluation_protocol(training.config, training.held_out_store)),
      chosen_(validation_->chosen()) {}

void HeldOutEvaluation::restore(Training& training, const SavedStep& saved) {
  const auto& state = saved.state;
  evaluated_at_ = state.evaluated_at;
  const bool is_comparable = state.evaluation_protocol == protocol_;
  if (!is_comparable && state.best_step > 0)
    log_info("train",
             concat(saved.folder,
                    ": its best held-out loss comes from a different evaluation; the search for the best starts over"));
  due_ = state.held_out_due && !saved.is_branch;
  best_cost_ = state.best_loss;
  chosen_.update(state.chosen);
  if (!is_comparable || saved.is_branch) return;  // the best is searched for in this run
  best_step_ = state.best_step;
  evaluations_without_gain_ = state.evaluations_without_gain;
  // A run that was killed right after its best checkpoint may lack the file `best`.
  if (best_step_ > 0) mark_best(training, best_step_);
}

void HeldOutEvaluation::begin(Training& training) {
  validation_->announce(training);
  const auto& evaluation = training.config.evaluation;
  due_ = due_ && (evaluation.every > 0 || evaluation.points > 0);
  if (due_) evaluate(training);
  stop_without_gain(training);
}

void HeldOutEvaluation::note_due(const Training& training, bool at_end) {
  due_ = at_end ? evaluated_at_ != training.progress.step : is_within_budget(training) && is_due_after(training);
}

void HeldOutEvaluation::after_step(Training& training) {
  if (!due_) return;
  evaluate(training);
  stop_without_gain(training);
}

void HeldOutEvaluation::finish(Training& training) {
  if (due_ || validation_->losses().empty()) evaluate(training);
}

void HeldOutEvaluation::save(TrainState& state) const {
  state.held_out_due = due_;
  state.evaluated_at = evaluated_at_;
  state.best_step = best_step_;
  state.best_loss = best_cost_;
  state.chosen = chosen_;
  state.evaluations_without_gain = evaluations_without_gain_;
  state.evaluation_protocol = protocol_;
}

void HeldOutEvaluation::conclude(const Training&, PretrainReport& report) {
  report.held_out = validation_->losses();
  report.held_out_loss = validation_->loss();
  report.best_step = best_step_;
  validation_->conclude(best_step_ > 0 ? best_cost_ : std::numeric_limits<double>::quiet_NaN(), report);
}

/// Whether the step that was made is one of those that are evaluated.
bool HeldOutEvaluation::is_due_after(const Training& training) const {
  const auto& evaluation = training.config.evaluation;
  if (evaluation.points == 0) return evaluation.every > 0 && training.progress.step % evaluation.every == 0;
  const auto points = static_cast<double>(evaluation.points);
  return std::floor(points * budget_share(training)) > std::floor(points * training.last.share_before);
}

void HeldOutEvaluation::record(Training& training) const {
  auto row = row_of(training);
  row.update({{"predicted_tokens", training.progress.predicted_tokens},
              {"time", {{"seconds", training.progress.seconds}, {"budget_share", budget_share(training)}}},
              {"held_out", flat_losses(validation_->losses())},
              {"held_out_loss", validation_->loss()}});
  validation_->add_to(row);
  training.record(row);
}

void HeldOutEvaluation::report_nothing_measured(const Training& training) {
  end_progress();
  if (std::exchange(reported_nothing_measured_, true)) return;
  log_info("train", concat("no held-out evaluation at step ", training.progress.step,
                           ": none of evaluation.objectives is active (from_step, until_step)"));
}

/// True if one of the losses says that training has diverged, which a process reports once.
bool HeldOutEvaluation::shows_divergence(Training& training) const {
  if (!validation_->shows_divergence()) return false;
  bool diverged = false;
  for (const auto& part : validation_->losses()) {
    if (!is_far_above_guessing(part.loss, training.guessing)) continue;
    diverged = true;
    report_divergence(training, divergence_warning("held-out loss of " + part.name, part.loss, training.progress.step,
                                                   training.guessing));
  }
  return diverged;
}

void HeldOutEvaluation::warn(const Training& training) {
  const auto few_replaced = replaced_warning(validation_->losses(), training.config.evaluation);
  if (!few_replaced.empty() && !std::exchange(warned_of_few_replaced_, true)) log_warning("train", few_replaced);
  if (!std::isfinite(validation_->loss()))
    log_warning("train", concat("the held-out loss at step ", training.progress.step,
                                " is not finite, so this step cannot be the best; lower the learning rate"));
}

void HeldOutEvaluation::save_best(Training& training) {
  const int64_t step = training.progress.step;
  best_cost_ = validation_->cost();
  best_step_ = step;
  evaluations_without_gain_ = 0;
  checkpoints_.save_step(training, /*must=*/false);
  if (checkpoints_.saved_at() != step) return;
  try {
    mark_best(training, step);
  } catch (const Error& e) {
    log_warning("train", e.what());
  }
}

/// Evaluates. Throws Interrupted after a signal, with nothing counted.
void HeldOutEvaluation::evaluate(Training& training) {
  const int64_t step = training.progress.step;
  const auto start = Clock::now();
  {
    const AveragedWeights averaged(*training.stepper);
    validation_->measure(training);
  }
  chosen_ = validation_->chosen();
  due_ = false;
  const auto& losses = validation_->losses();
  if (losses.empty()) {
    report_nothing_measured(training);
    return;
  }
  const auto text = concat("held out at step ", step, ":", to_text(losses), validation_->text());
  if (evaluated_at_ == step) {
    log_info("train", text);
    return;
  }
  record(training);
  training.time_breakdown.evaluation += seconds_since(start);
  training.tell("evaluated",
                {{"held_out_loss", validation_->loss()}, {"held_out", to_json(losses)}, {"train", log_.losses()}});
  if (best_step_ > 0 && !same_losses(training.config, best_step_ - 1, step - 1))
    best_step_ = 0;  // sums of other losses are not comparable with this one
  end_progress();
  warn(training);
  const bool diverged = shows_divergence(training);
  const double cost = validation_->cost();
  const bool better = std::isfinite(cost) && !diverged && (best_step_ == 0 || cost < best_cost_);
  log_info("train", text + (better ? "  (best so far)" : ""));
  evaluated_at_ = step;
  checkpoints_.forget_saved();
  if (better)
    save_best(training);
  else
    ++evaluations_without_gain_;
}

void HeldOutEvaluation::stop_without_gain(Training& training) const {
  const int64_t patience = training.config.evaluation.patience;
  if (patience > 0 && evaluations_without_gain_ >= patience) training.stop_reason = "patience";
}

}  // namespace cloze

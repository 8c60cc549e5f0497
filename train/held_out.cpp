#include "train/held_out.h"

#include <cmath>
#include <utility>

#include "core/log.h"
#include "run/device.h"
#include "train/checkpoints.h"
#include "train/events.h"
#include "train/records.h"
#include "train/stopwatch.h"
#include "train/warnings.h"

namespace cloze {

namespace {

/// Computes the losses of the objectives that are active; none: NaN.
void measure(Session& session) {
  auto& losses = session.held_out;
  const AveragedWeights averaged(*session.stepper);
  losses = evaluate(*session.network, session.measures, session.config.train.batch_size,
                    device_of(session.config.train.device), /*active_only=*/true);
  std::erase_if(losses, [](const HeldOut& part) { return part.count == 0; });
  session.held_out_loss = losses.empty() ? std::numeric_limits<double>::quiet_NaN() : 0;
  for (const auto& part : losses) session.held_out_loss += part.weight * part.loss;
}

void report_nothing_measured(Session& session) {
  end_progress();
  if (std::exchange(session.warned.of_nothing_measured, true)) return;
  log_info("train", words("no held-out evaluation at step ", session.state.step,
                          ": none of evaluation.objectives is active (from_step, until_step)"));
}

/// True if one of the losses says that training has diverged, which a process reports once.
bool has_diverged(Session& session) {
  const int64_t vocabulary = backbone_of(session.config.model).vocab_size;
  bool diverged = false;
  for (const auto& part : session.held_out) {
    if (!is_far_above_guessing(part.loss, vocabulary)) continue;
    diverged = true;
    report_divergence(session,
                      divergence_warning("held-out loss of " + part.name, part.loss, session.state.step, vocabulary));
  }
  return diverged;
}

void warn(Session& session) {
  const auto few_replaced = replaced_warning(session.held_out, session.config.evaluation);
  if (!few_replaced.empty() && !std::exchange(session.warned.of_few_replaced, true)) log_warning("train", few_replaced);
  if (!std::isfinite(session.held_out_loss))
    log_warning("train", words("the held-out loss at step ", session.state.step,
                               " is not finite, so this step cannot be the best; lower the learning rate"));
}

bool is_best(const Session& session) {
  return session.state.best_step == 0 || session.held_out_loss < session.state.best_loss;
}

void save_best(Session& session) {
  auto& state = session.state;
  state.best_loss = session.held_out_loss;
  state.best_step = state.step;
  state.evaluations_without_gain = 0;
  save(session, false);
  if (session.saved_at != state.step) return;
  try {
    mark_best(session);
  } catch (const Error& e) {
    log_warning("train", e.what());
  }
}

}  // namespace

bool evaluation_is_due(const Session& session, double share_before) {
  const auto& evaluation = session.config.evaluation;
  if (evaluation.points == 0) return evaluation.every > 0 && session.state.step % evaluation.every == 0;
  const auto points = static_cast<double>(evaluation.points);
  const double share = used_share(session.config.train.budget, usage(session));
  return std::floor(points * share) > std::floor(points * share_before);
}

bool patience_is_over(const Session& session) {
  const int64_t patience = session.config.evaluation.patience;
  return patience > 0 && session.state.evaluations_without_gain >= patience;
}

void evaluate_held_out(Session& session) {
  auto& state = session.state;
  const auto start = Clock::now();
  measure(session);
  state.held_out_due = false;
  if (session.held_out.empty()) {
    report_nothing_measured(session);
    return;
  }
  const auto text = words("held out at step ", state.step, ":", to_text(session.held_out));
  if (state.evaluated_at == state.step) {
    log_info("train", text);
    return;
  }
  record_held_out(session);
  session.ledger.evaluation += seconds_since(start);
  tell_evaluated(session);
  if (state.best_step > 0 && !same_losses(session.config, state.best_step - 1, state.step - 1))
    state.best_step = 0;  // sums of other losses are not comparable with this one
  end_progress();
  warn(session);
  const bool diverged = has_diverged(session);
  const bool better = std::isfinite(session.held_out_loss) && !diverged && is_best(session);
  log_info("train", text + (better ? "  (best so far)" : ""));
  state.evaluated_at = state.step;
  session.saved_at = -1;
  if (better)
    save_best(session);
  else
    ++state.evaluations_without_gain;
}

}  // namespace cloze

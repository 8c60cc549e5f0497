#include "train/validation.h"

#include <algorithm>

#include "core/log.h"
#include "run/device.h"
#include "train/callbacks/training_log.h"
#include "train/orders.h"
#include "train/training.h"

namespace cloze {

double Validation::loss() const {
  double sum = losses_.empty() ? std::numeric_limits<double>::quiet_NaN() : 0;
  for (const auto& part : losses_) sum += part.weight * part.loss;
  return sum;
}

std::string Validation::file(const Training& training, const std::string& protocol) const {
  return held_out_file(training.progress.step, protocol, losses_, {});
}

HeldOutLosses::HeldOutLosses(const Training& training)
    : measures_(training.processes.is_first()
                    ? held_out_measures(training.config, training.held_out_store)
                    : held_out_measures(training.config, training.held_out_store, /*train_counts=*/{})) {}

void HeldOutLosses::announce(const Training& training) const {
  const auto missing = missing_sequences(measures_, training.config.evaluation.sequences);
  if (!missing.empty())
    log_info("data", concat("the held-out text is shorter than evaluation.sequences asks for (", missing,
                            "), so that standard errors are larger"));
  const auto of_tokens = std::count_if(measures_.begin(), measures_.end(),
                                       [](const auto& measure) { return measure.unigram.has_value(); });
  for (const auto& measure : measures_) {
    if (!measure.unigram) continue;
    log_info("train", concat("unigram baseline on held-out text", of_tokens > 1 ? " (" + measure.name + ")" : "",
                             ": loss ", fixed_or_dash(measure.unigram->loss, 4), ", accuracy ",
                             fixed_or_dash(measure.unigram->accuracy, 4)));
  }
}

void HeldOutLosses::measure(Training& training) {
  const auto& train = training.config.train;
  const bool is_alone = train.ema_decay > 0;  // with the average, which the others do not have
  if (!is_alone && training.processes.is_first()) give_order(training, Order::measure);
  losses_ = evaluate(*training.network, measures_, train.batch_size, device_of(train.device), /*active_only=*/true,
                     is_alone ? alone() : training.processes);
  std::erase_if(losses_, [](const HeldOut& part) { return part.count == 0; });
}

std::string HeldOutLosses::file(const Training& training, const std::string& protocol) const {
  const auto sources = measures_.empty() ? std::vector<SourceSpan>() : measures_.front().collator.store().sources();
  return held_out_file(training.progress.step, protocol, losses_, sources);
}

void HeldOutLosses::conclude(double, PretrainReport& report) const {
  const auto of_tokens =
      std::ranges::find_if(measures_, [](const auto& measure) { return measure.unigram.has_value(); });
  if (of_tokens == measures_.end()) return;
  report.unigram_loss = of_tokens->unigram->loss;
  report.unigram_accuracy = of_tokens->unigram->accuracy;
}

}  // namespace cloze

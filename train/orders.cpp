#include "train/orders.h"

namespace cloze {

namespace {

/// Takes the progress of the first process.
void share_progress(Training& training) {
  auto& p = training.progress;
  const std::vector<double> own{static_cast<double>(p.step),
                                static_cast<double>(p.sequences),
                                static_cast<double>(p.phase),
                                static_cast<double>(p.phase_start.step),
                                static_cast<double>(p.phase_start.sequence),
                                p.phase_start.epochs,
                                static_cast<double>(p.tokens),
                                static_cast<double>(p.predicted_tokens),
                                p.flops,
                                p.seconds};
  const auto first = training.processes.exchange(own)[0];
  p = {.step = static_cast<int64_t>(first[0]),
       .sequences = static_cast<uint64_t>(first[1]),
       .phase = static_cast<int64_t>(first[2]),
       .phase_start = {.step = static_cast<int64_t>(first[3]),
                       .sequence = static_cast<uint64_t>(first[4]),
                       .epochs = first[5]},
       .tokens = static_cast<int64_t>(first[6]),
       .predicted_tokens = static_cast<int64_t>(first[7]),
       .flops = first[8],
       .seconds = first[9]};
}

}  // namespace

void give_order(Training& training, Order order) {
  auto& processes = training.processes;
  if (processes.size() == 1) return;
  training.waited.clear();
  const std::vector<double> own{static_cast<double>(order), training.progress.seconds, processes.seconds_waited()};
  for (const auto& told : processes.exchange(own)) training.waited.push_back(told.back());
}

Order next_order(Training& training) {
  auto& processes = training.processes;
  const double before = processes.seconds_waited();
  const auto first = processes.exchange({before - training.between_steps})[0];
  training.between_steps += processes.seconds_waited() - before;
  training.progress.seconds = first.at(1);
  return static_cast<Order>(first.at(0));
}

void share_start(Training& training) {
  if (training.processes.size() == 1) return;
  share_progress(training);
  training.stepper->spread();
}

}  // namespace cloze

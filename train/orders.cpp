#include "train/orders.h"

#include <nlohmann/json.hpp>

#include "core/json_fields.h"

namespace cloze {

void give_order(Training& training, Order order) {
  auto& processes = training.processes;
  if (processes.size() == 1) return;
  training.waited.clear();
  const std::vector<double> own{static_cast<double>(order), training.progress.seconds, processes.seconds_waited()};
  for (const auto& numbers : processes.exchange(own)) training.waited.push_back(numbers.back());
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
  training.progress = exchange_json(training.processes, TrainState{training.progress})[0].get<TrainState>();
  training.stepper->spread();
}

}  // namespace cloze

#include "train/step_exchange.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/json_fields.h"
#include "run/records/log_line.h"

namespace cloze {

namespace {

LinePart line_part(const LossPart& part) {
  return {.name = part.name,
          .weight = part.weight,
          .sum = part.sum.item<double>(),
          .total = part.total_weight(),
          .count = part.count,
          .correct = part.correct(),
          .has_accuracy = part.has_accuracy,
          .binary = part.binary()};
}

LossPart loss_part(const LinePart& part) {
  return {.name = part.name,
          .weight = part.weight,
          .sum = at::scalar_tensor(part.sum, at::kDouble),
          .count = part.count,
          .weights = at::full({1}, part.total, at::kDouble),
          .counts = counts_of(part.correct, part.binary),
          .has_accuracy = part.has_accuracy,
          .detects = part.binary && part.binary->detects};
}

}  // namespace

StepFacts exchange_facts(Communicator& processes, const std::vector<BatchFacts>& own, bool is_interrupted) {
  const auto losses = own.empty() ? 0 : own.front().weights.size();
  std::vector<double> sent{is_interrupted ? 1.0 : 0.0, static_cast<double>(losses)};
  for (const auto& batch : own) {
    sent.insert(sent.end(),
                {static_cast<double>(batch.tokens), static_cast<double>(batch.predicted_tokens), batch.flops});
    sent.insert(sent.end(), batch.weights.begin(), batch.weights.end());
  }
  StepFacts all;
  for (const auto& numbers : processes.exchange(sent)) {
    all.is_interrupted = all.is_interrupted || numbers[0] != 0;
    const auto width = 3 + static_cast<int64_t>(numbers[1]);
    for (auto at = numbers.begin() + 2; at != numbers.end(); at += width)
      all.batches.push_back({.tokens = static_cast<int64_t>(at[0]),
                             .predicted_tokens = static_cast<int64_t>(at[1]),
                             .flops = at[2],
                             .weights = {at + 3, at + width}});
  }
  return all;
}

std::vector<std::vector<LossPart>> exchange_losses(Communicator& processes,
                                                   const std::vector<std::vector<LossPart>>& own) {
  if (processes.size() == 1) return own;
  std::vector<std::vector<LinePart>> sent;
  for (const auto& batch : own) std::ranges::transform(batch, std::back_inserter(sent.emplace_back()), line_part);
  std::vector<std::vector<LossPart>> all;
  for (const auto& received : exchange_json(processes, sent))
    for (const auto& batch : received.get<std::vector<std::vector<LinePart>>>())
      std::ranges::transform(batch, std::back_inserter(all.emplace_back()), loss_part);
  return all;
}

}  // namespace cloze

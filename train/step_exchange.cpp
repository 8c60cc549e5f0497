#include "train/step_exchange.h"

#include <iterator>
#include <nlohmann/json.hpp>

namespace cloze {

namespace {

using nlohmann::json;

json json_of(const LossPart& part) {
  json made{{"name", part.name},
            {"of_rewrite", part.of_rewrite},
            {"weight", part.weight},
            {"sum", part.sum.item<double>()},
            {"count", part.count},
            {"correct", part.correct},
            {"has_accuracy", part.has_accuracy}};
  if (part.weights.defined()) made["weights"] = part.total_weight();
  if (const auto& counts = part.binary)
    made["binary"] = {counts->positives, counts->predicted, counts->true_positives, counts->detects};
  return made;
}

LossPart part_of(const json& made) {
  LossPart part{.name = made["name"],
                .of_rewrite = made["of_rewrite"],
                .weight = made["weight"],
                .sum = at::scalar_tensor(made["sum"].get<double>(), at::kDouble),
                .count = made["count"],
                .correct = made["correct"],
                .has_accuracy = made["has_accuracy"]};
  if (made.contains("weights")) part.weights = at::full({1}, made["weights"].get<double>(), at::kDouble);
  if (!made.contains("binary")) return part;
  const auto& counts = made["binary"];
  part.binary = {.positives = counts[0], .predicted = counts[1], .true_positives = counts[2], .detects = counts[3]};
  return part;
}

}  // namespace

StepFacts exchange_facts(Communicator& processes, const std::vector<BatchFacts>& own, bool is_interrupted) {
  const auto losses = own.empty() ? 0 : own.front().weights.size();
  std::vector<double> told{is_interrupted ? 1.0 : 0.0, static_cast<double>(losses)};
  for (const auto& batch : own) {
    told.insert(told.end(),
                {static_cast<double>(batch.tokens), static_cast<double>(batch.predicted_tokens), batch.flops});
    told.insert(told.end(), batch.weights.begin(), batch.weights.end());
  }
  StepFacts all;
  for (const auto& numbers : processes.exchange(told)) {
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
  auto told = json::array();
  for (const auto& batch : own) {
    auto& parts = told.emplace_back(json::array());
    for (const auto& part : batch) parts.push_back(json_of(part));
  }
  std::string bytes;
  json::to_cbor(told, bytes);  // keeps every bit, and what is no number
  std::vector<std::vector<LossPart>> all;
  for (const auto& text : exchange_texts(processes, bytes))
    for (const auto& batch : json::from_cbor(text)) {
      auto& parts = all.emplace_back();
      for (const auto& part : batch) parts.push_back(part_of(part));
    }
  return all;
}

}  // namespace cloze

#include "run/config/evaluation_protocol.h"

#include <set>

#include "core/text.h"
#include "models/two_stream_config.h"
#include "run/config/objective_short_form.h"

namespace cloze {

ObjectiveConfig standard_form(const ObjectiveConfig& objective) {
  auto standard = as_kind(objective).standard_form();
  static_cast<ObjectiveTerms&>(as_kind(standard)) = {.weight = as_kind(objective).weight};
  return standard;
}

Objectives separate_losses(const ObjectiveConfig& objective) {
  const auto losses = as_kind(objective).separate_losses();
  return losses.empty() ? Objectives{objective} : losses;
}

EvaluationConfig resolved_evaluation(const RunConfig& config) {
  auto evaluation = config.evaluation;
  Objectives named;
  if (evaluation.objectives.empty())
    for (const auto& own : config.objectives) evaluation.objectives.push_back(standard_form(own));
  for (const auto& objective : evaluation.objectives)
    for (const auto& part : separate_losses(objective)) named.push_back(part);
  evaluation.objectives = named;
  if (evaluation.max_seq_length == 0) evaluation.max_seq_length = config.data.max_seq_length;
  return evaluation;
}

DataConfig held_out_data(const RunConfig& config) {
  const auto& evaluation = config.evaluation;
  auto rows = config.data;
  rows.mixture.clear();
  if (evaluation.max_seq_length > 0) rows.max_seq_length = evaluation.max_seq_length;
  rows.packing = evaluation.packing;
  rows.short_seq_prob = 0;
  return rows;
}

ModelConfig held_out_model(const ModelConfig& model) {
  auto plain = model;
  if (auto* streams = as<TwoStreamConfig>(plain)) {
    streams->mem_len = 0;
    streams->reuse_len = 0;
    streams->same_length = false;
    streams->bi_data = false;
  }
  return plain;
}

Objectives row_objectives(const ObjectiveConfig& objective) {
  auto all = as_kind(objective).row_makers();
  all.push_back(objective);
  return all;
}

std::vector<std::string> evaluation_errors(const RunConfig& config) {
  std::vector<std::string> broken;
  constexpr int64_t shortest_row = 4;
  if (const auto length = config.evaluation.max_seq_length; length > 0 && length < shortest_row)
    return {concat("evaluation.max_seq_length ", length, " leaves no room for text; give at least ", shortest_row,
                   ", or 0 for data.max_seq_length")};
  std::set<std::string> heads, kinds, named;
  for (const auto& own : config.objectives) {
    heads.insert(head_of(own));
    kinds.insert(kind_of(own));
  }
  for (const auto& objective : resolved_evaluation(config).objectives) {
    const auto name = short_form(objective);
    if (!named.insert(name).second)
      broken.push_back("evaluation.objectives names " + name + " twice; keep one of them");
    if (heads.count(head_of(objective)) == 0) {
      broken.push_back(concat("evaluation.objectives: the network has no head for ", name, ", only for ", listed(kinds),
                              "; evaluate an objective that it has a head for, or train it with ", kind_of(objective),
                              " too"));
      continue;
    }
    RunConfig single;
    single.model = held_out_model(config.model);
    single.init = config.init;
    single.objectives = row_objectives(objective);
    single.data = held_out_data(config);
    single.train.budget.steps = 1;
    single.schedule.warmup = 0;
    try {
      validate(single);
    } catch (const ConfigError& e) {
      broken.push_back(concat("evaluation.objectives, ", name, ": ", e.what()));
    }
  }
  return broken;
}

}  // namespace cloze

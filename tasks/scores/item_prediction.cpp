#include "tasks/scores/item_prediction.h"

#include <algorithm>
#include <limits>

namespace cloze {

PredictionSetting prediction_setting(const TaskConfig& config, const TaskLabels& labels, bool may_have_no_answer) {
  const auto outside = std::find(labels.names.begin(), labels.names.end(), "O") - labels.names.begin();
  return {.kind = config.kind,
          .missing_tag = outside < labels.size() ? outside : 0,
          .may_have_no_answer = may_have_no_answer,
          .answers = {.max_answer_length = config.max_answer}};
}

void decide_answer(ItemPrediction& made, const PredictionSetting& setting) {
  const auto& best = made.answer.n_best;
  const bool has_none =
      best.empty() || (setting.may_have_no_answer && made.answer.margin > setting.no_answer_threshold);
  made.prediction.answer = spans_answer({});
  if (!has_none) made.prediction.answer.spans.push_back({.text = best.front().text, .begin = best.front().begin});
}

void decide_labels(TaskPrediction& prediction, const PredictionSetting& setting) {
  const auto& probabilities = prediction.probabilities;
  if (!setting.kind->has_sets) {
    prediction.answer = label_answer(probabilities.at(1) > setting.threshold);
    return;
  }
  prediction.answer = labels_answer({});
  for (size_t id = 0; id < probabilities.size(); ++id)
    if (probabilities[id] > setting.threshold) prediction.answer.labels.push_back(static_cast<int64_t>(id));
}

ItemPrediction predict_item(const TaskItem& item, std::span<const TaskRow> rows, std::span<const RowLogits> logits,
                            const PredictionSetting& setting) {
  ItemPrediction made{.prediction = {.id = item.id}, .loss = std::numeric_limits<double>::quiet_NaN()};
  setting.kind->predict(item, rows, logits, setting, made);
  if (setting.threshold != usual_threshold) decide_labels(made.prediction, setting);
  return made;
}

std::string text_of_gold(const TaskItem& item, AnyTaskKind kind, const TaskLabels& labels) {
  return item.gold.is_known() ? kind->spelled(item.gold, labels) : "";
}

}  // namespace cloze

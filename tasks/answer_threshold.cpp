#include "tasks/answer_threshold.h"

#include <cmath>
#include <limits>
#include <map>

#include "tasks/squad_score.h"

namespace cloze {

namespace {

/// What the score of a question gains by its answer, compared with none.
double gain_of_answer(const TaskItem& item, const TaskPrediction& prediction, AnswerMeasure measure) {
  std::vector<std::string> right;
  if (const auto* gold = std::get_if<GoldAnswers>(&item.gold))
    for (const auto& answer : gold->answers) right.push_back(answer.text);
  const auto score = [&](const std::string& answer) {
    const auto of_both = score_answer(answer, right, SquadVersion::v2_0);
    return measure == AnswerMeasure::f1 ? of_both.f1 : of_both.exact;
  };
  return score(prediction.answer) - score("");
}

}  // namespace

double best_answer_threshold(const std::vector<TaskItem>& items, const std::vector<TaskPrediction>& predictions,
                             AnswerMeasure measure) {
  std::map<double, double> gains;  // by margin
  for (size_t i = 0; i < items.size(); ++i)
    if (!std::isnan(predictions[i].no_answer))
      gains[predictions[i].no_answer] += gain_of_answer(items[i], predictions[i], measure);
  if (gains.empty()) return 0;
  double threshold = std::nextafter(gains.begin()->first, -std::numeric_limits<double>::infinity());
  double sum = 0, most = 0;
  for (const auto& [margin, gain] : gains) {
    sum += gain;
    if (sum <= most) continue;
    most = sum;
    threshold = margin;
  }
  return threshold;
}

}  // namespace cloze

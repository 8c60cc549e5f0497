// The threshold of no answer that is best for questions.
#include "tasks/scores/span_answer.h"

#include "tasks/scores/scores.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

struct MarginQuestions {
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
  void add(const std::string& right, const std::string& answer, double margin) {
    auto gold = spans_answer({});
    if (!right.empty()) gold.spans.push_back({.text = right});
    items.push_back({.id = std::to_string(items.size()), .gold = gold});
    predictions.push_back({.id = items.back().id, .answer = text_answer(answer), .no_answer = margin});
  }
  double exact_at(double threshold) const {
    const auto found =
        values_of("spans", items, {}, predictions, {.squad = SquadVersion::v2_0, .no_answer_threshold = threshold});
    return found.front().value;
  }
};

}  // namespace

TEST_CASE("the chosen threshold answers questions up to it, and no other one has a better figure", "[tasks]") {
  MarginQuestions asked;
  asked.add("sky", "sky", -2);
  asked.add("", "sea", 3);
  asked.add("sea", "sea", 0.5);
  asked.add("", "fog", 0.75);
  asked.add("rain", "the rain", 0.5);
  const auto chosen = best_answer_threshold(asked.items, asked.predictions, AnswerMeasure::exact);
  CHECK(chosen == 0.625);  // far from both margins: they may be rounded otherwise when predicted
  CHECK(asked.exact_at(chosen) == 1);
  for (const double other : {-3.0, -2.0, 0.75, 3.0}) CHECK(asked.exact_at(other) < 1);
}

TEST_CASE("where no answer is best for every question the threshold is below all margins", "[tasks]") {
  MarginQuestions asked;
  asked.add("", "sky", -2);
  asked.add("sea", "fog", -1);
  const auto chosen = best_answer_threshold(asked.items, asked.predictions, AnswerMeasure::f1);
  CHECK(chosen == -3);
  CHECK(asked.exact_at(chosen) == 0.5);
  CHECK(best_answer_threshold({}, {}, AnswerMeasure::f1) == 0);
}

TEST_CASE("F1 and exact matches may have other thresholds", "[tasks]") {
  MarginQuestions asked;
  asked.add("grey sky", "grey sky", 0);
  asked.add("blue sea", "sea", 1);
  CHECK(best_answer_threshold(asked.items, asked.predictions, AnswerMeasure::exact) == 0.5);
  CHECK(best_answer_threshold(asked.items, asked.predictions, AnswerMeasure::f1) == 2);
}

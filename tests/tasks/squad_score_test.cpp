// Answers as SQuAD's published programs score them.
#include "tests/support/catch.h"
#include "tasks/scores/scores.h"
#include "tasks/scores/squad_score.h"

using namespace cloze;

namespace {

struct AskedQuestions {
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
  void add(const std::vector<std::string>& right, const std::string& answer, double no_answer = 0) {
    auto gold = spans_answer({});
    for (const auto& one : right) gold.spans.push_back({.text = one});
    items.push_back({.id = std::to_string(items.size()), .gold = gold});
    predictions.push_back({.id = items.back().id, .answer = text_answer(answer), .no_answer = no_answer});
  }
  TaskScores scores(const MetricOptions& options = {}) const {
    return metrics_of("spans", items, {}, predictions, options);
  }
};

}  // namespace

TEST_CASE("answers are compared in Python's lower case, without marks, articles and more than one space") {
  CHECK(normalised_answer("  The U.S.\tArmy, an\u00a0army ") == "us army army");
  CHECK(normalised_answer("x-ray a-b") == "xray ab");
  CHECK(normalised_answer("a\u2014the\u2014an") == "\u2014 \u2014");  // a dash outside of ASCII parts words
  CHECK(normalised_answer("the\u200ba") == "\u200b");
  CHECK(normalised_answer("a\u0301") == "\u0301");  // a mark is no letter of \w
  CHECK(normalised_answer("a_b the1") == "ab the1");
  CHECK(normalised_answer("one\u001ctwo\u2003three") == "one two three");
}

TEST_CASE("lower case has the final sigma and the two code points of the dotted I") {
  CHECK(python_lower("\u0130") == "i\u0307");
  CHECK(python_lower("\u039F\u0394\u039F\u03A3") == "\u03BF\u03B4\u03BF\u03C2");
  CHECK(python_lower("\u03A3\u0391\u03A3.\u0391") == "\u03C3\u03B1\u03C3.\u03B1");  // a dot is ignored
  CHECK(python_lower("\u03A3") == "\u03C3");
}

TEST_CASE("an answer of no words scores by the version") {
  const auto old = score_answer("the", {"The"}, SquadVersion::v1_1);
  CHECK(old.exact == 1);
  CHECK(old.f1 == 0);
  const auto later = score_answer("the", {"The"}, SquadVersion::v2_0);
  CHECK(later.exact == 1);
  CHECK(later.f1 == 1);
  CHECK(score_answer("blue", {"the", "blue"}, SquadVersion::v2_0).exact == 1);
  CHECK(score_answer("the", {"the", "blue"}, SquadVersion::v2_0).exact == 0);  // "the" is no right answer there
}

TEST_CASE("the best of several right answers counts, by words that both have") {
  const auto score = score_answer("big blue sky", {"sea", "the blue sky today"}, SquadVersion::v1_1);
  CHECK(score.exact == 0);
  CHECK(score.f1 == Approx(2.0 / 3).epsilon(1e-14));
}

TEST_CASE("a missing prediction is wrong in version 1.1 and left out in version 2.0") {
  AskedQuestions two;
  two.add({"sky"}, "sky");
  two.add({"sea"}, "");
  two.predictions[1].id.clear();
  CHECK(score_of(two.scores(), "exact_match")->value == 0.5);
  const auto later = two.scores({.squad = SquadVersion::v2_0});
  CHECK(score_of(later, "exact")->value == 1);
  CHECK(score_of(later, "exact")->count == 1);
  CHECK(score_of(later, "NoAns_f1")->reason == "every question has an answer");
}

TEST_CASE("questions above the threshold get no answer, and the best threshold is found among the scores") {
  AskedQuestions four;
  four.add({"sky"}, "sky", -2);
  four.add({}, "sea", 3);
  four.add({"sea"}, "sea", 0.5);
  four.add({}, "fog", 0.25);
  const MetricOptions options{.no_answer_threshold = 1, .has_no_answer_scores = true};
  const auto scores = four.scores(options);
  CHECK(score_of(scores, "exact")->value == 0.75);
  CHECK(score_of(scores, "HasAns_exact")->value == 1);
  CHECK(score_of(scores, "NoAns_exact")->value == 0.5);
  CHECK(score_of(scores, "best_exact")->value == 0.75);
  CHECK(score_of(scores, "best_exact_thresh")->value == -2);
  CHECK_FALSE(score_of(scores, "best_exact")->interval.has_value());
}

TEST_CASE("answers are drawn by article where they have one") {
  AskedQuestions many;
  for (int i = 0; i < 40; ++i) many.add({"sky"}, i < 20 ? "sky" : "sea");
  const auto alone = score_of(many.scores(), "exact_match")->interval->low;
  for (size_t i = 0; i < 40; ++i) many.items[i].group = i < 20 ? "right" : "wrong";
  const auto of_articles = score_of(many.scores(), "exact_match")->interval->low;
  CHECK(alone > 0.3);
  CHECK(of_articles == 0);
}

// Values of metrics against scikit-learn 1.9.1, SciPy 1.17 and seqeval 1.2.2 on the same data.
#include <cmath>

#include "tests/support/catch.h"
#include "tasks/kinds/tagging/entities.h"
#include "tasks/scores/scores.h"

using namespace cloze;

namespace {

struct LabelledCase {
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
  TaskLabels labels{};

  LabelledCase(const std::vector<int64_t>& gold, const std::vector<int64_t>& predicted, int64_t count) {
    for (size_t i = 0; i < gold.size(); ++i) {
      items.push_back({.id = std::to_string(i), .gold = label_answer(gold[i])});
      predictions.push_back({.id = items[i].id, .answer = {.label = predicted[i]}});
    }
    for (int64_t id = 0; id < count; ++id) labels.names.push_back("l" + std::to_string(id));
    labels.written = labels.names;
  }
  std::optional<double> value(const std::string& metric) const {
    const TaskScores scores{.scores = values_of("classification", items, labels, predictions)};
    const auto* score = score_of(scores, metric);
    return score->is_defined() ? std::optional(score->value) : std::nullopt;
  }
};

LabelledCase twelve_items() { return {{0, 0, 0, 1, 1, 2, 2, 2, 2, 0, 1, 2}, {0, 1, 0, 1, 2, 2, 2, 0, 2, 0, 1, 1}, 4}; }

TaskScores of_numbers(const std::vector<double>& gold, const std::vector<double>& predicted) {
  std::vector<TaskItem> items;
  std::vector<TaskPrediction> predictions;
  for (size_t i = 0; i < gold.size(); ++i) {
    items.push_back({.id = std::to_string(i), .gold = value_answer(gold[i])});
    predictions.push_back({.id = items[i].id, .answer = {.value = predicted[i]}});
  }
  return {.scores = values_of("regression", items, {}, predictions)};
}

/// Tags of texts as items and predictions.
struct TaggedCase {
  std::vector<TaskItem> items{};
  std::vector<TaskPrediction> predictions{};
  TaskLabels labels{};

  using Texts = std::vector<std::vector<std::string>>;
  TaggedCase(const std::vector<std::string>& tags, const Texts& gold, const Texts& predicted) {
    labels.names = labels.written = tags;
    for (size_t i = 0; i < gold.size(); ++i) {
      items.push_back({.id = std::to_string(i), .words = gold[i], .gold = labels_answer(ids(gold[i]))});
      predictions.push_back({.id = items[i].id, .answer = {.labels = ids(predicted[i])}});
    }
  }
  std::vector<int64_t> ids(const std::vector<std::string>& tags) const {
    std::vector<int64_t> found;
    for (const auto& tag : tags) found.push_back(std::ranges::find(labels.names, tag) - labels.names.begin());
    return found;
  }
  TaskScores scores() const { return metrics_of("tagging", items, labels, predictions, {.resamples = 50}); }
};

void check_close(std::optional<double> found, double wanted) {
  REQUIRE(found.has_value());
  CHECK(std::abs(*found - wanted) <= 1e-12);
}

}  // namespace

TEST_CASE("precision, recall and F1 count the labels of the task, also those that nothing has") {
  const auto twelve = twelve_items();
  check_close(twelve.value("accuracy"), 2.0 / 3);
  check_close(twelve.value("precision_macro"), 0.5);
  check_close(twelve.value("recall_macro"), 0.5041666666666667);
  check_close(twelve.value("f1_macro"), 0.49702380952380953);
  check_close(twelve.value("f1_macro_seen"), 0.6626984126984127);
  check_close(twelve.value("f1_micro"), 2.0 / 3);
  check_close(twelve.value("precision_weighted"), 0.6875);
  check_close(twelve.value("f1_weighted"), 0.6706349206349206);
}

TEST_CASE("Matthews' correlation and kappa are those of scikit-learn") {
  const auto twelve = twelve_items();
  check_close(twelve.value("mcc"), 0.5052911526399114);
  check_close(twelve.value("kappa"), 0.5);
}

TEST_CASE("a metric without a denominator is 0 or undefined, with a reason, as scikit-learn has it") {
  const LabelledCase constant({1, 1, 1}, {1, 1, 1}, 2);
  check_close(constant.value("mcc"), 0);
  CHECK_FALSE(constant.value("kappa").has_value());
  const LabelledCase never({1, 1, 0}, {0, 0, 0}, 2);
  check_close(never.value("precision"), 0);
  check_close(never.value("f1"), 0);
  const auto flat = of_numbers({1, 2, 3}, {2, 2, 2});
  CHECK_FALSE(score_of(flat, "pearson")->is_defined());
  CHECK(score_of(flat, "pearson")->reason == "the predictions are the same for all items");
  check_close(score_of(flat, "mse")->value, 2.0 / 3);
}

TEST_CASE("Matthews' correlation of many items does not overflow") {
  std::vector<int64_t> gold, predicted;
  for (int64_t i = 0; i < 400'000; ++i) {
    gold.push_back(i % 2);
    predicted.push_back(i % 8 == 0 ? 1 - i % 2 : i % 2);
  }
  // Of the first label a quarter is wrong, of the second none.
  check_close(LabelledCase(gold, predicted, 2).value("mcc"), 0.75 / std::sqrt(0.75 * 1.25));
}

TEST_CASE("the binary metrics are those of the second label, and ties in probability count a half") {
  LabelledCase eight({0, 1, 1, 0, 1, 0, 0, 1}, {0, 1, 1, 1, 1, 0, 1, 1}, 2);
  const std::vector<double> scores{.1, .4, .8, .4, .4, .3, .9, .7};
  for (size_t i = 0; i < scores.size(); ++i) eight.predictions[i].probabilities = {1 - scores[i], scores[i]};
  check_close(eight.value("precision"), 2.0 / 3);
  check_close(eight.value("recall"), 1);
  check_close(eight.value("f1"), 0.8);
  check_close(eight.value("auc"), 0.6875);
}

TEST_CASE("an area under a curve is undefined where a label has no item") {
  LabelledCase three({0, 1, 1}, {0, 1, 1}, 3);
  for (auto& prediction : three.predictions) prediction.probabilities = {0.2, 0.3, 0.5};
  CHECK_FALSE(three.value("auc_macro").has_value());
}

TEST_CASE("a label that training lacks is wrong, whatever is predicted") {
  const LabelledCase unknown({unknown_label, 0}, {unknown_label, 0}, 2);
  check_close(unknown.value("accuracy"), 0.5);
  const auto scores = metrics_of("classification", unknown.items, unknown.labels, unknown.predictions);
  CHECK((scores.confusion->labels == std::vector<std::string>{"l0", "l1", "(unknown)"}));
  CHECK((scores.confusion->counts == std::vector<std::vector<int64_t>>{{1, 0, 0}, {0, 0, 0}, {0, 0, 1}}));
}

TEST_CASE("labels by themselves and their confusion are counted") {
  const auto twelve = twelve_items();
  const auto scores = metrics_of("classification", twelve.items, twelve.labels, twelve.predictions);
  CHECK(scores.per_label[1].gold == 3);
  CHECK(scores.per_label[1].predicted == 4);
  CHECK(scores.per_label[1].right == 2);
  check_close(scores.per_label[1].f1, 4.0 / 7);
  CHECK(scores.confusion->counts[2][0] == 1);
  CHECK(scores.confusion->labels.size() == 4);
}

TEST_CASE("correlations take ties by their middle rank") {
  const auto six = of_numbers({1, 2.5, 2.5, 4, 3.25, 5}, {1.5, 2, 2.75, 3.5, 3.5, 4.125});
  check_close(score_of(six, "pearson")->value, 0.9430854318951597);
  check_close(score_of(six, "spearman")->value, 0.9705882352941178);
  check_close(score_of(six, "mse")->value, 0.2734375);
}

TEST_CASE("questions with several answers are exact where all of them are right, and share one F1") {
  LabelledCase answers({1, 0, 1, 0, 1}, {1, 0, 1, 1, 0}, 2);
  for (size_t i = 0; i < 5; ++i) answers.items[i].group = i < 2 ? "first" : "second";
  check_close(answers.value("f1a"), 2.0 / 3);
  check_close(answers.value("exact_match"), 0.5);
}

TEST_CASE("several labels of an item are compared as sets") {
  const TaskLabels labels{.names = {"a", "b", "c"}, .written = {"a", "b", "c"}};
  const std::vector<TaskItem> items{
      {.gold = labels_answer({0, 2})}, {.gold = labels_answer({1})}, {.gold = labels_answer({})}};
  const std::vector<TaskPrediction> predictions{{.answer = {.labels = {0, 2}}}, {.answer = {.labels = {0, 1}}}, {}};
  const TaskScores scores{.scores = values_of("multilabel", items, labels, predictions)};
  check_close(score_of(scores, "accuracy")->value, 2.0 / 3);
  check_close(score_of(scores, "precision_micro")->value, 0.75);
  check_close(score_of(scores, "f1_micro")->value, 6.0 / 7);
  check_close(score_of(scores, "f1_macro")->value, (2.0 / 3 + 1 + 1) / 3);
}

TEST_CASE("entities that begin with I count by default and not where the scheme is held to") {
  const TaggedCase texts({"O", "B-a", "I-a", "B-b", "I-b", "B-x-y", "I-x-y"},
                         {{"B-a", "I-a", "O", "I-b"}, {"B-x-y", "I-x-y", "I-a"}},
                         {{"B-a", "I-a", "O", "B-b"}, {"I-x-y", "I-x-y", "O"}});
  const auto scores = texts.scores();
  check_close(score_of(scores, "f1")->value, 0.8571428571428571);
  check_close(score_of(scores, "f1_strict")->value, 0.5);
  check_close(score_of(scores, "accuracy")->value, 4.0 / 7);
  CHECK(score_of(scores, "accuracy")->count == 7);
  CHECK(scores.per_label.back().label == "x-y");
  CHECK(scores.per_label.back().right == 1);
}

TEST_CASE("an entity ends where its type changes, or where E or S says so") {
  CHECK((entities_of({"I-a", "I-b", "E-b", "S-b"}) == std::vector<Entity>{{"a", 0, 1}, {"b", 1, 3}, {"b", 3, 4}}));
  CHECK((strict_entities({"B-a", "E-a", "I-a", "S-b", "B-b"}, TagScheme::bioes) ==
         std::vector<Entity>{{"a", 0, 2}, {"b", 3, 4}}));
  CHECK((strict_entities({"I-a", "E-a", "E-b"}, TagScheme::ioe2) == std::vector<Entity>{{"a", 0, 2}, {"b", 2, 3}}));
}

TEST_CASE("the scheme is told by the letters of the tags") {
  CHECK((scheme_of({"O", "B-a", "I-a"}) == TagScheme::bio));
  CHECK((scheme_of({"O", "B-a", "E-a", "S-a"}) == TagScheme::bioes));
  CHECK((scheme_of({"O", "I-a", "E-a"}) == TagScheme::ioe2));
  CHECK((scheme_of({"O", "U-a", "L-a", "B-a"}) == TagScheme::bilou));
  CHECK((scheme_of({"O", "I-a"}) == TagScheme::none));
  CHECK_FALSE(are_entity_tags({"NOUN", "X"}));
}

TEST_CASE("predictions that do not fit the items are refused") {
  const auto twelve = twelve_items();
  auto fewer = twelve.predictions;
  fewer.pop_back();
  CHECK_THROWS_WITH(values_of("classification", twelve.items, twelve.labels, fewer),
                    "there are 11 predictions for 12 items; each item has one");
  auto wrong = twelve.predictions;
  wrong[2].answer.label = 4;
  CHECK_THROWS_WITH(values_of("classification", twelve.items, twelve.labels, wrong),
                    "the prediction for item '2' is label 4, but the task has 4 labels, numbered from 0");
  CHECK_THROWS_WITH(values_of("regression", twelve.items, twelve.labels, twelve.predictions),
                    "item '0' has no value to score a prediction by; leave it out, or name a part that has them");
  CHECK_THROWS_WITH(of_numbers({1, 2}, {1, NAN}), "the predicted value of item '1' is not a finite number");
  const std::vector<TaskItem> two_words{{.id = "s", .gold = labels_answer({0, 0})}};
  CHECK_THROWS_WITH(values_of("tagging", two_words, twelve.labels, {{.answer = {.labels = {0}}}}),
                    "the prediction for item 's' has 1 tags, but the item has 2 words; each has one tag");
}

TEST_CASE("correlations are the same at any scale of the numbers, and an error without bound has none") {
  const std::vector<double> gold{1, 2.5, 2.5, 4, 3.25, 5}, predicted{1.5, 2, 2.75, 3.5, 3.5, 4.125};
  const auto near = of_numbers(gold, predicted);
  for (const double scale : {1e-170, 1e-300, 1e170, 1e300}) {
    auto far = predicted;
    for (auto& value : far) value *= scale;
    const auto found = of_numbers(gold, far);
    check_close(score_of(found, "pearson")->value, score_of(near, "pearson")->value);
    check_close(score_of(found, "spearman")->value, score_of(near, "spearman")->value);
    CHECK(score_of(found, "mse")->is_defined() == (scale < 1));
  }
}

TEST_CASE("entities are read from tags that no label is, in what is right and in what is predicted") {
  // seqeval 1.2.2: f1_score([["B-a", "I-a", "O"], ["B-l", "I-l"], ["B-a", "I-l", "O"]],
  //                         [["B-a", "I-a", "O"], ["O", "O"], ["B-a", "O", "O"]]) = 2/3
  TaggedCase texts({"B-a", "I-a", "O"}, {{"B-a", "I-a", "O"}, {"O", "O"}, {"B-a", "O", "O"}},
                   {{"B-a", "I-a", "O"}, {"O", "O"}, {"B-a", "O", "O"}});
  texts.items[1].gold = labels_answer({unknown_label, unknown_label}, {"B-l", "I-l"});
  texts.items[2].gold = labels_answer({0, unknown_label, 2}, {"I-l"});
  const auto scores = texts.scores();
  check_close(score_of(scores, "f1")->value, 2.0 / 3);
  CHECK(scores.per_label.back().label == "l");
  CHECK(scores.per_label.back().gold == 2);
  TaggedCase predicted({"B-a", "I-a", "O"}, {{"B-a", "O"}, {"B-a", "I-a"}}, {{"B-a", "O"}, {"B-a", "O"}});
  for (auto& prediction : predicted.predictions)
    prediction.answer.labels[1] = unknown_label, prediction.answer.unknown = {"B-l"};
  check_close(score_of(predicted.scores(), "precision")->value, 0.25);
}

TEST_CASE("M of BMES goes on as I does, and a segmentation has no types") {
  CHECK((entities_of({"B", "M", "E", "S", "B", "E"}) == std::vector<Entity>{{"_", 0, 3}, {"_", 3, 4}, {"_", 4, 6}}));
  CHECK((strict_entities({"B-a", "M-a", "E-a", "M-a", "S-b"}, TagScheme::bmes) ==
         std::vector<Entity>{{"a", 0, 3}, {"b", 4, 5}}));
  CHECK((scheme_of({"O", "B-a", "M-a", "E-a", "S-a"}) == TagScheme::bioes));
  CHECK(are_entity_tags({"B", "M", "E", "S"}));
}

TEST_CASE("of items most of whose labels are unknown there is no figure, and the reason stands there") {
  const LabelledCase hidden({unknown_label, unknown_label, 0}, {0, 1, 0}, 2);
  const auto scores = metrics_of("classification", hidden.items, hidden.labels, hidden.predictions);
  for (const auto& score : scores.scores) {
    CHECK_FALSE(score.is_defined());
    CHECK_FALSE(score.interval.has_value());
    CHECK(score.reason == "2 of 3 labels are none that the training part has");
  }
  CHECK_FALSE(hidden.value("accuracy").has_value());
  const auto draws = score_on_draws("classification", hidden.items, hidden.labels, hidden.predictions, "accuracy");
  CHECK(std::isnan(draws.value));
}

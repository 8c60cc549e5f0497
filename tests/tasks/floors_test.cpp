#include "tasks/scores/floors.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "tasks/scores/benchmark_average.h"
#include "tasks/scores/scores_output.h"
#include "tasks/scores/word_regression.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

std::vector<TaskItem> labelled_texts(const std::vector<std::pair<std::string, int64_t>>& all) {
  std::vector<TaskItem> items;
  for (const auto& [text, label] : all)
    items.push_back({.id = std::to_string(items.size()), .text = text, .gold = label_answer(label)});
  return items;
}

const TaskLabels two_moods{.names = {"bad", "good"}, .written = {"0", "1"}};

}  // namespace

TEST_CASE("the constant floor predicts what the part itself has most, whatever the training part has") {
  const auto train = labelled_texts({{"a", 1}, {"b", 1}, {"c", 1}});
  const auto part = labelled_texts({{"d", 0}, {"e", 1}, {"f", 0}});
  CHECK(floor_predictions("classification", Floor::constant, train, part, two_moods)[1].answer.label == 0);
  const std::vector<TaskItem> values{{.gold = value_answer(1)}, {.gold = value_answer(4)}};
  CHECK(floor_predictions("regression", Floor::constant, {}, values, {})[0].answer.value == 2.5);
  const TaskLabels tags{.names = {"B-a", "O"}, .written = {"B-a", "O"}};
  const std::vector<TaskItem> sentence{{.words = {"x", "y"}, .gold = labels_answer({0, 0})}};
  CHECK((floor_predictions("tagging", Floor::constant, {}, sentence, tags)[0].answer.labels ==
         std::vector<int64_t>{1, 1}));
  CHECK(name_of_floor("tagging", Floor::constant) == "one tag");  // that of words may have no O
  const auto unknown = labelled_texts({{"g", unknown_label}});
  CHECK(floor_predictions("classification", Floor::constant, train, unknown, two_moods)[0].answer.label ==
        unknown_label);
}

TEST_CASE("a regression on words finds the weights of the smallest penalised loss") {
  // Probabilities of LogisticRegression of scikit-learn 1.9.1 on the features of its CountVectorizer.
  const WordRegression regression({"fine film", "fine film", "dull film", "dull film"}, {1, 1, 0, 0}, 2);
  CHECK(regression.probabilities("fine film")[1] == Approx(0.7393507714998592).epsilon(1e-4));
  CHECK(regression.probabilities("dull film")[1] == Approx(1 - 0.7393507714998592).epsilon(1e-4));
  CHECK(regression.probabilities("unknown")[1] == Approx(0.5).epsilon(1e-3));
}

TEST_CASE("a regression on words of several labels has a weight of each") {
  const WordRegression regression({"red", "red", "green", "green", "blue", "blue blue"}, {0, 0, 1, 1, 2, 2}, 3);
  const auto p = regression.probabilities("Green!");
  CHECK(p[1] == Approx(0.6140963027250349).epsilon(1e-4));
  CHECK(p[0] + p[1] + p[2] == Approx(1));
}

TEST_CASE("a regression on words needs labels, and classes") {
  const auto train = labelled_texts({{"a", 1}, {"b", 1}});
  CHECK_THROWS_WITH(floor_predictions("classification", Floor::words, train, train, two_moods),
                    "a regression on words learns from texts of two labels at least, and the training part has fewer");
  CHECK_THROWS_WITH(floor_predictions("tagging", Floor::words, train, train, two_moods),
                    "a floor of words is one of classification; of tagging there is the constant one, which stands "
                    "beside every figure");
}

TEST_CASE("figures of a task are JSON in which the undefined is null with a reason") {
  const auto items = labelled_texts({{"a", 1}, {"b", 1}, {"c", 1}});
  const std::vector<TaskPrediction> predictions(3, {.answer = {.label = 1}});
  auto scores = metrics_of("classification", items, two_moods, predictions, {.resamples = 20});
  add_floor("classification", Floor::constant, items, items, two_moods, {}, scores);
  const auto json = to_json("mood", scores);
  CHECK(json["task"] == "mood");
  CHECK(json["metrics"][0]["metric"] == "accuracy");
  CHECK(json["metrics"][0]["value"] == 1);
  CHECK(json["metrics"][0]["count"] == 3);
  CHECK(json["metrics"][0]["floors"]["majority"] == 1);
  const auto& kappa = json["metrics"].back();
  CHECK(kappa["metric"] == "kappa");
  CHECK(kappa["value"].is_null());
  CHECK(kappa["reason"] == "items and predictions have the same single label");
  CHECK(json["per_label"][1]["label"] == "good");
  CHECK(json["confusion"]["counts"][1][1] == 3);
  const auto picture = confusion_svg("a < b", *scores.confusion);
  CHECK(picture.find("a &lt; b") != std::string::npos);
  CHECK(picture.find("<title>3</title>") != std::string::npos);
  CHECK(tables_of("mood", scores).size() == 3);
}

TEST_CASE("an average of tasks takes the mean within a task first") {
  const auto average = average_of(Benchmark::glue, {{"mrpc", "f1", 0.9},
                                                    {"mrpc", "accuracy", 0.8},
                                                    {"mnli", "accuracy", 0.6},
                                                    {"mnli-mm", "accuracy", 0.7},
                                                    {"sst2", "accuracy", 0.97},
                                                    {"sst2", "accuracy", 0.93},
                                                    {"qqp", "f1", 0.1}});
  CHECK(average.value.value() == Approx((0.85 + 0.65 + 0.95) / 3));
  CHECK(average.tasks == 3);
  CHECK((average.missing == std::vector<std::string>{"cola mcc", "stsb pearson", "stsb spearman", "qqp accuracy",
                                                     "qnli accuracy", "rte accuracy", "wnli accuracy"}));
  CHECK_FALSE(average_of(Benchmark::superglue, {}).value.has_value());
  CHECK(is_task_of(Benchmark::glue, "mnli-mm"));
  CHECK(is_task_of(Benchmark::superglue, "superglue-rte"));
  CHECK_FALSE(is_task_of(Benchmark::superglue, "rte"));
}

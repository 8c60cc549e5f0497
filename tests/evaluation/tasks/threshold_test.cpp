// The threshold of labels that is chosen on the valid part, against every threshold that there is.
#include <algorithm>

#include "core/random.h"
#include "evaluation/tasks/judged_task.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_folder.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// A task of two labels whose second one is rare, and probabilities that are right about their order alone.
struct Rare {
  JudgedTask task{};
  std::vector<TaskItem> items{};
  std::vector<ItemPrediction> predictions{};

  explicit Rare(const std::string& kind) {
    task.task.config.task = "rare";
    task.task.config.kind = kind;
    task.task.config.choose_threshold = true;
    task.task.labels = {.names = {"no", "yes"}, .written = {"no", "yes"}};
    task.setting = prediction_setting(task.task.config, task.task.labels, /*may_have_no_answer=*/false);
    const bool has_sets = task.setting.kind->has_sets;
    Stream draws(3, 0, 0);
    for (int i = 0; i < 200; ++i) {
      const bool is_yes = draws.uniform() < 0.2;
      const double p = std::round(100 * (0.3 * draws.uniform() + (is_yes ? 0.12 : 0))) / 100 + 0.001;
      items.push_back({.gold = has_sets ? labels_answer(is_yes ? std::vector<int64_t>{1} : std::vector<int64_t>{})
                                        : label_answer(is_yes)});
      predictions.push_back({.prediction = {.probabilities = {has_sets ? 0.01 : 1 - p, p}}, .count = 1});
      decide_labels(predictions.back().prediction, task.setting);
    }
  }
  double f1(const std::string& metric, double threshold) {
    auto setting = task.setting;
    setting.threshold = threshold;
    auto decided = predictions;
    for (auto& one : decided) decide_labels(one.prediction, setting);
    return score_of(scores_of_predictions(task, items, decided, 0), metric)->value;
  }
};

}  // namespace

TEST_CASE("the threshold of a label is the one at which the metric is best, and predictions are decided by it",
          "[evaluation][tasks]") {
  for (const auto& [kind, metric] : {std::pair{"classification", "f1"}, std::pair{"multilabel", "f1_micro"}}) {
    INFO(kind);
    Rare rare(kind);
    CHECK(rare.f1(metric, 0.5) == 0);
    double best = 0;
    for (int thousandths = 1; thousandths < 1000; ++thousandths)
      best = std::max(best, rare.f1(metric, thousandths / 1000.0));
    choose_setting(rare.task, rare.items, metric, rare.predictions);
    const auto threshold = rare.task.setting.threshold;
    CHECK(threshold < 0.42);
    CHECK(rare.f1(metric, threshold) == best);
    CHECK(score_of(scores_of_predictions(rare.task, rare.items, rare.predictions, 0), metric)->value == best);
    const auto of_rows = std::vector<RowLogits>{{.values = {0, -0.8}, .columns = 2}};  // of yes: 0.31
    CHECK(predict_item({}, std::vector<TaskRow>(1), of_rows, rare.task.setting).prediction.answer ==
          (rare.task.setting.kind->has_sets ? labels_answer({0, 1}) : label_answer(1)));
  }
}

TEST_CASE("where no threshold is asked for, and where none is better, it is one half", "[evaluation][tasks]") {
  Rare rare("classification");
  choose_setting(rare.task, rare.items, "accuracy", rare.predictions);
  CHECK(rare.f1("accuracy", rare.task.setting.threshold) >= rare.f1("accuracy", 0.5));
  rare.task.task.config.choose_threshold = false;
  rare.task.setting.threshold = usual_threshold;
  choose_setting(rare.task, rare.items, "f1", rare.predictions);
  CHECK(rare.task.setting.threshold == usual_threshold);
}

TEST_CASE("a threshold of three labels, or of a kind without one, is refused", "[tasks]") {
  const TaskFolder folder;
  folder.write("train.tsv", "text\tlabel\nx\ta\ny\tb\nz\tc\n");
  const std::string data = "data: {train: train.tsv, valid: test, test: train.tsv, text: text, label: label}\n";
  CHECK_THAT(folder.fault(mood_task + data + "choose_threshold: true"),
             Contains("choose_threshold is true, and the task has 3 labels; a threshold is of two, or of several"));
  CHECK_THAT(folder.fault("task: mood\nkind: regression\n" + data + "choose_threshold: true"),
             Contains("'choose_threshold' is true, and regression predicts without one; leave it out"));
}

// Predictions from logits, number by number.
#include "tasks/scores/item_prediction.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

const TaskLabels three_labels{.names = {"O", "B", "C"}, .written = {"0", "1", "2"}};

PredictionSetting of_kind(AnyTaskKind kind) { return {.kind = kind}; }

std::string json_line(const ItemPrediction& prediction, const TaskItem& item, AnyTaskKind kind) {
  return json_text(kind->json_of(prediction, item, three_labels));
}

}  // namespace

TEST_CASE("a label is that of the highest mean logit over windows, with its probabilities and its loss", "[tasks]") {
  const auto item = text_item("a b", label_answer(1));
  const std::vector<TaskRow> rows(2);
  const std::vector<RowLogits> logits{{{1, 0, 3}, 3}, {{1, 4, -1}, 3}};  // mean 1, 2, 1
  const auto found = predict_item(item, rows, logits, of_kind("classification"));
  CHECK(found.prediction.answer.label == 1);
  const double all = 2 * std::exp(1.0) + std::exp(2.0);
  CHECK(found.prediction.probabilities.at(1) == Approx(std::exp(2.0) / all).epsilon(1e-12));
  CHECK(found.loss == Approx(-std::log(std::exp(2.0) / all)).epsilon(1e-12));
  CHECK(AnyTaskKind("classification")->spelled(found.prediction.answer, three_labels) == "B");
  CHECK(std::isnan(predict_item(text_item("a"), rows, logits, of_kind("classification")).loss));
  CHECK(std::isnan(
      predict_item(text_item("a", label_answer(unknown_label)), rows, logits, of_kind("classification")).loss));
  const std::vector<RowLogits> large{{{900, -900, 0}, 3}};
  const auto sure =
      predict_item(text_item("a", label_answer(0)), std::span(rows).first(1), large, of_kind("classification"));
  CHECK(sure.loss == 0);
  CHECK((sure.prediction.probabilities == std::vector<double>{1, 0, 0}));
}

TEST_CASE("several labels are those above a half, a value is the mean, and a choice the best candidate", "[tasks]") {
  const std::vector<TaskRow> one(1), two(2);
  const std::vector<RowLogits> logits{{{2, -1, 0.5}, 3}};
  const auto several = predict_item(text_item("a", labels_answer({0})), one, logits, of_kind("multilabel"));
  CHECK((several.prediction.answer.labels == std::vector<int64_t>{0, 2}));
  CHECK(several.prediction.probabilities.at(1) == Approx(1 / (1 + std::exp(1.0))).epsilon(1e-12));
  const double loss = std::log1p(std::exp(-2.0)) + std::log1p(std::exp(-1.0)) + std::log1p(std::exp(0.5));
  CHECK(several.loss == Approx(loss / 3).epsilon(1e-12));
  CHECK(AnyTaskKind("multilabel")->spelled(several.prediction.answer, three_labels) == "O,C");
  const std::vector<RowLogits> values{{{1.5}, 1}, {{2.5}, 1}};
  const auto value = predict_item(text_item("a", value_answer(3)), two, values, of_kind("regression"));
  CHECK(value.prediction.answer.value == 2);
  CHECK(value.loss == 1);
  const auto choice = predict_item(text_item("a", label_answer(0)), two, values, of_kind("choice"));
  CHECK(choice.prediction.answer.label == 1);
  CHECK(choice.loss == Approx(std::log1p(std::exp(1.0))).epsilon(1e-12));
  CHECK(AnyTaskKind("choice")->spelled(choice.prediction.answer, three_labels) == "1");
}

TEST_CASE("an answer by logits that are no numbers has a loss that is none, and counts", "[tasks]") {
  const double no_number = std::nan("");
  TaskItem item{.id = "q", .text = "who", .second = "an owl", .gold = spans_answer({{.text = "owl", .begin = 3}})};
  TaskRow row;
  row.ids = {2, 7, 3, 8, 9, 3};
  row.class_token = 0;
  row.second_begin = 3;
  row.second_end = 5;
  row.bytes = {{}, {}, {}, {0, 2}, {3, 6}, {}};
  row.gold.labels = {4, 4};
  const std::vector<TaskRow> rows(2, row);
  const auto logits_of = [](double value) { return RowLogits{std::vector<double>(12, value), 2}; };
  for (const auto& [first, second] : {std::pair(no_number, no_number), std::pair(no_number, 0.0)}) {
    const auto found = predict_item(item, rows, std::vector{logits_of(first), logits_of(second)}, of_kind("spans"));
    CHECK(std::isnan(found.loss));
    CHECK(found.count == 1);
  }
  const auto sound = predict_item(item, rows, std::vector{logits_of(0), logits_of(0)}, of_kind("spans"));
  CHECK(sound.loss == Approx(std::log(6.0)));
  CHECK(sound.count == 1);
  auto unknown = rows;
  for (auto& one : unknown) one.gold.labels.clear();
  CHECK(predict_item(item, unknown, std::vector{logits_of(0), logits_of(0)}, of_kind("spans")).count == 0);
}

TEST_CASE("an answer that is empty is shown as none, and other texts as they are", "[tasks]") {
  CHECK(AnyTaskKind("spans")->shown("") == "(no answer)");
  CHECK(AnyTaskKind("spans")->shown("in 1901") == "in 1901");
  CHECK(AnyTaskKind("tagging")->shown("").empty());
}

TEST_CASE("every word gets a tag, also one without a token", "[tasks]") {
  TaskItem item{.id = "s", .words = {"a", "", "b"}, .gold = labels_answer({1, 2, 0})};
  TaskRow row;
  row.ids = {2, 5, 6, 3};
  row.words = {-1, 0, 2, -1};
  const std::vector<RowLogits> logits{{{9, 9, 9, 0, 2, 1, 3, 0, 0, 9, 9, 9}, 3}};
  auto setting = of_kind("tagging");
  setting.missing_tag = 2;
  const auto found = predict_item(item, std::span(&row, 1), logits, setting);
  CHECK((found.prediction.answer.labels == std::vector<int64_t>{1, 2, 0}));
  const double first = std::log(1 + std::exp(2.0) + std::exp(1.0)) - 2, second = std::log(std::exp(3.0) + 2) - 3;
  CHECK(found.loss == Approx((first + second) / 2).epsilon(1e-12));
  CHECK(json_line(found, item, "tagging") == R"({"item":"s","tags":["B","C","O"]})");
  TaskConfig config;
  config.kind = "tagging";
  CHECK(prediction_setting(config, three_labels, false).missing_tag == 0);
}

TEST_CASE("an answer is a substring with its place in code points, unless no answer scores higher", "[tasks]") {
  TaskItem item{.id = "q", .text = "which", .second = "é x yz", .is_pair = true};
  item.gold = spans_answer({{"yz", 5}});
  TaskRow row;
  row.ids = {2, 9, 3, 5, 6, 7, 3};
  row.second_begin = 3, row.second_end = 6;
  row.bytes.assign(7, {-1, -1});
  row.bytes[3] = {0, 2}, row.bytes[4] = {3, 4}, row.bytes[5] = {5, 7};
  row.gold.labels = {5, 5};
  std::vector<double> values(14, -5);
  values[2 * 5] = 3, values[2 * 5 + 1] = 2;  // yz
  values[0] = values[1] = 1;                 // the class token
  const std::vector<RowLogits> logits{{values, 2}};
  auto setting = of_kind("spans");
  setting.may_have_no_answer = true;
  auto found = predict_item(item, std::span(&row, 1), logits, setting);
  CHECK(found.prediction.answer.text() == "yz");
  CHECK(found.prediction.no_answer == -3);
  const auto line = nlohmann::json::parse(json_line(found, item, "spans"));
  CHECK(line["start"] == 4);
  CHECK(line["end"] == 6);
  CHECK(line["score"] == 5);
  CHECK(line["n_best"][0]["answer"] == "yz");
  setting.no_answer_threshold = -4;
  found = predict_item(item, std::span(&row, 1), logits, setting);
  CHECK(found.prediction.answer.spans.empty());
  CHECK(nlohmann::json::parse(json_line(found, item, "spans"))["start"].is_null());
  setting.may_have_no_answer = false;
  CHECK(predict_item(item, std::span(&row, 1), logits, setting).prediction.answer.text() == "yz");
}

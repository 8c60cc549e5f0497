#include "tasks/figures/item_prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/contains.h"
#include "core/error.h"
#include "core/text.h"
#include "tasks/rows/rows.h"

namespace cloze {

namespace {

using nlohmann::ordered_json;

constexpr double unknown_loss = std::numeric_limits<double>::quiet_NaN();

double log_sum_exp(std::span<const double> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

std::vector<double> softmax(std::span<const double> logits) {
  const double all = log_sum_exp(logits);
  std::vector<double> shares;
  for (const double logit : logits) shares.push_back(std::exp(logit - all));
  return shares;
}

int64_t index_of_most(std::span<const double> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

std::vector<double> mean_of_rows(std::span<const RowLogits> logits) {
  std::vector<std::vector<double>> all;
  for (const auto& row : logits) all.push_back(row.values);
  return mean_of_windows(all);
}

void predict_label(const std::vector<double>& logits, const Gold& gold, ItemPrediction& prediction) {
  prediction.prediction.label = index_of_most(logits);
  prediction.prediction.probabilities = softmax(logits);
  const auto* right = std::get_if<GoldLabel>(&gold);
  const bool is_known = right && right->id >= 0 && right->id < std::ssize(logits);
  if (!is_known) return;
  prediction.loss = log_sum_exp(logits) - logits[static_cast<size_t>(right->id)];
  prediction.count = 1;
}

void predict_labels(const std::vector<double>& logits, const Gold& gold, ItemPrediction& prediction) {
  for (size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] > 0) prediction.prediction.labels.push_back(static_cast<int64_t>(id));
    prediction.prediction.probabilities.push_back(1 / (1 + std::exp(-logits[id])));
  }
  const auto* right = std::get_if<GoldLabels>(&gold);
  if (!right) return;
  prediction.loss = 0;
  prediction.count = std::ssize(logits);
  for (size_t id = 0; id < logits.size(); ++id) {
    const bool has = contains(right->ids, static_cast<int64_t>(id));
    const double margin = has ? -logits[id] : logits[id];
    const double loss = margin > 0 ? margin + std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin));
    prediction.loss += loss / static_cast<double>(logits.size());
  }
}

void predict_value(double value, const Gold& gold, ItemPrediction& prediction) {
  prediction.prediction.value = value;
  const auto* right = std::get_if<GoldValue>(&gold);
  if (!right) return;
  prediction.loss = (value - right->value) * (value - right->value);
  prediction.count = 1;
}

void predict_tags(const TaskItem& item, std::span<const TaskRow> rows, std::span<const RowLogits> logits,
                  int64_t missing, ItemPrediction& prediction) {
  const auto* right = std::get_if<GoldLabels>(&item.gold);
  std::vector<std::vector<int64_t>> tags;
  double sum = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto columns = static_cast<size_t>(logits[r].columns);
    auto& of_row = tags.emplace_back();
    for (size_t t = 0; t < rows[r].ids.size(); ++t) {
      const auto of_token = std::span(logits[r].values).subspan(t * columns, columns);
      of_row.push_back(index_of_most(of_token));
      const auto word = t < rows[r].words.size() ? rows[r].words[t] : -1;
      if (!right || word < 0) continue;
      const auto id = right->ids.at(static_cast<size_t>(word));
      if (id < 0 || id >= logits[r].columns) continue;
      sum += log_sum_exp(of_token) - of_token[static_cast<size_t>(id)];
      ++prediction.count;
    }
  }
  prediction.prediction.labels = tags_of_words(std::ssize(item.words), rows, tags, missing);
  if (prediction.count > 0) prediction.loss = sum / static_cast<double>(prediction.count);
}

void predict_answer(const TaskItem& item, std::span<const TaskRow> rows, std::span<const RowLogits> logits,
                    const PredictionSetting& setting, ItemPrediction& prediction) {
  std::vector<SpanLogits> sides;
  std::optional<double> best;  // of the window that has the answer, or that gets by best without
  for (size_t r = 0; r < rows.size(); ++r) {
    auto& side = sides.emplace_back();
    for (size_t t = 0; t < rows[r].ids.size(); ++t) {
      side.start.push_back(logits[r].values[2 * t]);
      side.end.push_back(logits[r].values[2 * t + 1]);
    }
    if (rows[r].start == no_label) continue;
    const double loss = (log_sum_exp(side.start) - side.start[static_cast<size_t>(rows[r].start)] +
                         log_sum_exp(side.end) - side.end[static_cast<size_t>(rows[r].end)]) /
                        2;
    best = !best || std::isnan(loss) ? loss : std::max(*best, loss);  // one that is no number stays
  }
  prediction.answer = answer_of(item.second, rows, sides, setting.answers);
  prediction.prediction.no_answer = prediction.answer.margin;
  decide_answer(prediction, setting);
  prediction.loss = best.value_or(unknown_loss);
  prediction.count = best ? 1 : 0;
}

void predict_choice(std::span<const RowLogits> logits, const Gold& gold, ItemPrediction& prediction) {
  std::vector<double> scores;
  for (const auto& row : logits) scores.push_back(row.values.at(0));
  predict_label(scores, gold, prediction);
}

const std::string& shown_label(const TaskLabels& labels, int64_t id) {
  static const std::string unknown = "(unknown)";
  return id >= 0 && id < labels.size() ? labels.names[static_cast<size_t>(id)] : unknown;
}

std::vector<std::string> shown_labels(const TaskLabels& labels, const std::vector<int64_t>& ids) {
  std::vector<std::string> names;
  for (const auto id : ids) names.push_back(shown_label(labels, id));
  return names;
}

std::string joined_by(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

/// Code points before a byte of a text.
int64_t code_points_before(const std::string& text, int64_t byte) {
  return std::count_if(text.begin(), text.begin() + std::min<int64_t>(byte, std::ssize(text)),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

ordered_json json_of_answer(const ItemPrediction& prediction, const TaskItem& item) {
  ordered_json line{{"id", item.id}, {"answer", prediction.prediction.answer}, {"start", nullptr}, {"end", nullptr}};
  const auto& best = prediction.answer.n_best;
  const auto place = [&](const AnswerCandidate& one, ordered_json& to) {
    to["start"] = code_points_before(item.second, one.begin);
    to["end"] = code_points_before(item.second, one.end);
  };
  if (!best.empty() && !prediction.prediction.answer.empty()) place(best.front(), line);
  line["score"] = best.empty() ? prediction.answer.null_score : best.front().score;
  line["no_answer"] = prediction.prediction.no_answer;
  auto& list = line["n_best"] = ordered_json::array();
  for (const auto& one : best) {
    ordered_json entry{{"answer", one.text}, {"score", one.score}, {"probability", one.probability}};
    place(one, entry);
    list.push_back(std::move(entry));
  }
  return line;
}

std::string number_text(double value) { return digits(value, 9); }

}  // namespace

PredictionSetting prediction_setting(const TaskConfig& config, const TaskLabels& labels, bool may_have_no_answer) {
  const auto outside = std::find(labels.names.begin(), labels.names.end(), "O") - labels.names.begin();
  return {.kind = config.kind,
          .missing_tag = outside < labels.size() ? outside : 0,
          .may_have_no_answer = may_have_no_answer,
          .answers = {.max_answer_length = config.max_answer}};
}

void decide_answer(ItemPrediction& prediction, const PredictionSetting& setting) {
  const bool has_none = prediction.answer.n_best.empty() ||
                        (setting.may_have_no_answer && prediction.answer.margin > setting.no_answer_threshold);
  prediction.prediction.answer = has_none ? "" : prediction.answer.n_best.front().text;
}

ItemPrediction predict_item(const TaskItem& item, std::span<const TaskRow> rows, std::span<const RowLogits> logits,
                            const PredictionSetting& setting) {
  ItemPrediction prediction{.prediction = {.id = item.id}, .loss = unknown_loss};
  switch (setting.kind) {
    case TaskKind::classification:
      predict_label(mean_of_rows(logits), item.gold, prediction);
      break;
    case TaskKind::multilabel:
      predict_labels(mean_of_rows(logits), item.gold, prediction);
      break;
    case TaskKind::regression:
      predict_value(mean_of_rows(logits).at(0), item.gold, prediction);
      break;
    case TaskKind::tagging:
      predict_tags(item, rows, logits, setting.missing_tag, prediction);
      break;
    case TaskKind::spans:
      predict_answer(item, rows, logits, setting, prediction);
      break;
    case TaskKind::choice:
      predict_choice(logits, item.gold, prediction);
      break;
  }
  return prediction;
}

ordered_json json_of(const ItemPrediction& prediction, const TaskItem& item, TaskKind kind, const TaskLabels& labels) {
  const auto& p = prediction.prediction;
  ordered_json line{{"item", item.id}};
  ordered_json shares = ordered_json::object();
  const bool has_shares = (kind == TaskKind::classification || kind == TaskKind::multilabel);
  for (size_t id = 0; has_shares && id < p.probabilities.size(); ++id)
    shares[shown_label(labels, static_cast<int64_t>(id))] = p.probabilities[id];
  switch (kind) {
    case TaskKind::classification:
      line["label"] = shown_label(labels, p.label);
      line["probabilities"] = shares;
      return line;
    case TaskKind::multilabel:
      line["labels"] = shown_labels(labels, p.labels);
      line["probabilities"] = shares;
      return line;
    case TaskKind::regression:
      line["value"] = p.value;
      return line;
    case TaskKind::tagging:
      line["tags"] = shown_labels(labels, p.labels);
      return line;
    case TaskKind::choice:
      line["choice"] = p.label;
      line["scores"] = p.probabilities;
      return line;
    case TaskKind::spans:
      break;
  }
  return json_of_answer(prediction, item);
}

std::string text_of(const ItemPrediction& prediction, TaskKind kind, const TaskLabels& labels) {
  const auto& p = prediction.prediction;
  switch (kind) {
    case TaskKind::classification:
      return shown_label(labels, p.label);
    case TaskKind::multilabel:
      return joined_by(shown_labels(labels, p.labels), ",");
    case TaskKind::regression:
      return number_text(p.value);
    case TaskKind::tagging:
      return joined_by(shown_labels(labels, p.labels), " ");
    case TaskKind::choice:
      return std::to_string(p.label);
    case TaskKind::spans:
      break;
  }
  return p.answer;
}

std::string text_of_gold(const TaskItem& item, TaskKind kind, const TaskLabels& labels) {
  if (const auto* one = std::get_if<GoldLabel>(&item.gold))
    return kind == TaskKind::choice ? std::to_string(one->id) : shown_label(labels, one->id);
  if (const auto* several = std::get_if<GoldLabels>(&item.gold))
    return joined_by(shown_labels(labels, several->ids), kind == TaskKind::tagging ? " " : ",");
  if (const auto* number = std::get_if<GoldValue>(&item.gold)) return number_text(number->value);
  const auto* spans = std::get_if<GoldAnswers>(&item.gold);
  return spans && !spans->answers.empty() ? spans->answers.front().text : "";
}

std::string shown_answer(const std::string& text, TaskKind kind) {
  return kind == TaskKind::spans && text.empty() ? "(no answer)" : text;
}

}  // namespace cloze

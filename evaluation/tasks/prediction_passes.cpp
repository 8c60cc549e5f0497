#include "evaluation/tasks/prediction_passes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "core/text.h"
#include "models/backbone_config.h"
#include "tasks/scores/temperature.h"

namespace cloze {

namespace {

/// Throws ConfigError for what the predictions of a task do not have.
void check_request(const PredictRequest& c, AnyTaskKind kind) {
  const auto reason = no_mean_of(kind);
  require<ConfigError>(c.samples == 0 || reason.empty(), "--samples: ", reason, "; leave it out");
  require<ConfigError>(c.ensemble.empty() || reason.empty(), "--ensemble: ", reason, "; leave it out");
  const bool has_label = kind->form == AnswerForm::label;
  require<ConfigError>(!c.calibrated || has_label, "--calibrated: a temperature is of the probabilities of one label, ",
                       "and the task is of ", kind, "; leave it out");
  require<ConfigError>(c.coverage == 0 || has_label, "--coverage: sets are of labels, of which an item has one, and ",
                       "the task is of ", kind, "; leave it out");
}

/// Throws ConfigError for a run whose predictions are not for the same labels.
void check_alike(const JudgedTask& first, const JudgedTask& other, const std::string& path) {
  const auto &a = first.task, &b = other.task;
  require<ConfigError>(a.config.kind == b.config.kind, "--ensemble ", path, ": its task is of ", b.config.kind,
                       ", and that of the run of ", a.config.kind, "; name runs of one task");
  require<ConfigError>(a.labels.names == b.labels.names, "--ensemble ", path, ": its labels are ",
                       listed(b.labels.names), ", and those of the run are ", listed(a.labels.names),
                       "; name runs of one task");
}

bool is_same(const ItemPrediction& a, const ItemPrediction& b) {
  return a.prediction.probabilities == b.prediction.probabilities && a.prediction.answer == b.prediction.answer;
}

}  // namespace

PredictionPasses::PredictionPasses(const PredictRequest& request) : request_(request) {
  add_member(request.run, request.task);
  check_request(request, task().setting.kind);
  for (const auto& path : request.ensemble) {
    add_member(path, request.task);
    check_alike(task(), members_.back().opened.task, path);
  }
  const bool is_mean = members_.size() > 1 || request.samples > 0;
  if (request.calibrated && !is_mean) {
    temperature_ = task().setting.temperature;
    require<ConfigError>(temperature_ > 0, request.run, ": has no temperature, which a fine-tuning fits on its valid ",
                         "part; fine-tune again, or leave out --calibrated");
  }
  if (request.coverage > 0 || (request.calibrated && is_mean)) learn_from_valid(is_mean);
}

void PredictionPasses::learn_from_valid(bool is_mean) {
  require<ConfigError>(!folder().empty(), request_.coverage > 0 ? "--coverage" : "--calibrated",
                       ": looks at the valid part of a task, and ", request_.run,
                       " was trained elsewhere; leave it out");
  const auto valid = read_prepared_split(folder(), "valid").items;
  std::vector<TaskPrediction> predictions;
  for (auto& one : predict(valid)) predictions.push_back(std::move(one.item.prediction));
  // A mean is less sure than what it is the mean of: its own temperature is fitted (Rahaman and Thiery 2021).
  if (request_.calibrated && is_mean) {
    temperature_ = fitted_temperature(valid, predictions);
    for (auto& one : predictions) one.probabilities = at_temperature(one.probabilities, temperature_);
  }
  if (request_.coverage > 0) sets_.emplace(request_.coverage, valid, predictions);
}

void PredictionPasses::add_member(const std::string& path, const std::string& task) {
  auto opened = open_task_run(path, request_.checkpoint, task);
  require_tokenizer(opened.run);
  require<ConfigError>(request_.samples == 0 || !probes_of(*opened.run.network), path,
                       ": a probe has no dropout; leave out --samples");
  TaskRowMaker maker(opened.run.tokenizer, special_token_template(opened.run.tokenizer, opened.run.config.model),
                     row_options(opened.task.task.config, opened.task.task.labels));
  members_.push_back({.opened = std::move(opened), .maker = std::move(maker)});
}

std::vector<std::vector<ItemPrediction>> PredictionPasses::passes_of(Member& member,
                                                                     const std::vector<TaskItem>& items) {
  std::vector<TaskRow> rows;
  for (size_t i = 0; i < items.size(); ++i) member.maker.add(items[i], static_cast<int64_t>(i), rows, member.counts);
  std::vector<std::vector<ItemPrediction>> passes;
  const auto window = Rng(request_.seed).key("dropout") + windows_;
  auto& network = *member.opened.run.network;
  for (int64_t pass = 0; pass < std::max<int64_t>(request_.samples, 1); ++pass) {
    std::optional<uint64_t> dropout_key;
    if (request_.samples > 0) dropout_key = mix(window, static_cast<uint64_t>(pass));
    passes.push_back(predict_items(network, member.opened.task, items, rows, dropout_key));
    require_finite(passes.back(), member.opened.run.folder);
    if (pass > 0) are_alike_ = are_alike_ && std::ranges::equal(passes[0], passes.back(), is_same);
  }
  return passes;
}

std::vector<MeanPrediction> PredictionPasses::predict(const std::vector<TaskItem>& items) {
  std::vector<std::vector<ItemPrediction>> passes;
  for (auto& member : members_)
    for (auto& pass : passes_of(member, items)) passes.push_back(std::move(pass));
  ++windows_;
  const auto kind = task().setting.kind;
  std::vector<MeanPrediction> all;
  for (size_t i = 0; i < items.size(); ++i) {
    std::vector<ItemPrediction> of_item;
    for (auto& pass : passes) of_item.push_back(std::move(pass[i]));
    if (of_item.size() == 1 && !request_.calibrated && request_.coverage == 0)
      all.push_back({.item = std::move(of_item[0])});
    else
      all.push_back(mean_prediction(kind, of_item, temperature_));
  }
  return all;
}

nlohmann::ordered_json PredictionPasses::json_of(const MeanPrediction& prediction, const TaskItem& item) {
  auto more = nlohmann::ordered_json::object();
  const auto& [entropy, mutual_information, deviation] = prediction.uncertainty;
  if (entropy) more["entropy"] = *entropy;
  if (mutual_information) more["mutual_information"] = *mutual_information;
  if (deviation) more["deviation"] = *deviation;
  if (!sets_) return more;
  const auto labels = sets_->labels_of(prediction.item.prediction.probabilities);
  const auto kind = task().setting.kind;
  auto& set = more["set"] = nlohmann::ordered_json::array();
  for (const auto label : labels) {
    if (kind->learns_labels)
      set.push_back(kind->spelled(label_answer(label), task().task.labels));
    else
      set.push_back(label);
  }
  if (item.gold.is_known()) {
    ++judged_;
    held_ += std::ranges::count(labels, item.gold.label);
    labels_in_sets_ += std::ssize(labels);
  }
  return more;
}

std::vector<std::string> PredictionPasses::notes() const {
  std::vector<std::string> all;
  for (const auto& member : members_)
    if (const auto note = truncation_note("items", member.counts); !note.empty()) all.push_back(note);
  if (request_.samples > 1 && are_alike_)
    all.push_back("all passes are alike: the network was trained without dropout");
  return all;
}

std::string PredictionPasses::said_of_sets() const {
  if (judged_ == 0) return "";
  const auto all = static_cast<double>(judged_);
  return concat("the sets hold what is right for ", fixed(100 * static_cast<double>(held_) / all, 1), " % of ", judged_,
                " items (asked for: ", shortest(100 * request_.coverage), " %), with ",
                fixed(static_cast<double>(labels_in_sets_) / all, 2), " labels on average");
}

}  // namespace cloze

#include "tasks/figures/predictions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "data/reading/byte_source.h"
#include "data/reading/line_reader.h"

namespace cloze {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr uint64_t most_prediction_bytes = uint64_t{2} << 30;

std::string shown(const json& value) {
  const auto text = json_text(value);
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

/// Finds labels by their names, as they are written, or by their numbers.
struct LabelNames {
  const TaskLabels& labels;
  std::unordered_map<std::string, int64_t> ids{};

  explicit LabelNames(const TaskLabels& task) : labels(task) {
    for (size_t id = 0; id < task.names.size(); ++id) ids.try_emplace(task.names[id], static_cast<int64_t>(id));
    for (size_t id = 0; id < task.written.size(); ++id) ids.try_emplace(task.written[id], static_cast<int64_t>(id));
  }
  /// unknown_label for a text that is none: a wrong prediction, such as an answer that is no label.
  int64_t of_text(const std::string& text) const {
    const auto at = ids.find(text);
    return at == ids.end() ? unknown_label : at->second;
  }
  int64_t of(const json& value, const std::string& where) const {
    if (value.is_string()) return of_text(value.get_ref<const std::string&>());
    if (value.is_null()) return unknown_label;
    require<DataError>(value.is_number_integer(), where, ": ", shown(value), " is no label; write its name or number");
    if (const auto id = of_text(json_text(value)); id != unknown_label) return id;
    const auto id = value.get<int64_t>();
    require<DataError>(id >= 0 && id < labels.size(), where, ": label ", id, " is none of the task's, which has ",
                       labels.size(), " labels, numbered from 0");
    return id;
  }
  std::vector<int64_t> of_all(const json& value, const std::string& where) const {
    require<DataError>(value.is_array(), where, ": ", shown(value), " is no list of labels");
    std::vector<int64_t> found;
    for (const auto& one : value) found.push_back(of(one, where));
    return found;
  }
};

/// A predicted value, whose square and sums of those are numbers.
double figured(double value, const std::string& where) {
  constexpr double most = 1e100;  // more than any number of 32 bits
  require<DataError>(std::abs(value) <= most, where, ": ", value, " is beyond ", most,
                     ", and figures square it; divide predictions and targets by the same number");
  return value;
}

double number_of(const json& value, const std::string& where) {
  require<DataError>(value.is_number(), where, ": ", shown(value), " is no number");
  return figured(value.get<double>(), where);
}

double number_of(const std::string& text, const std::string& where) {
  double value = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  require<DataError>(trouble == std::errc() && end == text.data() + text.size() && std::isfinite(value), where, ": '",
                     text, "' is no number");
  return figured(value, where);
}

/// The predictions that a file has had so far.
struct Gathered {
  const std::string& path;
  TaskKind kind;
  const std::vector<TaskItem>& items;
  LabelNames labels;
  std::unordered_map<std::string, size_t> item_of{};
  std::vector<TaskPrediction> found{};
  std::vector<bool> is_there{};
  uint64_t unknown = 0;         ///< predictions with a label that the task does not have
  std::string first_unknown{};  ///< where the first of them stands

  Gathered(const std::string& file, TaskKind task, const std::vector<TaskItem>& all, const TaskLabels& names)
      : path(file), kind(task), items(all), labels(names), found(all.size()), is_there(all.size()) {
    for (size_t i = 0; i < all.size(); ++i) item_of.try_emplace(all[i].id, i);
  }

  void put(size_t item, TaskPrediction prediction, const std::string& where) {
    require<DataError>(!is_there[item], where, ": item '", items[item].id, "' has a prediction already; keep one");
    is_there[item] = true;
    if (has_unknown(prediction) && unknown++ == 0) first_unknown = where;
    prediction.id = items[item].id;
    found[item] = std::move(prediction);
  }

  bool has_unknown(const TaskPrediction& prediction) const {
    if (kind == TaskKind::classification) return prediction.label == unknown_label;
    const bool has_several = kind == TaskKind::multilabel || kind == TaskKind::tagging;
    return has_several && std::ranges::find(prediction.labels, unknown_label) != prediction.labels.end();
  }
  std::string note() const {
    if (unknown == 0) return "";
    return concat(path, ": ", counted(unknown, "prediction"), " with a label that the task does not have, first ",
                  first_unknown, unknown == 1 ? "; it counts as wrong" : "; they count as wrong");
  }

  size_t numbered(int64_t number, const std::string& where) const {
    require<DataError>(number >= 0 && number < std::ssize(items), where, ": there is no item ", number,
                       "; the part has ", items.size(), " items, numbered from 0");
    return static_cast<size_t>(number);
  }
  size_t named(const std::string& id, const std::string& where) const {
    const auto at = item_of.find(id);
    if (at != item_of.end()) return at->second;
    constexpr std::string_view predicted = "items:";  // as `cloze predict` names items without an id
    int64_t number = -1;
    if (id.starts_with(predicted)) std::from_chars(id.data() + predicted.size(), id.data() + id.size(), number);
    require<DataError>(number >= 0, where, ": the part has no item '", id, "'");
    return numbered(number, where);
  }

  void require_all() const {
    const auto first = std::ranges::find(is_there, false) - is_there.begin();
    const auto missing = std::ranges::count(is_there, false);
    require<DataError>(missing == 0, path, ": there is no prediction for ", missing, " of ", items.size(),
                       " items, the first of which is '", missing > 0 ? items[static_cast<size_t>(first)].id : "",
                       "'; each item has one");
  }

  /// The prediction of a label, a value, tags or an answer.
  TaskPrediction of_value(const json& value, const std::string& where) const {
    TaskPrediction one;
    switch (kind) {
      case TaskKind::classification:
        one.label = labels.of(value, where);
        break;
      case TaskKind::choice:
        require<DataError>(value.is_number_integer(), where, ": ", shown(value),
                           " is no number of a candidate, counted from 0");
        one.label = value.get<int64_t>();
        break;
      case TaskKind::multilabel:
        one.labels = labels.of_all(value, where);
        std::ranges::sort(one.labels);
        if (const auto twice = std::ranges::adjacent_find(one.labels);
            twice != one.labels.end() && *twice != unknown_label)
          fail<DataError>(where, ": has the label '", labels.labels.names[static_cast<size_t>(*twice)],
                          "' twice; a set of labels has each once");
        break;
      case TaskKind::tagging:
        one.labels = labels.of_all(value, where);
        break;
      case TaskKind::regression:
        one.value = number_of(value, where);
        break;
      case TaskKind::spans:
        require<DataError>(value.is_string(), where, ": ", shown(value), " is no answer, which is a text");
        one.answer = value.get<std::string>();
        break;
    }
    return one;
  }

  std::vector<double> probabilities(const json& value, const std::string& where) const {
    std::vector<double> found_ones;
    if (value.is_object()) {
      found_ones.resize(static_cast<size_t>(labels.labels.size()));
      for (const auto& [name, p] : value.items()) {
        const auto id = labels.of_text(name);
        require<DataError>(id != unknown_label, where, ": '", name, "' is no label of the task");
        found_ones[static_cast<size_t>(id)] = number_of(p, where);
      }
      return found_ones;
    }
    require<DataError>(value.is_array(), where, ": the probabilities are no list and no object of labels");
    for (const auto& p : value) found_ones.push_back(number_of(p, where));
    return found_ones;
  }
};

/// The key of JSON lines under which a prediction of a kind stands.
const char* key_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::multilabel:
      return "labels";
    case TaskKind::regression:
      return "value";
    case TaskKind::tagging:
      return "tags";
    case TaskKind::spans:
      return "answer";
    case TaskKind::choice:
      return "choice";
    case TaskKind::classification:
      break;
  }
  return "label";
}

void read_json_lines(Gathered& gathered, PredictionFile& file) {
  LineReader lines(gathered.path, LoneReturn::ends_if_no_feeds, most_prediction_bytes);
  const char* key = key_of(gathered.kind);
  int64_t number = 0, with_margin = 0;
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const auto where = lines.where();
    const auto object = parse_json_line(line, where);
    require<DataError>(object.is_object() && object.contains(key), where, ": a prediction of ", name_of(gathered.kind),
                       " is an object with the key '", key, "'");
    const auto at = object.contains("id") ? object["id"] : object.value("item", json(number));
    const auto item = at.is_string() ? gathered.named(at.get<std::string>(), where)
                                     : gathered.numbered(at.is_number_integer() ? at.get<int64_t>() : -1, where);
    auto one = gathered.of_value(object[key], where);
    for (const char* scores : {"probabilities", "scores"})
      if (object.contains(scores)) one.probabilities = gathered.probabilities(object[scores], where);
    if (object.contains("no_answer") && object["no_answer"].is_number()) {
      one.no_answer = object["no_answer"].get<double>();
      ++with_margin;
    }
    gathered.put(item, std::move(one), where);
    ++number;
  }
  file.has_no_answer_scores = gathered.kind == TaskKind::spans && number > 0 && with_margin == number;
}

json json_of_file(const std::string& path) {
  const auto text = read_bytes(path, most_prediction_bytes);
  auto value = parse_json(text);
  require<DataError>(value.is_object(), path, ": this is no JSON object of predictions", json_fault(text));
  return value;
}

/// {"TASK": {"predictions": [{"id": "TASK_0", "pred": 1}]}}
void read_babylm(Gathered& gathered, const json& task) {
  int64_t number = 0;
  for (const auto& one : task["predictions"]) {
    const auto where = concat(gathered.path, ": prediction ", number++);
    require<DataError>(one.is_object() && one.contains("id") && one["id"].is_string() && one.contains("pred"), where,
                       " has no id and pred");
    const auto id = one["id"].get<std::string>();
    const auto digits = id.substr(id.find_last_of('_') + 1);
    const bool is_number = !digits.empty() && digits.size() < 10 &&
                           std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    require<DataError>(is_number, where, ": '", id, "' does not end with the number of an item, as TASK_0 does");
    gathered.put(gathered.numbered(std::stoll(digits), where), gathered.of_value(one["pred"], where), where);
  }
}

void read_json_object(Gathered& gathered) {
  const auto object = json_of_file(gathered.path);
  if (object.size() == 1 && object.begin()->is_object() && object.begin()->contains("predictions"))
    return read_babylm(gathered, *object.begin());
  for (const auto& [id, value] : object.items()) {
    const auto where = concat(gathered.path, ": '", id, "'");
    const auto at = gathered.item_of.find(id);
    if (at == gathered.item_of.end() && gathered.kind == TaskKind::spans) continue;  // as SQuAD's programs
    gathered.put(gathered.named(id, where), gathered.of_value(value, where), where);
  }
}

/// Whether a line names columns, the last of which has the predictions: those of GLUE, and what `cloze predict` writes.
bool names_predictions(std::string_view line) {
  const auto tab = line.find_last_of('\t');
  return tab != line.npos && line.substr(tab + 1).starts_with("prediction");
}

/// The parts of a text between separators.
json split(const std::string& text, char separator) {
  json parts = json::array();
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string last_column(std::string_view line) {
  return std::string(line.substr(line.find_last_of('\t') + 1));  // of a line without tabs: all of it
}

json value_of_line(const Gathered& gathered, const std::string& text, const std::string& where) {
  switch (gathered.kind) {
    case TaskKind::regression:
      return number_of(text, where);
    case TaskKind::choice:
      return static_cast<int64_t>(number_of(text, where));
    case TaskKind::tagging:
      return split(text, ' ');
    case TaskKind::multilabel: {
      const bool has_commas = text.find(',') != text.npos || gathered.labels.of_text(text) != unknown_label;
      return split(text, has_commas ? ',' : ' ');
    }
    default:
      return text;
  }
}

void read_lines(Gathered& gathered) {
  LineReader lines(gathered.path, LoneReturn::ends_if_no_feeds, most_prediction_bytes);
  int64_t number = 0;
  bool is_first = true, has_header = false, in_columns = false;
  json tags = json::array();  // of the item that is being read in columns
  const auto put = [&](const json& value) {
    const auto where = lines.where();
    require<DataError>(number < std::ssize(gathered.items), where, ": here is prediction ", number + 1, " of ",
                       gathered.items.size(), " items; each has one");
    gathered.put(static_cast<size_t>(number++), gathered.of_value(value, where), where);
  };
  for (std::string_view line; lines.next(line);) {
    if (std::exchange(is_first, false) && names_predictions(line)) {
      has_header = true;
      continue;
    }
    const bool is_of_word = gathered.kind == TaskKind::tagging && !has_header;
    const bool has_columns = is_of_word && line.find('\t') != std::string_view::npos;
    in_columns |= has_columns;
    if (in_columns && line.empty()) {
      if (!tags.empty()) put(std::exchange(tags, json::array()));
    } else if (in_columns) {
      tags.push_back(last_column(line));
    } else {
      put(value_of_line(gathered, last_column(line), lines.where()));
    }
  }
  if (!tags.empty()) put(tags);
}

/// Scores of SQuAD's file, in its order.
void read_no_answer(const std::string& path, Gathered& gathered, PredictionFile& file) {
  const auto text = read_bytes(path, most_prediction_bytes);
  const auto object = parse_ordered_json(text);
  require<DataError>(object.is_object(), path, ": this is no JSON object of no-answer scores", json_fault(text));
  std::vector<bool> has_score(gathered.items.size());
  for (const auto& [id, value] : object.items()) {
    const auto at = gathered.item_of.find(id);
    if (at == gathered.item_of.end()) continue;
    gathered.found[at->second].no_answer = number_of(json(value), concat(path, ": '", id, "'"));
    has_score[at->second] = true;
    file.no_answer_order.push_back(at->second);
  }
  for (size_t i = 0; i < has_score.size(); ++i)
    require<DataError>(has_score[i] || !gathered.is_there[i], path, ": there is no score for item '",
                       gathered.items[i].id, "', which has a prediction");
  file.has_no_answer_scores = true;
}

}  // namespace

PredictionFile read_predictions(const std::string& path, TaskKind kind, const std::vector<TaskItem>& items,
                                const TaskLabels& labels, const std::string& no_answer) {
  PredictionFile file;
  Gathered gathered(path, kind, items, labels);
  const bool is_object = uncompressed_name(path).ends_with(".json");
  if (is_json_lines(path))
    read_json_lines(gathered, file);
  else if (is_object)
    read_json_object(gathered);
  else
    read_lines(gathered);
  if (!(is_object && kind == TaskKind::spans)) gathered.require_all();
  if (!no_answer.empty()) read_no_answer(no_answer, gathered, file);
  file.note = gathered.note();
  file.predictions = std::move(gathered.found);
  return file;
}

}  // namespace cloze

#include "tasks/scores/predictions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/contains.h"
#include "core/error.h"
#include "core/json.h"
#include "core/shown_character.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/byte_source.h"
#include "data/reading/json_lines.h"
#include "data/reading/table_reader.h"
#include "data/reading/text_lines.h"
#include "tasks/scores/label_names.h"
#include "tasks/files/records.h"

namespace cloze {

namespace {

using nlohmann::json;

constexpr uint64_t most_prediction_bytes = uint64_t{2} << 30;

/// The whole number that a text is; -1: it is none.
int64_t whole_number(std::string_view text) {
  int64_t number = -1;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  return trouble == std::errc() && end == text.data() + text.size() ? number : -1;
}

/// The predictions that a file has had so far.
struct Gathered {
  const std::string& path;
  AnyTaskKind kind;
  const std::vector<TaskItem>& items;
  LabelNames labels;
  std::unordered_map<std::string, size_t> item_of{};
  std::vector<TaskPrediction> predictions{};
  std::vector<bool> is_there{};
  BadRecords unknown{};       ///< predictions with a label that the task does not have
  BadRecords contradicted{};  ///< whose label is not the likeliest one
  BadRecords improbable{};    ///< with probabilities outside of [0, 1]

  Gathered(const std::string& file, AnyTaskKind task, const std::vector<TaskItem>& all, const TaskLabels& names)
      : path(file), kind(task), items(all), labels(names), predictions(all.size()), is_there(all.size()) {
    for (size_t i = 0; i < all.size(); ++i) item_of.try_emplace(all[i].id, i);
  }

  void put(size_t item, TaskPrediction prediction, const std::string& where) {
    require<DataError>(!is_there[item], where, ": item '", items[item].id, "' has a prediction already; keep one");
    is_there[item] = true;
    auto& label = prediction.answer.label;
    const bool is_candidate = label >= 0 && label < std::ssize(items[item].candidates);
    if (kind->has_candidates && !is_candidate) label = unknown_label;
    if (has_unknown(prediction.answer)) add_to(unknown, where);
    prediction.id = items[item].id;
    predictions[item] = std::move(prediction);
  }

  bool has_unknown(const TaskAnswer& answer) const {
    if (kind->form == AnswerForm::label) return answer.label == unknown_label;
    return std::ranges::find(answer.labels, unknown_label) != answer.labels.end();
  }
  static void add_to(BadRecords& records, const std::string& where) {
    if (records.count++ == 0) records.first = where;
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    const auto add = [&](const BadRecords& records, const char* what, const char* counts) {
      if (records.count > 0)
        all.push_back(concat(path, ": ", counted(records.count, "prediction"), what, ", first ", records.first, "; ",
                             records.count == 1 ? "it counts" : "they count", counts));
    };
    add(unknown,
        kind->has_candidates ? " with a candidate that the item does not have"
                             : " with a label that the task does not have",
        " as wrong");
    add(contradicted,
        kind->learns_labels ? " whose label is not the likeliest one" : " whose score is not the greatest",
        kind->learns_labels ? " by the label, areas under curves by probabilities" : " by the choice");
    add(improbable, " with a probability outside of [0, 1]", " as scores");
    return all;
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
    const auto number = id.starts_with(predicted) ? whole_number(std::string_view(id).substr(predicted.size())) : -1;
    require<DataError>(number >= 0, where, ": the part has no item '", id, "'");
    return numbered(number, where);
  }

  /// By its id, else its number in the part.
  size_t named_or_numbered(const std::string& text, const std::string& where) const {
    const auto number = item_of.contains(text) ? -1 : whole_number(text);
    return number >= 0 ? numbered(number, where) : named(text, where);
  }

  /// By its id or its number in the part.
  size_t item_at(const json& object, int64_t number, const std::string& where) const {
    const bool has_id = object.contains("id");
    const auto at = has_id ? object["id"] : object.value("item", json(number));
    if (at.is_string()) return named(at.get<std::string>(), where);
    require<DataError>(at.is_number_integer(), where, ": ", shown_value(at),
                       " names no item; write its id, or its number from 0");
    const bool is_too_large = at.is_number_unsigned() && at.get<uint64_t>() > INT64_MAX;
    require<DataError>(!is_too_large, where, ": there is no item ", json_text(at), "; the part has ", items.size(),
                       " items, numbered from 0");
    const auto same = has_id ? item_of.find(json_text(at)) : item_of.end();  // ids may be numbers
    return same != item_of.end() ? same->second : numbered(at.get<int64_t>(), where);
  }

  void require_all() const {
    const auto first = std::ranges::find(is_there, false) - is_there.begin();
    const auto missing = std::ranges::count(is_there, false);
    require<DataError>(missing == 0, path, ": there is no prediction for ", missing, " of ", items.size(),
                       " items, the first of which is '", missing > 0 ? items[static_cast<size_t>(first)].id : "",
                       "'; each item has one");
  }

  TaskAnswer read(const json& value, const std::string& where) const { return kind->read_answer(value, labels, where); }

  /// Whether one of the chosen is less likely than another that is not.
  static bool contradicts(const std::vector<int64_t>& chosen, const std::vector<double>& shares) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (size_t id = 0; id < shares.size(); ++id)
      if (std::ranges::find(chosen, static_cast<int64_t>(id)) != chosen.end())
        least = std::min(least, shares[id]);
      else
        most = std::max(most, shares[id]);
    return least < most;
  }

  /// Takes what the probabilities say where nothing else is said, and counts those that say something else.
  void weigh(TaskPrediction& one, bool is_decided, const std::string& where) {
    const auto& shares = one.probabilities;
    auto& answer = one.answer;
    const bool has_several = kind->has_sets;
    answer.form = kind->form;
    if (is_decided) {
      if (contradicts(has_several ? answer.labels : std::vector{answer.label}, shares)) add_to(contradicted, where);
    } else if (has_several) {
      for (size_t id = 0; id < shares.size(); ++id)
        if (shares[id] > 0.5) answer.labels.push_back(static_cast<int64_t>(id));
    } else {
      answer.label = std::ranges::max_element(shares) - shares.begin();
    }
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
    require<DataError>(!kind->learns_labels || std::ssize(found_ones) == labels.labels.size(), where, ": has ",
                       found_ones.size(), " probabilities, and the task has ", labels.labels.size(), " labels");
    return found_ones;
  }
};

/// What an object says of all labels or candidates; null: nothing, or of a kind that has none.
const json* proportions_of(const json& object, AnyTaskKind kind) {
  if (*kind->shares == '\0') return nullptr;
  for (const char* key : {"probabilities", "scores"})
    if (object.contains(key) && !object[key].empty()) return &object[key];
  return nullptr;
}

void read_json_lines(Gathered& gathered, PredictionFile& file) {
  JsonLines lines(gathered.path, LoneReturn::ends_if_no_feeds, most_prediction_bytes);
  const std::string key = gathered.kind->key, shares_key = gathered.kind->shares;
  int64_t number = 0, with_margin = 0;
  while (const auto read = lines.next_object()) {
    const auto& object = *read;
    const auto where = lines.where();
    const auto* shares = proportions_of(object, gathered.kind);
    const bool is_decided = object.contains(key);
    require<DataError>(is_decided || shares != nullptr, where, ": a prediction of ", name_of(gathered.kind),
                       " is an object with the key '", key, "'",
                       shares_key.empty() ? "" : concat(", or '", shares_key, "'"));
    const auto item = gathered.item_at(object, number, where);
    TaskPrediction one;
    if (is_decided) one.answer = gathered.read(object[key], where);
    if (shares != nullptr) {
      one.probabilities = gathered.probabilities(*shares, where);
      gathered.weigh(one, is_decided, where);
      const auto is_outside = [](double p) { return p < 0 || p > 1 + 1e-6; };  // numbers of 32 bits are rounded
      if (object.contains("probabilities") && std::ranges::any_of(one.probabilities, is_outside))
        Gathered::add_to(gathered.improbable, where);
    }
    if (object.contains("no_answer") && object["no_answer"].is_number()) {
      one.no_answer = object["no_answer"].get<double>();
      ++with_margin;
    }
    if (gathered.kind->generates && object.contains("loss")) {
      one.loss = number_of(object["loss"], where);
      one.count = object.value("tokens", int64_t{1});
    }
    gathered.put(item, std::move(one), where);
    ++number;
  }
  file.has_no_answer_scores = gathered.kind->has_answers && number > 0 && with_margin == number;
}

json json_of_file(const std::string& path) {
  const auto text = read_bytes(path, most_prediction_bytes);
  auto value = parse_json(text);
  require<DataError>(value.is_object(), path, ": this is no JSON object of predictions", json_fault(text),
                     value.is_array() ? "; write {ID: answer}, or an object a line in a .jsonl" : "");
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
    gathered.put(gathered.numbered(std::stoll(digits), where), {.answer = gathered.read(one["pred"], where)}, where);
  }
}

/// `'25', '26' and 3 more`
std::string ids_in(const std::vector<std::string>& ids) {
  constexpr size_t most = 10;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(ids.size(), most); ++i) names.push_back("'" + shortened(ids[i]) + "'");
  return listed(names) + (ids.size() > most ? concat(" and ", ids.size() - most, " more") : "");
}

/// Notes questions without a prediction, and predictions without a question, both of which SQuAD's programs allow.
void note_unpaired(const Gathered& gathered, const std::vector<std::string>& others, SquadVersion squad,
                   PredictionFile& file) {
  std::vector<std::string> missing;
  bool leaves_out = squad == SquadVersion::v2_0;
  for (size_t i = 0; i < gathered.items.size(); ++i) {
    const auto& item = gathered.items[i];
    if (!gathered.is_there[i]) missing.push_back(item.id);
    leaves_out |= squad == SquadVersion::automatic && is_unanswerable(item);
  }
  const auto all = gathered.items.size();
  require<DataError>(missing.size() < all, gathered.path, ": has no prediction for any of the ",
                     counted(all, "question"), " of the part",
                     others.empty() ? "; write one for each, {ID: answer}"
                                    : concat(", and ids that it does not have, ", ids_in(others)));
  if (!missing.empty())
    file.notes.push_back(
        concat(gathered.path, ": ", all - missing.size(), " of ", counted(all, "question"), " have a prediction; ",
               missing.size(), missing.size() == 1 ? " has" : " have", " none, ", ids_in(missing),
               leaves_out ? ", and figures leave them out" : ", and count as wrong", ", as SQuAD's program does"));
  if (!others.empty())
    file.notes.push_back(concat(gathered.path, ": ", counted(others.size(), "prediction"),
                                " for questions that the part does not have, ", ids_in(others), "; ",
                                others.size() == 1 ? "it counts nothing" : "they count nothing"));
}

void read_json_object(Gathered& gathered, SquadVersion squad, PredictionFile& file) {
  const auto object = json_of_file(gathered.path);
  if (object.size() == 1 && object.begin()->is_object() && object.begin()->contains("predictions"))
    return read_babylm(gathered, *object.begin());
  std::vector<std::string> others;
  for (const auto& [id, value] : object.items()) {
    const auto where = concat(gathered.path, ": '", id, "'");
    if (gathered.kind->has_answers && !gathered.item_of.contains(id))
      others.push_back(id);
    else
      gathered.put(gathered.named(id, where), {.answer = gathered.read(value, where)}, where);
  }
  if (gathered.kind->has_answers) note_unpaired(gathered, others, squad, file);
}

bool is_csv(const std::string& path) { return uncompressed_name(path).ends_with(".csv"); }

/// The cells of the first line.
std::vector<std::string> first_cells(const std::string& path) {
  LineReader lines(path, LoneReturn::ends_if_no_feeds, most_prediction_bytes);
  std::string_view line;
  if (!lines.next(line)) return {};
  return is_csv(path) ? table_cells(line, table_separator(path, line)) : table_cells(line, '\t');
}

/// Whether the first of two columns says which item a line is for, by its name: `index` of GLUE, `Id` and others.
bool names_items(const std::vector<std::string>& cells) {
  return cells.size() == 2 && contains(std::array{"index", "Index", "item", "id", "Id", "ID", "idx"}, cells[0]);
}

/// Whether the first line names columns, the last of which has the predictions: those of GLUE, and what `cloze predict`
/// writes.
bool are_names(const std::vector<std::string>& cells, const Gathered& gathered) {
  if (names_items(cells) && !gathered.item_of.contains(cells[0])) return true;
  if (cells.empty() || !cells.back().starts_with("prediction")) return false;
  return cells.size() > 1 || (cells.back() == "prediction" && gathered.labels.of_text("prediction") == unknown_label);
}

/// Puts the predictions of lines, one for each item in the order of items.
class PredictionsInOrder {
 public:
  explicit PredictionsInOrder(Gathered& gathered) : gathered_(gathered) {}
  void put(const json& value, const std::string& where) {
    require<DataError>(number_ < std::ssize(gathered_.items), where, ": here is prediction ", number_ + 1, " of ",
                       gathered_.items.size(), " items; each has one");
    gathered_.put(static_cast<size_t>(number_++), {.answer = gathered_.read(value, where)}, where);
  }

 private:
  Gathered& gathered_;
  int64_t number_ = 0;
};

/// A table, whose last column has the predictions. Of two columns the first one may be that of the items.
void read_table(Gathered& gathered, const std::vector<std::string>& first) {
  const bool has_names = are_names(first, gathered);
  const bool has_items = has_names && names_items(first);
  const auto format = is_csv(gathered.path) ? TaskFormat::csv : TaskFormat::tsv;
  const auto rows =
      open_records({.files = {gathered.path}, .format = format, .header = has_names, .columns = {{"-1"}, {"0"}}});
  PredictionsInOrder in_order(gathered);
  for (std::vector<Cell> cells(2); rows->next(cells);) {
    const auto where = rows->where();
    const auto text = format == TaskFormat::tsv ? unescaped_tsv(cells[0].text) : cells[0].text;
    const auto value = gathered.kind->value_of_line(text, gathered.labels, where);
    if (has_items)
      gathered.put(gathered.named_or_numbered(cells[1].text, where), {.answer = gathered.read(value, where)}, where);
    else
      in_order.put(value, where);
  }
}

/// The items that texts name, each one of them: by their ids, else by their numbers from 0, else from 1; empty: they
/// do not.
std::vector<size_t> items_named(const Gathered& gathered, const std::vector<std::string>& texts) {
  const auto count = gathered.items.size();
  const auto places_by = [&](const auto& place_of) {
    std::vector<size_t> places;
    std::vector<bool> is_there(count);
    for (const auto& text : texts) {
      const int64_t place = place_of(text);
      if (place < 0 || place >= std::ssize(is_there) || is_there[static_cast<size_t>(place)]) break;
      is_there[static_cast<size_t>(place)] = true;
      places.push_back(static_cast<size_t>(place));
    }
    return places.size() == count && places.size() == texts.size() ? places : std::vector<size_t>{};
  };
  const auto by_id = places_by([&](const std::string& text) {
    const auto at = gathered.item_of.find(text);
    return at == gathered.item_of.end() ? int64_t{-1} : static_cast<int64_t>(at->second);
  });
  if (!by_id.empty()) return by_id;
  const auto from_zero = places_by(whole_number);
  return from_zero.empty() ? places_by([](const std::string& text) { return whole_number(text) - 1; }) : from_zero;
}

/// Reads two columns without names of which the first one names every item; false: it does not, and nothing is read.
bool read_named_lines(Gathered& gathered, PredictionFile& file) {
  LineReader lines(gathered.path, LoneReturn::ends_if_no_feeds, most_prediction_bytes);
  const char separator = is_csv(gathered.path) ? ',' : '\t';
  std::vector<std::string> names, texts, places;
  for (std::string_view line; lines.next(line) && names.size() <= gathered.items.size();) {
    const auto cells = table_cells(line, separator);
    if (cells.size() != 2) return false;
    names.push_back(cells[0]);
    texts.push_back(is_csv(gathered.path) ? cells[1] : unescaped_tsv(cells[1]));
    places.push_back(lines.where());
  }
  const auto items = items_named(gathered, names);
  for (size_t i = 0; i < items.size(); ++i) {
    const auto value = gathered.kind->value_of_line(texts[i], gathered.labels, places[i]);
    gathered.put(items[i], {.answer = gathered.read(value, places[i])}, places[i]);
  }
  if (!std::ranges::is_sorted(items))
    file.notes.push_back(concat(gathered.path, ": its first column names the items, in another order than theirs, and ",
                                "each line is read for the item that it names"));
  return !items.empty();
}

std::string last_column(std::string_view line) {
  const auto tab = line.find_last_of('\t');
  return tab == line.npos ? std::string(line) : unescaped_tsv(std::string(line.substr(tab + 1)));
}

void read_lines(Gathered& gathered, PredictionFile& file) {
  const auto first = first_cells(gathered.path);
  const bool may_name_items = first.size() == 2 && !gathered.kind->has_words && !are_names(first, gathered);
  if (may_name_items && read_named_lines(gathered, file)) return;
  if (!first.empty() && (is_csv(gathered.path) || are_names(first, gathered))) return read_table(gathered, first);
  LineReader lines(gathered.path, LoneReturn::ends_if_no_feeds, most_prediction_bytes);
  PredictionsInOrder in_order(gathered);
  bool in_columns = false;
  json tags = json::array();  // of the item that is being read in columns
  for (std::string_view line; lines.next(line);) {
    in_columns |= gathered.kind->has_words && line.find('\t') != std::string_view::npos;
    if (in_columns && line.empty()) {
      if (!tags.empty()) in_order.put(std::exchange(tags, json::array()), lines.where());
    } else if (in_columns) {
      tags.push_back(last_column(line));
    } else {
      in_order.put(gathered.kind->value_of_line(last_column(line), gathered.labels, lines.where()), lines.where());
    }
  }
  if (!tags.empty()) in_order.put(tags, lines.where());
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
    gathered.predictions[at->second].no_answer = number_of(json(value), concat(path, ": '", id, "'"));
    has_score[at->second] = true;
    file.no_answer_order.push_back(at->second);
  }
  for (size_t i = 0; i < has_score.size(); ++i)
    require<DataError>(has_score[i] || !gathered.is_there[i], path, ": there is no score for item '",
                       gathered.items[i].id, "', which has a prediction");
  file.has_no_answer_scores = true;
}

}  // namespace

PredictionFile read_predictions(const std::string& path, AnyTaskKind kind, const std::vector<TaskItem>& items,
                                const TaskLabels& labels, const std::string& no_answer, SquadVersion squad) {
  for (const auto* one : {&path, &no_answer}) {
    std::error_code ignored;
    require<DataError>(*one != "-" && !std::filesystem::is_other(*one, ignored), *one,
                       ": is a pipe or a device, and predictions are read from a file; write them to one");
  }
  PredictionFile file;
  Gathered gathered(path, kind, items, labels);
  const bool is_object = uncompressed_name(path).ends_with(".json");
  if (is_json_lines(path))
    read_json_lines(gathered, file);
  else if (is_object)
    read_json_object(gathered, squad, file);
  else
    read_lines(gathered, file);
  if (!(is_object && kind->has_answers)) gathered.require_all();
  if (!no_answer.empty()) read_no_answer(no_answer, gathered, file);
  const auto notes = gathered.notes();
  file.notes.insert(file.notes.end(), notes.begin(), notes.end());
  file.predictions = std::move(gathered.predictions);
  return file;
}

}  // namespace cloze

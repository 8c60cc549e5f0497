#include "tasks/scores/label_names.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "data/reading/text_lines.h"

namespace cloze {

using nlohmann::json;

std::string shown_value(const json& value) {
  const auto text = json_text(value);
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

LabelNames::LabelNames(const TaskLabels& task) : labels(task) {
  for (size_t id = 0; id < task.names.size(); ++id) ids.try_emplace(task.names[id], static_cast<int64_t>(id));
  for (size_t id = 0; id < task.written.size(); ++id) ids.try_emplace(task.written[id], static_cast<int64_t>(id));
}

int64_t LabelNames::of_text(const std::string& text) const {
  const auto at = ids.find(std::string(without_white_space_around(text)));
  return at == ids.end() ? unknown_label : at->second;
}

int64_t LabelNames::of(const json& value, const std::string& where) const {
  if (value.is_string()) return of_text(value.get_ref<const std::string&>());
  if (value.is_null()) return unknown_label;
  require<DataError>(value.is_number_integer(), where, ": ", shown_value(value),
                     " is no label; write its name or number");
  if (const auto id = of_text(json_text(value)); id != unknown_label) return id;
  const auto id = value.get<int64_t>();
  require<DataError>(id >= 0 && id < labels.size(), where, ": label ", id, " is none of the task's, which has ",
                     labels.size(), " labels, numbered from 0");
  return id;
}

std::vector<int64_t> LabelNames::of_all(const json& value, const std::string& where) const {
  require<DataError>(value.is_array(), where, ": ", shown_value(value), " is no list of labels");
  std::vector<int64_t> ids;
  for (const auto& one : value) ids.push_back(of(one, where));
  return ids;
}

double number_of(const json& value, const std::string& where) {
  require<DataError>(value.is_number(), where, ": ", shown_value(value), " is no number");
  return value.get<double>();
}

double number_of(const std::string& text, const std::string& where) {
  double value = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  require<DataError>(trouble == std::errc() && end == text.data() + text.size() && std::isfinite(value), where, ": '",
                     text, "' is no number");
  return value;
}

json split(const std::string& text, char separator) {
  json parts = json::array();
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace cloze

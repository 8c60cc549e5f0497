#include "evaluation/suites/json_lines.h"

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/json.h"
#include "core/spelling.h"
#include "data/reading/text_lines.h"

namespace cloze {

using nlohmann::json;

std::string described(const json& value) {
  if (value.is_string()) return "'" + shortened(value.get_ref<const std::string&>()) + "'";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return json_text(value);
}

const json& SuiteLine::at(const char* key) const {
  const auto found = object.find(key);
  require<DataError>(found != object.end(), where, ": has no `", key,
                     "`, which the other lines of its kind have; add it, or remove the line");
  return *found;
}

const std::string& SuiteLine::text(const char* key) const {
  const auto& value = at(key);
  require<DataError>(value.is_string(), where, ": `", key, "` is ", described(value), "; it must be a text");
  return value.get_ref<const std::string&>();
}

const std::string& SuiteLine::filled(const char* key) const {
  const auto& value = text(key);
  require<DataError>(!is_blank(value), where, ": `", key, "` is empty; give it text, or remove the line");
  return value;
}

double SuiteLine::number(const char* key) const {
  const auto& value = at(key);
  require<DataError>(value.is_number() && std::isfinite(value.get<double>()), where, ": `", key, "` is ",
                     described(value), "; it must be a number");
  return value.get<double>();
}

int64_t SuiteLine::integer(const char* key) const {
  const auto& value = at(key);
  require<DataError>(value.is_number_integer(), where, ": `", key, "` is ", described(value),
                     "; it must be an integer");
  return value.get<int64_t>();
}

std::vector<std::string> SuiteLine::texts(const char* key) const {
  const auto& value = at(key);
  require<DataError>(value.is_array(), where, ": `", key, "` is ", described(value), "; it must be a list of texts");
  std::vector<std::string> list;
  for (const auto& one : value) {
    require<DataError>(one.is_string(), where, ": `", key, "` holds ", described(one), "; it must be a list of texts");
    list.push_back(one.get<std::string>());
  }
  return list;
}

std::optional<SuiteLine> SuiteLines::next() {
  auto object = lines_.next_object();
  if (!object) return std::nullopt;
  return SuiteLine{std::move(*object), lines_.where()};
}

std::optional<SuiteLine> first_line(const std::string& path) {
  LineReader lines(path);
  std::string_view line;
  do {
    if (!lines.next(line)) return std::nullopt;
  } while (is_blank(line));
  SuiteLine suite_line{parse_json(line), lines.where()};
  if (!suite_line.object.is_object()) return std::nullopt;
  return suite_line;
}

}  // namespace cloze

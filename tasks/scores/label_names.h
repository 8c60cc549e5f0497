#pragma once
// Labels, numbers and lists in files of predictions.
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "tasks/item.h"

namespace cloze {

/// Finds labels by their names, as they are written, or by their numbers.
struct LabelNames {
  const TaskLabels& labels;
  std::unordered_map<std::string, int64_t> ids{};

  explicit LabelNames(const TaskLabels& task);
  /// unknown_label for a text that is none: a wrong prediction, such as an answer that is no label.
  int64_t of_text(const std::string& text) const;
  /// Throws DataError with the place for what is no label.
  int64_t of(const nlohmann::json& value, const std::string& where) const;
  std::vector<int64_t> of_all(const nlohmann::json& value, const std::string& where) const;
};

/// A value as far as it is short.
std::string shown_value(const nlohmann::json& value);
/// Throw DataError with the place for what is no number.
double number_of(const nlohmann::json& value, const std::string& where);
double number_of(const std::string& text, const std::string& where);
/// The parts of a text between separators.
nlohmann::json split(const std::string& text, char separator);

}  // namespace cloze

#pragma once
#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/json.h"

namespace cloze {

/// JSON objects, one for each item of a suite, each kept as its line: objects of a pair take 7 kB, their lines 0.5 kB.
class SuitePredictions {
 public:
  SuitePredictions() = default;
  SuitePredictions(std::initializer_list<nlohmann::json> items);
  /// What is not UTF-8 in `item` is replaced by U+FFFD.
  void push_back(const nlohmann::json& item);
  size_t size() const { return lines_.size(); }
  nlohmann::json operator[](size_t i) const { return parse_json(lines_[i]); }
  /// A line for each item: `identity`, an object with keys of its own, and then what the item says.
  std::string lines(const nlohmann::json& identity) const;

 private:
  std::vector<std::string> lines_{};
};

}  // namespace cloze

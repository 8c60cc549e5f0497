#pragma once
// Numbers that programs of others gave, in JSON files next to the scripts that wrote them.
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// A part of a file of tests/suites.
inline nlohmann::json reference(const std::string& file, const char* part) {
  std::ifstream in(std::string(SOURCE_DIR "/tests/evaluation/suites/") + file);
  return nlohmann::json::parse(in).at(part);
}

/// A list of numbers; NaN for null.
inline std::vector<double> numbers_of(const nlohmann::json& list) {
  std::vector<double> found;
  for (const auto& value : list)
    found.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  return found;
}

#include "suites/suite_predictions.h"

#include <nlohmann/json.hpp>

#include "core/json.h"

namespace cloze {

namespace {

std::string line_of(const nlohmann::json& object) { return json_text(object); }

}  // namespace

SuitePredictions::SuitePredictions(std::initializer_list<nlohmann::json> items) {
  for (const auto& item : items) push_back(item);
}

void SuitePredictions::push_back(const nlohmann::json& item) { lines_.push_back(line_of(item)); }

std::string SuitePredictions::lines(const nlohmann::json& identity) const {
  const auto first = line_of(identity);
  std::string all;
  for (const auto& line : lines_) {
    all.append(first, 0, first.size() - 1);  // without its brace
    all += ',';
    all.append(line, 1);
    all += '\n';
  }
  return all;
}

}  // namespace cloze

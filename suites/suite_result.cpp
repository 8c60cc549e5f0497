#include "suites/suite_result.h"

namespace cloze {

SuitePredictions::SuitePredictions(std::initializer_list<nlohmann::json> items) {
  for (const auto& item : items) push_back(item);
}

void SuitePredictions::push_back(const nlohmann::json& item) { lines_.push_back(json_text(item)); }

std::string SuitePredictions::lines(const nlohmann::json& identity) const {
  const auto first = json_text(identity);
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

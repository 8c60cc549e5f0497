#include "run/log_line.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace cloze {

using nlohmann::json;

double LogLine::loss() const {
  double all = 0;
  bool has_predictions = false;
  for (const auto& part : parts) {
    if (part.total == 0) continue;
    has_predictions = true;
    all += part.weight * part.loss();
  }
  return has_predictions ? all : std::numeric_limits<double>::quiet_NaN();
}

void LogLine::add(const std::vector<LossPart>& losses, double norm) {
  ++steps;
  grad_norms += norm;
  for (const auto& loss : losses) {
    const auto same = [&](const LinePart& part) { return part.name == loss.name; };
    auto part = std::find_if(parts.begin(), parts.end(), same);
    if (part == parts.end()) part = parts.insert(part, LinePart{.name = loss.name, .weight = loss.weight});
    part->sum += loss.sum.item<double>();
    part->total += loss.total_weight();
    part->count += loss.count;
    part->correct += loss.correct;
    if (!loss.binary) continue;
    if (!part->binary) part->binary.emplace();
    *part->binary += *loss.binary;
  }
}

json to_json(const LogLine& line) {
  json parts = json::array();
  for (const auto& part : line.parts) {
    parts.push_back({{"name", part.name},
                     {"weight", part.weight},
                     {"sum", part.sum},
                     {"count", part.count},
                     {"correct", part.correct}});
    if (part.total != static_cast<double>(part.count)) parts.back()["total"] = part.total;
    if (part.binary)
      parts.back()["yes_no"] = {{"yes", part.binary->positives},
                                {"answered", part.binary->predicted},
                                {"both", part.binary->true_positives},
                                {"detects", part.binary->detects}};
  }
  return {{"steps", line.steps}, {"grad_norms", line.grad_norms}, {"parts", parts}};
}

LogLine log_line_from(const json& saved) {
  LogLine line{.steps = saved.at("steps"), .grad_norms = saved.at("grad_norms")};
  for (const auto& part : saved.at("parts")) {
    line.parts.push_back({.name = part.at("name"),
                          .weight = part.at("weight"),
                          .sum = part.at("sum"),
                          .total = part.value("total", part.at("count").get<double>()),
                          .count = part.at("count"),
                          .correct = part.at("correct")});
    if (!part.contains("yes_no")) continue;
    const auto& answers = part.at("yes_no");
    line.parts.back().binary = BinaryCounts{.positives = answers.at("yes"),
                                            .predicted = answers.at("answered"),
                                            .true_positives = answers.at("both"),
                                            .detects = answers.value("detects", false)};
  }
  return line;
}

}  // namespace cloze

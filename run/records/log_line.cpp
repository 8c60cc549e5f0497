#include "run/records/log_line.h"

#include <algorithm>
#include <limits>

namespace cloze {

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
    part->correct += loss.correct();
    part->has_accuracy = loss.has_accuracy;
    const auto binary = loss.binary();
    if (!binary) continue;
    if (!part->binary) part->binary.emplace();
    *part->binary += *binary;
  }
}

}  // namespace cloze

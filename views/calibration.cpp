#include "views/calibration.h"

#include <algorithm>
#include <cmath>

namespace cloze {

Calibration calibration_of(const std::vector<SeenToken>& tokens, int64_t bins) {
  std::vector<CalibrationBin> all(static_cast<size_t>(bins));
  const auto width = 1 / static_cast<double>(bins);
  for (const auto& token : tokens) {
    const auto place = std::ceil(token.confidence * static_cast<double>(bins)) - 1;
    auto& bin = all[static_cast<size_t>(std::clamp<double>(place, 0, static_cast<double>(bins - 1)))];
    ++bin.count;
    bin.confidence += token.confidence;
    bin.accuracy += token.right;
  }
  Calibration found{.bins = {}, .count = static_cast<int64_t>(tokens.size())};
  for (size_t i = 0; i < all.size(); ++i) {
    auto& bin = all[i];
    if (bin.count == 0) continue;
    const auto count = static_cast<double>(bin.count);
    bin.low = static_cast<double>(i) * width;
    bin.high = bin.low + width;
    bin.confidence /= count;
    bin.accuracy /= count;
    found.error += count / static_cast<double>(tokens.size()) * std::abs(bin.accuracy - bin.confidence);
    found.bins.push_back(bin);
  }
  return found;
}

}  // namespace cloze

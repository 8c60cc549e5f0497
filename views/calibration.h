#pragma once
// Whether a run is as often right as it is confident.
#include <vector>

#include "views/predictions.h"

namespace cloze {

/// Predictions of about the same confidence.
struct CalibrationBin {
  double low = 0, high = 1;  ///< of the confidence
  int64_t count = 0;
  double confidence = 0;  ///< mean
  double accuracy = 0;
};

struct Calibration {
  std::vector<CalibrationBin> bins{};  ///< those with predictions
  double error = 0;                    ///< expected calibration error
  int64_t count = 0;
};

/// ECE = sum over bins of count / n |accuracy - confidence|, with `bins` bins of equal width over (0, 1]. Source: Guo
/// et al. 2017, section 2, equation 3 (arXiv 1706.04599).
Calibration calibration_of(const std::vector<SeenToken>& tokens, int64_t bins = 15);

}  // namespace cloze

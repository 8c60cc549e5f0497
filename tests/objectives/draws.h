#pragma once
// Statistics of random draws.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.h"
#include "tests/support/catch.h"

inline cloze::Stream stream_of(uint64_t item, const char* purpose = "noise") {
  return cloze::Rng(7).stream(purpose, 0, item);
}

/// Word-start flags: 0 (a continuation) with probability `fraction`.
inline std::vector<uint8_t> random_starts(size_t n, double fraction, cloze::Stream& stream) {
  std::vector<uint8_t> flags(n);
  for (auto& flag : flags) flag = !stream.bernoulli(fraction);
  return flags;
}

/// Chi-squared test that the counts are uniform: the statistic is at most five standard deviations above its mean.
template <class Map>
void check_uniform(const Map& counts, size_t cells, double draws) {
  REQUIRE(counts.size() == cells);
  double chi = 0;
  const double expected = draws / static_cast<double>(cells);
  for (const auto& [key, count] : counts) chi += (count - expected) * (count - expected) / expected;
  const double degrees = static_cast<double>(cells) - 1;
  CHECK(chi < degrees + 5 * std::sqrt(2 * degrees));
}

/// Mean of draws, with its standard error.
struct Mean {
  double sum = 0, squares = 0, n = 0;
  void add(double x) { sum += x, squares += x * x, ++n; }
  double mean() const { return sum / n; }
  double error() const { return std::sqrt(std::max(0.0, squares / n - mean() * mean()) / n); }
};

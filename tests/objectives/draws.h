#pragma once
// Many draws, and what is expected of them.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.h"
#include "tests/support/catch.h"

inline cloze::Stream stream_of(uint64_t item, const char* purpose = "noise") {
  return cloze::Rng(7).stream(purpose, 0, item);
}

/// Continuations with probability `share`; the ends are whatever they are.
inline std::vector<uint8_t> random_starts(size_t n, double share, cloze::Stream& stream) {
  std::vector<uint8_t> flags(n);
  for (auto& flag : flags) flag = !stream.bernoulli(share);
  return flags;
}

/// Counts, all expected alike: the statistic is below its mean by five standard deviations at most.
template <class Map>
void check_uniform(const Map& seen, size_t cells, double draws) {
  REQUIRE(seen.size() == cells);
  double chi = 0;
  const double expected = draws / static_cast<double>(cells);
  for (const auto& [key, count] : seen) chi += (count - expected) * (count - expected) / expected;
  const double degrees = static_cast<double>(cells) - 1;
  CHECK(chi < degrees + 5 * std::sqrt(2 * degrees));
}

/// Mean of draws and its standard error.
struct Mean {
  double sum = 0, squares = 0, n = 0;
  void add(double x) { sum += x, squares += x * x, ++n; }
  double mean() const { return sum / n; }
  double error() const { return std::sqrt(std::max(0.0, squares / n - mean() * mean()) / n); }
};

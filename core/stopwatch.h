#pragma once
// Wall-clock time, for ledgers and benchmarks.
#include <chrono>

namespace cloze {

using Clock = std::chrono::steady_clock;

/// Seconds since `start`.
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace cloze

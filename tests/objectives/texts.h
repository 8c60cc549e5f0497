#pragma once
// Texts of plain numbers, shared by the tests of noising.
#include <numeric>

#include "objectives/source_target.h"
#include "tests/objectives/draws.h"

using Ids = std::vector<int64_t>;
using Flags = std::vector<uint8_t>;

/// The n ids from `first` on.
inline Ids text(size_t n, int64_t first = 1000) {
  Ids ids(n);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// <s> (2), n ids from 1000 on, </s> (3).
inline Ids framed(size_t n) {
  Ids ids = text(n + 2, 999);
  ids.front() = 2, ids.back() = 3;
  return ids;
}

inline std::vector<bool> mask_of(const std::string& pattern) {
  std::vector<bool> mask;
  for (const char c : pattern) mask.push_back(c == 'T');
  return mask;
}

inline Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

inline constexpr cloze::NoiseIds kIds{
    .mask = 4, .vocabulary = 1000, .first_random = 5};  // the texts of these tests have ids from 1000 on

inline Ids sentinels(int64_t n) {
  Ids ids;
  for (int64_t k = 0; k < n; ++k) ids.push_back(-1 - k);
  return ids;
}

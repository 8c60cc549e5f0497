#pragma once
// Consecutive shares of a number of things.
#include <algorithm>
#include <cstdint>

namespace cloze {

/// Consecutive ones: [begin, end).
struct PartRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool contains(int64_t part) const { return begin <= part && part < end; }
  bool operator==(const PartRange&) const = default;
};

/// Those of `parts` that share number `rank` of `shares` has: as many as any other, or one more for the first.
inline PartRange parts_of(int64_t rank, int64_t shares, int64_t parts) {
  const int64_t each = parts / shares, more = parts % shares;
  const int64_t begin = rank * each + std::min(rank, more);
  return {begin, begin + each + (rank < more ? 1 : 0)};
}

}  // namespace cloze

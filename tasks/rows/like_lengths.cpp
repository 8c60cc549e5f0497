#include "tasks/rows/like_lengths.h"

#include <algorithm>
#include <limits>

namespace cloze {

std::vector<size_t> ends_of_batches(std::span<const RowsSize> sorted) {
  struct Division {
    int64_t cost = 0;   // of the cheapest batches up to here
    int64_t rows = 0;   // up to here
    size_t end = 0;     // in `sorted`
    size_t before = 0;  // the division that the last of these batches begins at
  };
  std::vector<Division> divisions(1);  // rows of one length are never divided
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    auto rows = divisions.back().rows;
    for (end = begin; end < sorted.size() && sorted[end].length == sorted[begin].length; ++end)
      rows += sorted[end].rows;
    Division next{.cost = std::numeric_limits<int64_t>::max(), .rows = rows, .end = end};
    for (size_t d = 0; d < divisions.size(); ++d) {
      const auto cost = divisions[d].cost + (rows - divisions[d].rows) * sorted[begin].length + pass_positions;
      if (cost < next.cost) next.cost = cost, next.before = d;
    }
    divisions.push_back(next);
  }
  std::vector<size_t> ends;
  for (size_t d = divisions.size() - 1; d > 0; d = divisions[d].before) ends.push_back(divisions[d].end);
  std::ranges::reverse(ends);
  return ends;
}

std::vector<size_t> ends_of_unpadded_batches(std::span<const RowsSize> sorted) {
  std::vector<size_t> ends;
  int64_t tokens = 0, rows = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto own = sorted[i].rows * sorted[i].length;
    const bool is_full =
        tokens + own > unpadded_tokens || (rows + sorted[i].rows) * sorted[i].length > 4 * unpadded_tokens;
    if (rows > 0 && is_full) {
      ends.push_back(i);
      tokens = rows = 0;
    }
    tokens += own;
    rows += sorted[i].rows;
  }
  if (!sorted.empty()) ends.push_back(sorted.size());
  return ends;
}

}  // namespace cloze

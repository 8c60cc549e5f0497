// Batches of rows of like length.
#include "tasks/rows/like_lengths.h"

#include <algorithm>

#include "core/random.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// What batches with these ends cost.
int64_t cost_of_batches(const std::vector<RowsSize>& sorted, const std::vector<size_t>& ends) {
  int64_t cost = 0;
  size_t begin = 0;
  for (const auto end : ends) {
    int64_t rows = 0;
    for (size_t i = begin; i < end; ++i) rows += sorted[i].rows;
    cost += rows * sorted[end - 1].length + pass_positions;
    begin = end;
  }
  return cost;
}

/// The least that any division costs, by trying all.
int64_t least_cost(const std::vector<RowsSize>& sorted) {
  int64_t least = INT64_MAX;
  for (uint32_t cuts = 0; cuts < (1u << (sorted.size() - 1)); ++cuts) {
    std::vector<size_t> ends;
    for (size_t i = 1; i < sorted.size(); ++i)
      if (cuts >> (i - 1) & 1) ends.push_back(i);
    ends.push_back(sorted.size());
    least = std::min(least, cost_of_batches(sorted, ends));
  }
  return least;
}

}  // namespace

TEST_CASE("batches of like length cost the least of all divisions", "[tasks]") {
  auto stream = Rng(4).stream("lengths");
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<RowsSize> sorted;
    for (int i = 0; i < 9; ++i)
      sorted.push_back(
          {.length = 3 + static_cast<int64_t>(stream.below(200)), .rows = 1 + static_cast<int64_t>(stream.below(4))});
    std::ranges::sort(sorted, {}, &RowsSize::length);
    const auto ends = ends_of_batches(sorted);
    CHECK(ends.back() == sorted.size());
    CHECK(cost_of_batches(sorted, ends) == least_cost(sorted));
  }
}

TEST_CASE("a long row stands alone, and short ones, whose padding costs less than a pass, together", "[tasks]") {
  const std::vector<RowsSize> sorted{{10}, {11}, {12}, {12}, {400}};
  CHECK((ends_of_batches(sorted) == std::vector<size_t>{4, 5}));
  CHECK(ends_of_batches({}).empty());
}

TEST_CASE("batches without padding have as many rows as their tokens allow, and one at least", "[tasks]") {
  CHECK(ends_of_unpadded_batches({}).empty());
  const std::vector<RowsSize> rows{{.length = 9}, {.length = 700, .rows = 3}, {.length = 1987}, {.length = 5000}};
  CHECK(ends_of_unpadded_batches(rows) == std::vector<size_t>{3, 4});
  CHECK(ends_of_unpadded_batches(std::vector<RowsSize>(9, {.length = 1024})) == std::vector<size_t>{4, 8, 9});
  std::vector<RowsSize> one_is_long(255, {.length = 8});
  one_is_long.push_back({.length = 512});  // 131,072 positions with padding
  CHECK(ends_of_unpadded_batches(one_is_long) == std::vector<size_t>{255, 256});
}

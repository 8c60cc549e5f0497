#include "data/sampling/step_batches.h"

#include <algorithm>
#include <numeric>

#include "core/random.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

std::vector<uint64_t> flat(const std::vector<std::vector<uint64_t>>& batches) {
  std::vector<uint64_t> rows;
  for (const auto& batch : batches) rows.insert(rows.end(), batch.begin(), batch.end());
  return rows;
}

}  // namespace

TEST_CASE("every row of a step is dealt to one batch, also where an epoch ends within the step") {
  for (const uint64_t parts : {1, 2, 3, 8})
    for (const uint64_t rows : {64, 63, 20, 1}) {
      const auto batches = dealt_by_length(rows, {.batch_size = 8, .count = 8, .parts = parts}, 7);
      REQUIRE(batches.size() == 8);
      for (const auto& batch : batches) CHECK(batch.size() <= 8);
      auto all = flat(batches);
      std::ranges::sort(all);
      std::vector<uint64_t> expected(rows);
      std::iota(expected.begin(), expected.end(), uint64_t{0});
      CHECK(all == expected);
    }
}

TEST_CASE("a batch has rows of like length: of a step of one part those that follow each other, of others each k-th") {
  for (const auto& batch : dealt_by_length(64, {.batch_size = 8, .count = 8, .parts = 1}, 7))
    for (size_t i = 1; i < batch.size(); ++i) CHECK(batch[i] == batch[0] + i);
  for (const auto& batch : dealt_by_length(64, {.batch_size = 8, .count = 8, .parts = 2}, 7))
    CHECK(batch.back() - batch.front() <= 16);
}

TEST_CASE("parts have nearly as many tokens as one another") {
  auto stream = Rng(3).stream("lengths");
  std::vector<uint64_t> lengths;
  for (int i = 0; i < 256; ++i) lengths.push_back(i % 3 == 0 ? 128 : 4 + stream.below(124));
  std::ranges::sort(lengths);
  for (const uint64_t parts : {2, 4, 8}) {
    const auto batches = dealt_by_length(256, {.batch_size = 32, .count = 8, .parts = parts}, 7);
    std::vector<double> tokens(parts, 0);
    for (size_t batch = 0; batch < batches.size(); ++batch)
      for (const auto row : batches[batch]) tokens[batch * parts / 8] += static_cast<double>(lengths[row]);
    const double mean = std::accumulate(tokens.begin(), tokens.end(), 0.0) / static_cast<double>(parts);
    CHECK(mean / *std::ranges::max_element(tokens) > 0.95);
  }
}

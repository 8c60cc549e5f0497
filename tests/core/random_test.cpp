#include "core/random.h"

#include <set>
#include <vector>

#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("Philox4x32-10 gives the published blocks", "[core][random]") {
  // Known answers of Random123 (Salmon et al. 2011), kat_vectors.
  CHECK(philox({0, 0, 0, 0}, 0) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, ~uint64_t{0}) ==
        std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("a stream is a function of seed, purpose, epoch and item alone", "[core][random]") {
  const auto first = [](uint64_t seed, const char* purpose, uint64_t epoch, uint64_t item) {
    return Rng(seed).stream(purpose, epoch, item).bits64();
  };
  CHECK(first(1, "mask", 2, 3) == first(1, "mask", 2, 3));
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (const char* purpose : {"mask", "order"})
      for (uint64_t epoch = 0; epoch < 10; ++epoch)
        for (uint64_t item = 0; item < 10; ++item) seen.insert(first(seed, purpose, epoch, item));
  CHECK(seen.size() == 2000);  // no stream is a shifted copy of another
}

TEST_CASE("integers below n are drawn uniformly", "[core][random]") {
  auto stream = Rng(5).stream("test");
  for (const uint64_t n : {3u, 7u, 100u}) {
    std::vector<int> counts(n);
    const int draws = 100000;
    for (int i = 0; i < draws; ++i) ++counts[stream.below(n)];
    double chi = 0;
    for (const int c : counts) chi += (c - draws / double(n)) * (c - draws / double(n)) / (draws / double(n));
    CHECK(chi < double(n) + 4.5 * std::sqrt(2.0 * double(n)) + 5);
  }
}

TEST_CASE("normal draws have mean 0 and standard deviation 1", "[core][random]") {
  auto stream = Rng(5).stream("normal");
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double z = stream.normal();
    sum += z, squares += z * z;
  }
  CHECK(std::abs(sum / 100000) < 0.015);
  CHECK(std::abs(squares / 100000 - 1) < 0.02);
}

TEST_CASE("a keyed permutation visits every index once, in an order of its key", "[core][random]") {
  for (uint64_t n = 1; n <= 300; ++n) {
    const Permutation p(n, n * 77);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) {
      const auto at = p(i);
      REQUIRE(at < n);
      seen.insert(at);
    }
    REQUIRE(seen.size() == n);
  }
  const Permutation a(1000, 1), b(1000, 2);
  int equal = 0;
  for (uint64_t i = 0; i < 1000; ++i) equal += a(i) == b(i);
  CHECK(equal < 10);
  const Permutation large(uint64_t{1} << 40, 3);
  CHECK(large(12345) < (uint64_t{1} << 40));
}

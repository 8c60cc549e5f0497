// The merge loop of BPE against the plain one of the paper.
#include "data/tokenizers/bpe_join.h"

#include <ctime>
#include <random>

#include "tests/support/catch.h"

using namespace cloze;

namespace {

std::vector<BpeSymbol> symbols_of(const std::vector<int32_t>& word) {
  std::vector<BpeSymbol> symbols;
  for (size_t i = 0; i < word.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    symbols.push_back({.id = word[i],
                       .begin = static_cast<uint32_t>(i),
                       .end = static_cast<uint32_t>(i + 1),
                       .before = at - 1,
                       .after = i + 1 < word.size() ? at + 1 : -1});
  }
  return symbols;
}

std::vector<int32_t> joined(const BpeMerges& merges, const std::vector<int32_t>& word) {
  auto symbols = symbols_of(word);
  join_pairs(merges, symbols);
  std::vector<int32_t> ids;
  for (const auto& symbol : symbols)
    if (!symbol.joined) ids.push_back(symbol.id);
  return ids;
}

/// Searches the pair of the lowest rank, leftmost first, anew for each merge.
std::vector<int32_t> joined_plainly(const BpeMerges& merges, std::vector<int32_t> ids) {
  for (;;) {
    auto best = merges.end();
    size_t where = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = merges.find(bpe_pair(ids[i], ids[i + 1]));
      if (found == merges.end() || (best != merges.end() && found->second.rank >= best->second.rank)) continue;
      best = found;
      where = i;
    }
    if (best == merges.end()) return ids;
    ids[where] = best->second.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

/// `count` merges of random pairs of the ids so far, each to a new id; the first `letters` ids are letters.
BpeMerges random_merges(std::mt19937& random, int32_t letters, int32_t count) {
  BpeMerges merges;
  for (int32_t rank = 0; rank < count; ++rank) {
    const auto known = static_cast<uint32_t>(letters + rank);
    const auto left = static_cast<int32_t>(random() % known), right = static_cast<int32_t>(random() % known);
    merges.emplace(bpe_pair(left, right), BpeMerge{rank, letters + rank});
  }
  return merges;
}

}  // namespace

TEST_CASE("pairs are joined as by the plain loop", "[data][tokenizer]") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 400; ++trial) {
    const auto letters = static_cast<int32_t>(1 + random() % 4);
    const auto merges = random_merges(random, letters, static_cast<int32_t>(random() % 40));
    std::vector<int32_t> word(random() % 60);
    for (auto& letter : word) letter = static_cast<int32_t>(random() % static_cast<uint32_t>(letters));
    INFO("trial " << trial);
    REQUIRE(joined(merges, word) == joined_plainly(merges, word));
  }
}

TEST_CASE("a word of a million letters is joined in seconds", "[data][tokenizer]") {
  BpeMerges merges;
  for (int32_t rank = 0; rank < 12; ++rank) merges.emplace(bpe_pair(rank, rank), BpeMerge{rank, rank + 1});
  const std::clock_t start = std::clock();
  const auto ids = joined(merges, std::vector<int32_t>(1 << 20, 0));
  CHECK(ids == std::vector<int32_t>(1 << 8, 12));
  CHECK(std::clock() - start < 30 * CLOCKS_PER_SEC);
}

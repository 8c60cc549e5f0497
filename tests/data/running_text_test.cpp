#include "data/sampling/running_text.h"

#include <map>
#include <set>

#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// Ids of a running text, and a number for each of its sentences, separators among them, by going through all tokens.
struct Slow {
  std::vector<int64_t> ids, sentence;
};

Slow slow_text(const TokenStore& store, int64_t separator) {
  Slow all;
  std::vector<int64_t> ids(store.num_tokens());
  store.read(0, store.num_tokens(), ids.data());
  int64_t number = 0;
  for (uint64_t d = 0; d < store.num_documents(); ++d) {
    if (d > 0) all.ids.push_back(separator), all.sentence.push_back(++number);
    for (uint64_t s = store.first_sentence(d); s < store.first_sentence(d + 1); ++s) {
      ++number;
      for (uint64_t t = store.first_token(s); t < store.first_token(s + 1); ++t)
        all.ids.push_back(ids[t]), all.sentence.push_back(number);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a running text is the documents with separators between them, and reversed if read backwards",
          "[data][running]") {
  TempDir dir;
  const auto store = tiny_store(dir, 12);
  auto slow = slow_text(store, 99);
  auto stream = Rng(4).stream("places");
  for (const bool backward : {false, true}) {
    if (backward)
      std::reverse(slow.ids.begin(), slow.ids.end()), std::reverse(slow.sentence.begin(), slow.sentence.end());
    const RunningText text(store, 99, backward);
    REQUIRE(text.size() == slow.ids.size());
    for (int i = 0; i < 400; ++i) {
      const uint64_t first = i == 0 ? 0 : stream.below(text.size()),
                     count = i == 0 ? text.size() : stream.below(std::min<uint64_t>(60, text.size() - first) + 1);
      std::vector<int64_t> got(count);
      text.read(first, count, got.data());
      REQUIRE(got == std::vector<int64_t>(slow.ids.begin() + static_cast<std::ptrdiff_t>(first),
                                          slow.ids.begin() + static_cast<std::ptrdiff_t>(first + count)));
    }
    for (uint64_t position = 0; position < text.size(); ++position) {
      const auto same = [&](uint64_t other) { return slow.sentence[other] == slow.sentence[position]; };
      uint64_t first = position, end = position + 1;
      while (first > 0 && same(first - 1)) --first;
      while (end < text.size() && same(end)) ++end;
      const auto got = text.sentence(position);
      REQUIRE(got.first == first);
      REQUIRE(got.count == end - first);
    }
  }
}

TEST_CASE("every row of a step reads a part of its own, chunk by chunk, and an epoch restarts all parts",
          "[data][running]") {
  for (const bool bidirectional : {false, true})
    for (const uint64_t accumulation : {1, 3}) {
      const RunningOrder order{
          .chunks = 101, .batch_size = 4, .accumulation = accumulation, .bidirectional = bidirectional};
      const uint64_t rows = 4 * accumulation;
      INFO(bidirectional << " " << accumulation);
      CHECK(order.size() == order.steps() * rows);
      CHECK((order.steps() + 1) * order.parts() > 101);   // little is left over
      std::map<std::pair<uint64_t, uint64_t>, int> seen;  // epoch, chunk
      for (uint64_t i = 0; i < 3 * order.size(); ++i) {
        const auto now = order.at(i), next = order.at(i + rows);
        ++seen[{now.epoch, now.chunk}];
        CHECK(now.chunk < 101);
        CHECK(now.epoch == i / order.size());
        CHECK(now.continues == (i % order.size() >= rows));
        if (next.continues)
          CHECK((next.epoch == now.epoch && next.chunk == now.chunk + 1));
        else
          CHECK((next.epoch == now.epoch + 1 && next.chunk == order.at(i % rows).chunk));
        if (bidirectional && i % 4 < 2) CHECK(order.at(i + 2).chunk == now.chunk);  // the second half of the same batch
      }
      CHECK(seen.size() == 3 * order.parts() * order.steps());
      for (const auto& [chunk, times] : seen) CHECK(times == (bidirectional ? 2 : 1));
    }
  CHECK(RunningOrder{.chunks = 3, .batch_size = 4}.steps() == 0);
}

TEST_CASE("without steps an epoch has every chunk once, in a different order each time", "[data][running]") {
  const RunningOrder order{.chunks = 37, .shuffle_key = 5};
  CHECK(order.size() == 37);
  std::vector<uint64_t> read[2];
  for (uint64_t i = 0; i < 74; ++i) {
    const auto location = order.at(i);
    CHECK(location.epoch == i / 37);
    CHECK_FALSE(location.continues);
    read[location.epoch].push_back(location.chunk);
  }
  for (const auto& chunks : read) CHECK(std::set<uint64_t>(chunks.begin(), chunks.end()).size() == 37);
  CHECK(read[0] != read[1]);
  CHECK_FALSE(std::is_sorted(read[0].begin(), read[0].end()));
}

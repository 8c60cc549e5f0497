// T5 and its ablations.
#include "objectives/span_corruption/noise.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "tests/objectives/texts.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("random spans have the number of spans and noise tokens of the rule, kept tokens first and noise last",
          "[noising]") {
  for (const auto& [length, noise, spans] :
       {std::tuple{2, 1, 1}, {3, 1, 1}, {30, 4, 1}, {50, 8, 3}, {70, 10, 3}, {568, 85, 28}}) {
    for (uint64_t item = 0; item < 200; ++item) {
      auto stream = stream_of(item);
      const auto mask = random_spans(length, 0.15, 3, stream);
      REQUIRE(mask.size() == static_cast<size_t>(length));
      int runs = 0;
      for (size_t i = 0; i < mask.size(); ++i) runs += mask[i] && (i == 0 || !mask[i - 1]);
      REQUIRE(std::count(mask.begin(), mask.end(), true) == noise);
      REQUIRE(runs == spans);
      REQUIRE(!mask.front());
      REQUIRE(mask.back());
    }
  }
}

TEST_CASE("all partitions of a text into spans are equally likely", "[noising]") {
  // 7 kept and 5 noise tokens in 3 runs each: C(6, 2) * C(4, 2) = 90 masks.
  std::map<std::vector<bool>, int> seen;
  auto stream = stream_of(0);
  for (int i = 0; i < 90000; ++i) ++seen[random_spans(12, 0.4, 5.0 / 3, stream)];
  check_uniform(seen, 90, 90000);
}

TEST_CASE("texts of no token and of one token have no noise, and spans never exceed the tokens of either kind",
          "[noising]") {
  auto stream = stream_of(0);
  CHECK(random_spans(0, 0.15, 3, stream).empty());
  CHECK(random_spans(1, 0.15, 3, stream) == mask_of("F"));
  CHECK(random_spans(2, 0.9, 1, stream) == mask_of("FT"));
  const auto dense = random_spans(10, 0.9, 1, stream);  // 9 noise spans need 9 kept tokens, there is one
  CHECK(dense == mask_of("FTTTTTTTTT"));
  CHECK(std::count(dense.begin(), dense.end(), true) == 9);
}

TEST_CASE("lengths of text and target match the published table", "[noising]") {
  struct Row {
    int64_t inputs;
    double density, mean;
    int64_t raw, targets;
  };
  for (const auto& r : {Row{512, .15, 3, 568, 114},
                        {512, .15, 2, 552, 126},
                        {512, .15, 5, 581, 105},
                        {512, .15, 10, 591, 99},
                        {512, .10, 3, 548, 74},
                        {512, .25, 3, 614, 206},
                        {512, .50, 3, 766, 512},
                        {256, .15, 3, 284, 58},
                        {1024, .15, 3, 1137, 229},
                        {2048, .15, 3, 2274, 456},
                        {128, .15, 3, 141, 29}}) {
    CHECK(raw_length(r.inputs, r.density, r.mean) == r.raw);
    CHECK(targets_length(r.inputs, r.density, r.mean) == r.targets);
  }
  CHECK(raw_length(1, 0.15, 3) == 0);
  CHECK_THROWS_AS(raw_length(512, 1, 1e9), ConfigError);
  CHECK_THROWS_AS(raw_length(512, 0.15, 0), ConfigError);
}

TEST_CASE("source and target of a text of raw_length fit for every noise density", "[noising]") {
  for (const double density : {0.01, 0.15, 0.3, 0.6})
    for (const double mean : {1.0, 3.0, 10.0})
      for (int64_t inputs = 4; inputs < 70; ++inputs) {
        auto stream = stream_of(static_cast<uint64_t>(inputs));
        const auto n = raw_length(inputs, density, mean);
        const auto out =
            span_corruption(text(static_cast<size_t>(n)), random_spans(n, density, mean, stream), sentinels(100), 1);
        REQUIRE(static_cast<int64_t>(out.source.size()) <= inputs);
        REQUIRE(static_cast<int64_t>(out.target.size()) == targets_length(inputs, density, mean));
      }
}

TEST_CASE("noise runs without a sentinel are kept", "[noising]") {
  for (uint64_t item = 0; item < 400; ++item) {
    auto stream = stream_of(item);
    const auto drawn = iid_mask(60, 0.5, stream);
    auto noise = drawn;
    const size_t max_runs = 1 + item % 20;
    limit_runs(noise, max_runs);
    REQUIRE_NOTHROW(span_corruption(text(60), noise, sentinels(static_cast<int64_t>(max_runs)), 1));
    // The beginning is unchanged, the rest is kept.
    const auto last = static_cast<size_t>(std::find(noise.rbegin(), noise.rend(), true).base() - noise.begin());
    REQUIRE(std::equal(drawn.begin(), drawn.begin() + static_cast<int64_t>(last), noise.begin()));
    auto same = drawn;
    limit_runs(same, 31);
    REQUIRE(same == drawn);
  }
}

TEST_CASE("a text of raw_length fills source and target exactly", "[noising]") {
  for (const int64_t inputs : {32, 128, 512, 1024}) {
    auto stream = stream_of(static_cast<uint64_t>(inputs));
    const auto n = raw_length(inputs, 0.15, 3);
    const auto out = span_corruption(text(static_cast<size_t>(n)), random_spans(n, 0.15, 3, stream), sentinels(100), 1);
    CHECK(static_cast<int64_t>(out.source.size()) == inputs);
    CHECK(static_cast<int64_t>(out.target.size()) == targets_length(inputs, 0.15, 3));
  }
}

TEST_CASE("noise runs become sentinels in the source, kept runs in the target", "[noising]") {
  const Ids s{32099, 32098, 32097, 32096};
  const auto out = span_corruption(Ids{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, mask_of("FFTTFFFTFT"), s, 1);
  CHECK(out.source == Ids{10, 11, 32099, 14, 15, 16, 32098, 18, 32097, 1});
  CHECK(out.target == Ids{32099, 12, 13, 32098, 17, 32097, 19, 1});
  // Noise in front: the target begins with it, and its sentinels lag by one.
  const auto front = span_corruption(Ids{10, 11, 12, 13}, mask_of("TFFT"), s, 1);
  CHECK(front.source == Ids{32099, 11, 12, 32098, 1});
  CHECK(front.target == Ids{10, 32099, 13, 1});
  const auto none = span_corruption(Ids{10}, mask_of("F"), s, 1);
  CHECK(none.source == Ids{10, 1});
  CHECK(none.target == Ids{32099, 1});
  const auto empty = span_corruption(Ids{}, {}, s, 1);
  CHECK(empty.source == Ids{1});
  CHECK(empty.target == Ids{1});
}

TEST_CASE("source and target together give the text, for random spans and for single tokens", "[noising]") {
  const auto s = sentinels(200);
  for (uint64_t item = 0; item < 2000; ++item) {
    auto stream = stream_of(item);
    const auto n = stream.below(200);
    const auto tokens = text(n);
    const auto noise = item % 2 ? random_spans(static_cast<int64_t>(n), 0.3, 2, stream)
                                : iid_mask(static_cast<int64_t>(n), 0.3, stream);
    const auto out = span_corruption(tokens, noise, s, 1);
    // Sentinels (negative) replace the runs of the other side, in order.
    Ids joined;
    size_t a = 0, b = 0;
    for (bool from_source = n == 0 || !noise[0]; joined.size() < n; from_source = !from_source) {
      const auto& side = from_source ? out.source : out.target;
      auto& at = from_source ? a : b;
      if (at < side.size() && side[at] < 0) ++at;
      while (side[at] >= 1000) joined.push_back(side[at++]);
    }
    REQUIRE(joined == tokens);
    REQUIRE(out.source.back() == 1);
    REQUIRE(out.target.back() == 1);
    for (const auto* side : {&out.source, &out.target}) {
      int64_t next = -1;
      for (const auto id : *side)
        if (id < 0) REQUIRE(id == next--);
    }
  }
}

TEST_CASE("more spans than sentinels are rejected with advice", "[noising]") {
  const auto tokens = text(9);
  const auto noise = mask_of("FTFTFTFTF");
  CHECK_THROWS_WITH(span_corruption(tokens, noise, sentinels(3), 1), Catch::Contains("5 spans between noise") &&
                                                                         Catch::Contains("3 sentinels") &&
                                                                         Catch::Contains("add sentinels"));
  CHECK_THROWS_WITH(span_corruption(tokens, mask_of("TFTFTFTFT"), sentinels(4), 1), Catch::Contains("5 noise spans"));
  CHECK_THROWS_AS(span_corruption(tokens, noise, sentinels(4), 1), DataError);
  CHECK_NOTHROW(span_corruption(tokens, noise, sentinels(5), 1));
  CHECK_THROWS_AS(span_corruption(tokens, mask_of("F"), sentinels(5), 1), ShapeError);
}

TEST_CASE("iid_mask has the given density", "[noising]") {
  auto stream = stream_of(0);
  const auto mask = iid_mask(400000, 0.15, stream);
  CHECK(std::abs(static_cast<double>(std::count(mask.begin(), mask.end(), true)) - 60000) <
        4.5 * std::sqrt(400000 * 0.15 * 0.85));
}

TEST_CASE("drop_tokens and mass give their sources and targets", "[noising]") {
  const Ids tokens{10, 11, 12, 13};
  const auto noise = mask_of("FTTF");
  const auto dropped = drop_tokens(tokens, noise, 1);
  CHECK(dropped.source == Ids{10, 13, 1});
  CHECK(dropped.target == Ids{11, 12, 1});
  const auto masked = mass(tokens, noise, kIds, 1);
  CHECK(masked.source == Ids{10, 4, 4, 13, 1});
  CHECK(masked.target == Ids{10, 11, 12, 13, 1});
}

TEST_CASE("a tenth of BERT-style noise is random ids from first_random on, the rest masks", "[noising]") {
  auto stream = stream_of(0);
  const auto tokens = text(200000);
  const auto noise = iid_mask(200000, 0.5, stream);
  const NoiseIds ids{.mask = 999, .vocabulary = 10, .first_random = 3};
  const auto out = bert_style(tokens, noise, 0.1, ids, 1, stream);
  double random = 0, all = 0;
  std::map<int64_t, int> seen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!noise[i]) {
      REQUIRE(out.source[i] == tokens[i]);
      continue;
    }
    ++all;
    if (out.source[i] == 999) continue;
    ++random, ++seen[out.source[i]];
  }
  CHECK(std::abs(random - 0.1 * all) < 4.5 * std::sqrt(all * 0.09));
  CHECK(seen.begin()->first == 3);
  check_uniform(seen, 7, random);
  CHECK(Ids(out.target.begin(), out.target.end() - 1) == tokens);
}

TEST_CASE("deshuffling gives every order equally often and loses no token", "[noising]") {
  std::map<Ids, int> seen;
  auto stream = stream_of(0);
  for (int i = 0; i < 24000; ++i) {
    const auto out = deshuffle(Ids{5, 6, 7, 8}, 1, stream);
    REQUIRE(out.target == Ids{5, 6, 7, 8, 1});
    REQUIRE(out.source.back() == 1);
    ++seen[out.source];
  }
  check_uniform(seen, 24, 24000);
}

TEST_CASE("the length of a prefix is uniform from one to all but one token", "[noising]") {
  std::map<size_t, int> seen;
  auto stream = stream_of(0);
  for (int i = 0; i < 9000; ++i) {
    auto out = prefix_lm(text(10), 1, stream);
    ++seen[out.source.size() - 1];
    out.source.pop_back();
    out.source.insert(out.source.end(), out.target.begin(), out.target.end() - 1);
    REQUIRE(out.source == text(10));
    REQUIRE(out.target.back() == 1);
  }
  CHECK(seen.begin()->first == 1);
  CHECK(seen.rbegin()->first == 9);
  check_uniform(seen, 9, 9000);
  const auto one = prefix_lm(Ids{10}, 1, stream);
  CHECK(one.source == Ids{1});
  CHECK(one.target == Ids{10, 1});
}

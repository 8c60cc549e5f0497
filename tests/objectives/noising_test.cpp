#include "objectives/noising.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/error.h"
#include "tests/objectives/draws.h"
#include "tests/support/catch.h"

using namespace cloze;
using Ids = std::vector<int64_t>;
using Flags = std::vector<uint8_t>;

namespace {

/// n ids from `first` on.
Ids text(size_t n, int64_t first = 1000) {
  Ids ids(n);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// <s> (2), n ids from 1000 on, </s> (3).
Ids framed(size_t n) {
  Ids ids = text(n + 2, 999);
  ids.front() = 2, ids.back() = 3;
  return ids;
}

std::vector<bool> mask_of(const std::string& pattern) {
  std::vector<bool> mask;
  for (const char c : pattern) mask.push_back(c == 'T');
  return mask;
}

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

constexpr NoiseIds kIds{.mask = 4, .vocabulary = 1000, .first_random = 5};   // no text of these tests has ids under 1000

Ids sentinels(int64_t n) {
  Ids ids;
  for (int64_t k = 0; k < n; ++k) ids.push_back(-1 - k);
  return ids;
}

}  // namespace

// ---- T5

TEST_CASE("random spans are as many and as long as the rule says, kept tokens first and noise last", "[noising]") {
  for (const auto& [length, noise, spans] : {std::tuple{2, 1, 1}, {3, 1, 1}, {30, 4, 1}, {50, 8, 3}, {70, 10, 3}, {568, 85, 28}}) {
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

TEST_CASE("all ways to cut a text into spans are equally likely", "[noising]") {
  // 7 kept and 5 noise tokens in 3 runs each: C(6, 2) * C(4, 2) = 90 masks.
  std::map<std::vector<bool>, int> seen;
  auto stream = stream_of(0);
  for (int i = 0; i < 90000; ++i) ++seen[random_spans(12, 0.4, 5.0 / 3, stream)];
  check_uniform(seen, 90, 90000);
}

TEST_CASE("texts of no and of one token have no noise, and there are never more spans than tokens to part them", "[noising]") {
  auto stream = stream_of(0);
  CHECK(random_spans(0, 0.15, 3, stream).empty());
  CHECK(random_spans(1, 0.15, 3, stream) == mask_of("F"));
  CHECK(random_spans(2, 0.9, 1, stream) == mask_of("FT"));
  const auto dense = random_spans(10, 0.9, 1, stream);   // 9 spans of noise do not fit between one kept token
  CHECK(dense == mask_of("FTTTTTTTTT"));
  CHECK(std::count(dense.begin(), dense.end(), true) == 9);
}

TEST_CASE("the lengths of a text and of its target are those of the published table", "[noising]") {
  struct Row { int64_t inputs; double density, mean; int64_t raw, targets; };
  for (const auto& r : {Row{512, .15, 3, 568, 114}, {512, .15, 2, 552, 126}, {512, .15, 5, 581, 105}, {512, .15, 10, 591, 99}, {512, .10, 3, 548, 74},
                        {512, .25, 3, 614, 206}, {512, .50, 3, 766, 512}, {256, .15, 3, 284, 58}, {1024, .15, 3, 1137, 229}, {2048, .15, 3, 2274, 456},
                        {128, .15, 3, 141, 29}}) {
    CHECK(raw_length(r.inputs, r.density, r.mean) == r.raw);
    CHECK(targets_length(r.inputs, r.density, r.mean) == r.targets);
  }
  CHECK(raw_length(1, 0.15, 3) == 0);
  CHECK_THROWS_AS(raw_length(512, 1, 1e9), ConfigError);
  CHECK_THROWS_AS(raw_length(512, 0.15, 0), ConfigError);
}

TEST_CASE("a text of the raw length fills its source and its target exactly", "[noising]") {
  for (const int64_t inputs : {32, 128, 512, 1024}) {
    auto stream = stream_of(static_cast<uint64_t>(inputs));
    const auto n = raw_length(inputs, 0.15, 3);
    const auto out = span_corruption(text(static_cast<size_t>(n)), random_spans(n, 0.15, 3, stream), sentinels(100), 1);
    CHECK(static_cast<int64_t>(out.source.size()) == inputs);
    CHECK(static_cast<int64_t>(out.target.size()) == targets_length(inputs, 0.15, 3));
  }
}

TEST_CASE("noise runs become sentinels in the source and kept runs in the target", "[noising]") {
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

TEST_CASE("source and target together are the text, for random spans and for single tokens", "[noising]") {
  const auto s = sentinels(200);
  for (uint64_t item = 0; item < 2000; ++item) {
    auto stream = stream_of(item);
    const auto n = stream.below(200);
    const auto tokens = text(n);
    const auto noise = item % 2 ? random_spans(static_cast<int64_t>(n), 0.3, 2, stream) : iid_mask(static_cast<int64_t>(n), 0.3, stream);
    const auto out = span_corruption(tokens, noise, s, 1);
    // Sentinels (negative) stand for the other side's runs, in order: take them in turn.
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

TEST_CASE("more spans than sentinels are refused with what to do about it", "[noising]") {
  const auto tokens = text(9);
  const auto noise = mask_of("FTFTFTFTF");
  CHECK_THROWS_WITH(span_corruption(tokens, noise, sentinels(3), 1),
                    Catch::Contains("5 spans between noise") && Catch::Contains("3 sentinels") && Catch::Contains("add sentinels"));
  CHECK_THROWS_WITH(span_corruption(tokens, mask_of("TFTFTFTFT"), sentinels(4), 1), Catch::Contains("5 noise spans"));
  CHECK_THROWS_AS(span_corruption(tokens, noise, sentinels(4), 1), DataError);
  CHECK_NOTHROW(span_corruption(tokens, noise, sentinels(5), 1));
  CHECK_THROWS_AS(span_corruption(tokens, mask_of("F"), sentinels(5), 1), ShapeError);
}

TEST_CASE("single tokens are noise as often as the density says", "[noising]") {
  auto stream = stream_of(0);
  const auto mask = iid_mask(400000, 0.15, stream);
  CHECK(std::abs(static_cast<double>(std::count(mask.begin(), mask.end(), true)) - 60000) < 4.5 * std::sqrt(400000 * 0.15 * 0.85));
}

TEST_CASE("the other T5 objectives give their sources and targets", "[noising]") {
  const Ids tokens{10, 11, 12, 13};
  const auto noise = mask_of("FTTF");
  const auto dropped = drop_tokens(tokens, noise, 1);
  CHECK(dropped.source == Ids{10, 13, 1});
  CHECK(dropped.target == Ids{11, 12, 1});
  const auto masked = mass(tokens, noise, kIds, 1);
  CHECK(masked.source == Ids{10, 4, 4, 13, 1});
  CHECK(masked.target == Ids{10, 11, 12, 13, 1});
}

TEST_CASE("a tenth of BERT-style noise is random ids from the given one on, the rest sentinels", "[noising]") {
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

TEST_CASE("deshuffling gives every order equally often and loses nothing", "[noising]") {
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

TEST_CASE("a prefix has every length from one to all but one token", "[noising]") {
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

// ---- BART

TEST_CASE("sentences change places whole, in every order, and carry their word starts", "[noising]") {
  const Ids before{2, 10, 20, 21, 30, 31, 32, 40, 3};
  const Flags starts{1, 1, 1, 0, 1, 0, 0, 0, 1};   // zero where an id does not end in 0, and for 40
  std::map<Ids, int> seen;
  auto stream = stream_of(0);
  for (int i = 0; i < 6000; ++i) {
    auto tokens = before;
    auto flags = starts;
    permute_sentences(tokens, flags, Ids{1, 2, 3}, 1, stream);
    REQUIRE(tokens.front() == 2);
    REQUIRE(tokens.back() == 3);
    REQUIRE(tokens[7] == 40);   // behind the last sentence
    for (size_t k = 1; k < 7; ++k) {
      REQUIRE(flags[k] == (tokens[k] % 10 == 0));
      if (tokens[k] % 10) REQUIRE(tokens[k] == tokens[k - 1] + 1);
    }
    REQUIRE(sorted(tokens) == sorted(before));
    ++seen[tokens];
  }
  check_uniform(seen, 6, 6000);
}

TEST_CASE("only the given share of the sentences changes places, and every set of them as often", "[noising]") {
  auto stream = stream_of(0);
  std::map<Ids, int> seen;
  int still = 0;
  for (int i = 0; i < 12000; ++i) {
    auto tokens = framed(5);
    Flags flags(7, 1);
    permute_sentences(tokens, flags, Ids{1, 1, 1, 1, 1}, 0.3, stream);   // ceil(1.5) = 2 of 5
    int moved = 0;
    for (size_t k = 1; k < 6; ++k) moved += tokens[k] != static_cast<int64_t>(999 + k);
    REQUIRE((moved == 0 || moved == 2));
    if (moved) ++seen[tokens];
    else ++still;
  }
  CHECK(std::abs(still - 6000.0) < 4.5 * std::sqrt(3000.0));
  check_uniform(seen, 10, 12000.0 - still);
  auto tokens = framed(5);
  Flags flags(7, 1);
  CHECK_THROWS_AS(permute_sentences(tokens, flags, Ids{3, 3}, 1, stream), DataError);
  permute_sentences(tokens, flags, Ids{5}, 1, stream);
  permute_sentences(tokens, flags, Ids{}, 1, stream);
  CHECK(tokens == framed(5));
}

namespace {

struct Outcome {
  Mean hidden, masks, length, random;
};

/// 512 tokens, a quarter of them continuations, through infilling alone.
Outcome infill(const BartNoise& rules, int draws = 3000) {
  Outcome out;
  for (int i = 0; i < draws; ++i) {
    auto stream = stream_of(static_cast<uint64_t>(i), "infill");
    auto tokens = framed(510);
    const auto starts = random_starts(512, 0.25, stream);
    text_infilling(tokens, starts, rules, kIds, stream);
    REQUIRE(tokens.front() == 2);
    REQUIRE(tokens.back() == 3);
    int64_t last = 999, kept = 0, random = 0;
    for (size_t k = 1; k + 1 < tokens.size(); ++k) {
      if (tokens[k] >= 1000) {
        REQUIRE(tokens[k] > last);   // what stays keeps its order
        last = tokens[k], ++kept;
      } else {
        REQUIRE(tokens[k] >= 4);
        random += tokens[k] != 4;
      }
    }
    const auto masks = static_cast<int64_t>(tokens.size()) - 2 - kept;
    out.hidden.add(static_cast<double>(510 - kept) / 512);
    out.masks.add(static_cast<double>(masks));
    out.length.add(static_cast<double>(tokens.size()));
    out.random.add(masks ? static_cast<double>(random) / static_cast<double>(masks) : 0);
  }
  return out;
}

}  // namespace

TEST_CASE("infilling hides what a simulation of the published rules hides", "[noising]") {
  // Hidden share, masks with inserted ones, length: 4000 draws of a separate program after the rules; its errors are as small as ours.
  BartNoise rules;
  double hidden = 0.2658, masks = 27.13, length = 403.02;
  SECTION("mean 3.5, one mask for a span") {}
  SECTION("mean 3") { rules.poisson_lambda = 3, hidden = 0.2671, masks = 32.19, length = 407.45; }
  SECTION("no mask for a span") { rules.replace_length = 0, hidden = 0.2659, masks = 1.02, length = 376.87; }
  SECTION("a mask for every token") { rules.replace_length = -1, hidden = 0.2661, masks = 137.25, length = 513.0; }
  const auto found = infill(rules);
  CHECK(std::abs(found.hidden.mean() - hidden) < 6 * found.hidden.error());
  CHECK(std::abs(found.masks.mean() - masks) < 6 * found.masks.error() + 0.01);
  CHECK(std::abs(found.length.mean() - length) < 6 * found.length.error() + 0.01);
  // A tenth of the spans, and of n inserted tokens ceil(n / 10): one where there are any, in 0.86 and 0.63 of the texts, for 1.94 and 1.0 tokens.
  if (rules.replace_length != 0) CHECK(found.random.mean() == Approx(0.1 + (rules.poisson_lambda == 3 ? 0.66 : 0.53) / masks).margin(5 * found.random.error()));
}

TEST_CASE("a span takes whole words and stops before the end", "[noising]") {
  // Two words, one of them all pieces up to </s>; everything is to be hidden.
  BartNoise rules{.mask_ratio = 1, .random_ratio = 0};
  for (const char* unit : {"word", "span-poisson"}) {
    rules.mask_length = unit;
    for (uint64_t item = 0; item < 200; ++item) {
      auto stream = stream_of(item);
      Ids tokens{2, 10, 11, 12, 13, 14, 3};
      text_infilling(tokens, Flags{1, 0, 1, 0, 1, 0, 1}, rules, kIds, stream);
      REQUIRE(tokens[0] == 2);
      REQUIRE(std::count(tokens.begin(), tokens.end(), 10) == 1);   // pieces before the first word belong to none
      REQUIRE(tokens.back() == 3);
      if (rules.mask_length == "word") REQUIRE(tokens == Ids{2, 10, 4, 4, 3});
      // A word is there whole or not at all.
      for (const int64_t id : {11, 13}) REQUIRE(std::count(tokens.begin(), tokens.end(), id) == std::count(tokens.begin(), tokens.end(), id + 1));
    }
  }
}

TEST_CASE("token masking and token deletion touch exactly the share, rounded up", "[noising]") {
  BartNoise rules{.random_ratio = 0, .mask_length = "subword"};
  std::map<int64_t, int> seen;
  for (const int64_t replace : {1, 0, -1}) {
    rules.replace_length = replace;
    for (uint64_t item = 0; item < 1000; ++item) {
      auto stream = stream_of(item);
      auto tokens = framed(21);
      text_infilling(tokens, Flags(23, 0), rules, kIds, stream);   // word starts are not read
      const auto masks = std::count(tokens.begin(), tokens.end(), 4);
      REQUIRE(masks == (replace == 0 ? 0 : 7));   // ceil(6.3)
      REQUIRE(tokens.size() == (replace == 0 ? 16u : 23u));
      if (replace == 0) {
        REQUIRE(std::is_sorted(tokens.begin() + 1, tokens.end() - 1));
        for (size_t k = 1; k < 15; ++k) ++seen[tokens[k]];
        continue;
      }
      for (size_t k = 0; k < 23; ++k) REQUIRE((tokens[k] == 4 || tokens[k] == framed(21)[k]));
    }
  }
  check_uniform(seen, 21, 14000);
  // Whole shares are not rounded up.
  auto stream = stream_of(0);
  rules.replace_length = 0;
  auto ten = framed(10);
  text_infilling(ten, Flags(12, 0), rules, kIds, stream);
  CHECK(ten.size() == 9);
}

TEST_CASE("rules that are none are refused", "[noising]") {
  auto stream = stream_of(0);
  auto tokens = framed(10);
  const Flags starts(12, 1);
  CHECK_THROWS_AS(text_infilling(tokens, starts, BartNoise{.mask_length = "sentence"}, kIds, stream), ConfigError);
  CHECK_THROWS_AS(text_infilling(tokens, starts, BartNoise{.replace_length = 2}, kIds, stream), ConfigError);
  CHECK_THROWS_AS(text_infilling(tokens, starts, BartNoise{.poisson_lambda = 0}, kIds, stream), ConfigError);   // spans of no word for ever
  CHECK_THROWS_AS(text_infilling(tokens, starts, BartNoise{}, NoiseIds{}, stream), ConfigError);
  CHECK_THROWS_AS(text_infilling(tokens, Flags(3, 1), BartNoise{}, kIds, stream), ShapeError);
  CHECK(tokens == framed(10));
}

TEST_CASE("long spans are drawn with their mean", "[noising]") {
  // 100000 words, three in a hundred hidden by spans of 30: few overlap, so masks count spans.
  BartNoise rules{.mask_ratio = 0.03, .poisson_lambda = 30, .random_ratio = 0};
  Mean words;
  for (uint64_t item = 0; item < 30; ++item) {
    auto stream = stream_of(item);
    auto tokens = framed(100000);
    text_infilling(tokens, Flags(100002, 1), rules, kIds, stream);
    words.add(3000.0 / static_cast<double>(std::count(tokens.begin(), tokens.end(), 4)));
  }
  CHECK(words.mean() == Approx(30).epsilon(0.03));
}

TEST_CASE("the spans that are reported are those that were drawn, empty ones and the whole last one too", "[noising]") {
  const BartNoise rules{.mask_ratio = 0.002, .random_ratio = 0};
  int exact = 0;
  for (uint64_t item = 0; item < 100; ++item) {
    auto stream = stream_of(item), again = stream_of(item);
    auto tokens = framed(20000), same = framed(20000);
    Infilled infilled;
    const auto& drawn = infilled.words;
    text_infilling(tokens, Flags(20002, 1), rules, kIds, stream, &infilled);
    text_infilling(same, Flags(20002, 1), rules, kIds, again);
    REQUIRE(tokens == same);
    const auto sum = std::accumulate(drawn.begin(), drawn.end(), int64_t{0});
    REQUIRE(sum >= 40);
    REQUIRE(sum - drawn.back() < 40);
    const auto masks = std::count(tokens.begin(), tokens.end(), 4);   // one for each span, but where two overlap
    REQUIRE(masks <= static_cast<int64_t>(drawn.size()));
    REQUIRE(infilled.hidden == 20002 - (static_cast<int64_t>(tokens.size()) - masks));
    exact += masks == static_cast<int64_t>(drawn.size()) && tokens.size() - 20002 == drawn.size() - 40;   // hidden words go, masks come
  }
  CHECK(exact > 90);
}

TEST_CASE("inserted tokens are spread evenly between the ends, a fixed number of them random", "[noising]") {
  auto stream = stream_of(0);
  std::map<size_t, int> places, random_places;
  for (int i = 0; i < 20000; ++i) {
    auto tokens = framed(6);
    insert_tokens(tokens, 4, 0.3, kIds, stream);   // ceil(1.2) = 2 random ones
    REQUIRE(tokens.size() == 12);
    REQUIRE(tokens.front() == 2);
    REQUIRE(tokens.back() == 3);
    int random = 0;
    int64_t next = 1000;
    for (size_t k = 1; k < 11; ++k) {
      if (tokens[k] >= 1000) REQUIRE(tokens[k] == next++);
      else ++places[k], random += tokens[k] != 4, random_places[k] += tokens[k] != 4;
    }
    REQUIRE(random == 2);
  }
  check_uniform(places, 10, 80000);
  check_uniform(random_places, 10, 40000);
  auto tokens = framed(0);
  insert_tokens(tokens, 2, 0, kIds, stream);
  CHECK(tokens == Ids{2, 4, 4, 3});
}

TEST_CASE("a rotated text starts at any of its tokens, and twice as often at its own start", "[noising]") {
  auto stream = stream_of(0);
  std::map<int64_t, int> seen;
  for (int i = 0; i < 10000; ++i) {
    auto tokens = framed(4);
    rotate_document(tokens, stream);
    REQUIRE(tokens.front() == 2);
    REQUIRE(tokens.back() == 3);
    for (size_t k = 1; k < 4; ++k) REQUIRE(tokens[k + 1] - 1000 == (tokens[k] - 1000 + 1) % 4);
    ++seen[tokens[1]];
  }
  CHECK(std::abs(seen[1000] - 4000) < 4.5 * std::sqrt(10000 * 0.24));
  for (const int64_t id : {1001, 1002, 1003}) CHECK(std::abs(seen[id] - 2000) < 4.5 * std::sqrt(10000 * 0.16));
}

TEST_CASE("the noises come one after the other: sentences, hidden words, inserted tokens, rotation", "[noising]") {
  const BartNoise none{.permute_sentences = 0, .mask_ratio = 0};
  const auto tokens = framed(40);
  const Flags starts(42, 1);
  const Ids lengths{10, 5, 25};
  auto stream = stream_of(0);
  CHECK(bart_noise(tokens, starts, lengths, none, kIds, stream) == tokens);
  // Permutation alone, or with rotation, loses no token.
  BartNoise rules = none;
  rules.permute_sentences = 1, rules.rotate_prob = 1;
  for (uint64_t item = 0; item < 100; ++item) {
    auto a = stream_of(item), b = stream_of(item);
    const auto out = bart_noise(tokens, starts, lengths, rules, kIds, a);
    CHECK(sorted(out) == sorted(tokens));
    auto expected = tokens;
    auto flags = starts;
    permute_sentences(expected, flags, lengths, 1, b);
    b.bits();   // is it rotated?
    rotate_document(expected, b);
    CHECK(out == expected);
  }
  // All of them by hand, with the share of insertions taken of what infilling left.
  rules = BartNoise{.insert_ratio = 0.2, .rotate_prob = 0.5};
  int rotated = 0;
  for (uint64_t item = 0; item < 400; ++item) {
    auto a = stream_of(item), b = stream_of(item);
    const auto out = bart_noise(tokens, starts, lengths, rules, kIds, a);
    auto expected = tokens;
    auto flags = starts;
    permute_sentences(expected, flags, lengths, 1, b);
    text_infilling(expected, flags, rules, kIds, b);
    insert_tokens(expected, static_cast<int64_t>(std::ceil(static_cast<double>(expected.size()) * 0.2)), 0.1, kIds, b);
    if (b.bernoulli(0.5)) rotate_document(expected, b), ++rotated;
    REQUIRE(out == expected);
  }
  CHECK(std::abs(rotated - 200) < 45);
}

// ---- PEGASUS

namespace {

using Sentences = std::vector<Ids>;

/// ROUGE-1 F1 of two bags, slowly.
double rouge1(const Ids& a, const Ids& b, bool unique) {
  std::map<int64_t, int> x, y;
  for (const auto id : a) x[id] = unique ? 1 : x[id] + 1;
  for (const auto id : b) y[id] = unique ? 1 : y[id] + 1;
  double both = 0, in_x = 0, in_y = 0;
  for (const auto& [id, n] : x) in_x += n, both += y.count(id) ? std::min(n, y[id]) : 0;
  for (const auto& [id, n] : y) in_y += n;
  if (both == 0) return 0;
  const double precision = both / in_x, recall = both / in_y;
  return 2 * precision * recall / (precision + recall);
}

/// The sentences that are gaps, worked out from the definitions.
std::set<size_t> principal(const Sentences& sentences, size_t wanted, bool one_by_one, bool unique) {
  std::set<size_t> gap;
  const auto score = [&](size_t candidate) {
    Ids chosen, rest;
    for (size_t s = 0; s < sentences.size(); ++s) {
      auto& side = s == candidate || (one_by_one && gap.count(s)) ? chosen : rest;
      side.insert(side.end(), sentences[s].begin(), sentences[s].end());
    }
    return rouge1(chosen, rest, unique);
  };
  while (gap.size() < wanted) {
    double best = -1;
    size_t who = 0;
    for (size_t s = 0; s < sentences.size(); ++s) {
      const double now = gap.count(s) ? -1 : score(s);
      if (!gap.count(s) && now > best - 1e-12) best = now, who = s;   // of equals, the later
    }
    gap.insert(who);
  }
  return gap;
}

SourceTarget with_gaps(const Sentences& sentences, const std::set<size_t>& gap) {
  SourceTarget out;
  for (size_t s = 0; s < sentences.size(); ++s) {
    auto& side = gap.count(s) ? out.target : out.source;
    side.insert(side.end(), sentences[s].begin(), sentences[s].end());
    if (gap.count(s)) out.source.push_back(4);
  }
  out.source.push_back(1), out.target.push_back(1);
  return out;
}

}  // namespace

TEST_CASE("principal sentences are those of the definition", "[noising]") {
  for (const std::string choose : {"ind-orig", "ind-uniq", "seq-orig", "seq-uniq"}) {
    for (uint64_t item = 0; item < 400; ++item) {
      auto stream = stream_of(item);
      Sentences sentences(1 + stream.below(12));
      for (auto& sentence : sentences)
        for (uint64_t n = 1 + stream.below(8); n > 0; --n) sentence.push_back(10 + static_cast<int64_t>(stream.below(15)));
      const auto tenths = 2 + item % 7;
      const auto wanted = std::max<size_t>(1, sentences.size() * tenths / 10);
      const auto expected = with_gaps(sentences, principal(sentences, wanted, choose[0] == 's', choose.substr(4) == "uniq"));
      const auto out = gap_sentences(sentences, static_cast<double>(tenths) / 10, choose, 4, 1, stream);
      REQUIRE(out.source == expected.source);
      REQUIRE(out.target == expected.target);
    }
  }
}

TEST_CASE("a sentence that repeats the rest is a gap, and a repeated word counts once where that is asked for", "[noising]") {
  auto stream = stream_of(0);
  const Sentences sentences{{10, 11}, {12, 12, 12, 12}, {10, 13, 12}, {12, 14, 12, 12, 12}};
  CHECK(gap_sentences(sentences, 0.3, "ind-orig", 4, 1, stream).target == Ids{12, 14, 12, 12, 12, 1});
  CHECK(gap_sentences(sentences, 0.3, "ind-uniq", 4, 1, stream).target == Ids{10, 13, 12, 1});
}

TEST_CASE("gaps are the first sentences, or any, floor of the share of them", "[noising]") {
  const Sentences sentences{{10, 11}, {12}, {13, 14}, {15}, {16}, {17}, {18}};
  auto stream = stream_of(0);
  const auto lead = gap_sentences(sentences, 0.3, "lead", 4, 1, stream);   // floor(2.1)
  CHECK(lead.source == Ids{4, 4, 13, 14, 15, 16, 17, 18, 1});
  CHECK(lead.target == Ids{10, 11, 12, 1});
  std::map<Ids, int> seen;
  for (int i = 0; i < 21000; ++i) ++seen[gap_sentences(sentences, 0.3, "random", 4, 1, stream).target];
  check_uniform(seen, 21, 21000);
  for (const auto& [target, count] : seen) CHECK(std::is_sorted(target.begin(), target.end() - 1));
  CHECK_THROWS_AS(gap_sentences(sentences, 0.3, "best", 4, 1, stream), ConfigError);
}

TEST_CASE("texts of one sentence and of none give something to read and to write", "[noising]") {
  for (const std::string choose : {"random", "lead", "ind-orig", "ind-uniq", "seq-orig", "seq-uniq"}) {
    auto stream = stream_of(0);
    const auto one = gap_sentences(Sentences{{10, 11}}, 0.3, choose, 4, 1, stream);
    CHECK(one.source == Ids{4, 1});
    CHECK(one.target == Ids{10, 11, 1});
    for (const auto& empty : {Sentences{}, Sentences{{}, {}}}) {
      const auto none = gap_sentences(empty, 0.3, choose, 4, 1, stream);
      CHECK(none.source == Ids{1});
      CHECK(none.target == Ids{1});
    }
    const auto all = gap_sentences(Sentences{{10}, {}, {10}}, 5, choose, 4, 1, stream);
    CHECK(all.source == Ids{4, 4, 1});
    CHECK(all.target == Ids{10, 10, 1});
  }
}

// ---- all

TEST_CASE("every length, any ids and any flags are taken, and a stream gives the same again", "[noising]") {
  for (uint64_t item = 0; item < 3000; ++item) {
    auto stream = stream_of(item, "any");
    const size_t n = stream.below(9);
    Ids tokens(n);
    for (auto& id : tokens) id = static_cast<int64_t>(stream.below(6));   // masks, sentinels, ends, random ids all over
    const auto starts = random_starts(n, stream.uniform(), stream);
    BartNoise rules;
    rules.mask_ratio = stream.uniform(), rules.permute_sentences = stream.uniform(), rules.insert_ratio = stream.uniform(), rules.rotate_prob = 0.5;
    rules.poisson_lambda = 0.1 + 20 * stream.uniform(), rules.random_ratio = stream.uniform();
    rules.mask_length = std::vector<std::string>{"subword", "word", "span-poisson"}[stream.below(3)];
    rules.replace_length = static_cast<int64_t>(stream.below(3)) - 1;
    Ids lengths;
    for (size_t left = n < 2 ? 0 : n - 2; left > 0 && stream.below(4) > 0; left -= static_cast<size_t>(lengths.back()))
      lengths.push_back(static_cast<int64_t>(stream.below(left + 1)));
    const NoiseIds ids{.mask = 4, .vocabulary = 6, .first_random = 1};
    auto again = stream;
    const auto source = bart_noise(tokens, starts, lengths, rules, ids, stream);
    REQUIRE(source == bart_noise(tokens, starts, lengths, rules, ids, again));
    if (n > 0) REQUIRE((source.front() == tokens.front() && source.back() == tokens.back()));
    if (n < 2) REQUIRE(source == tokens);
    const double density = stream.uniform();
    const auto length = static_cast<int64_t>(n);
    const auto noise = item % 2 ? random_spans(length, density, 1 + 4 * stream.uniform(), stream) : iid_mask(length, density, stream);
    REQUIRE(span_corruption(tokens, noise, sentinels(9), 1).source.size() <= n + 1);
    REQUIRE(drop_tokens(tokens, noise, 1).source.size() + drop_tokens(tokens, noise, 1).target.size() == n + 2);
    REQUIRE(mass(tokens, noise, ids, 1).source.size() == n + 1);
    REQUIRE(bert_style(tokens, noise, density, ids, 1, stream).source.size() == n + 1);
    auto with_end = tokens;
    with_end.push_back(1);
    REQUIRE(sorted(deshuffle(tokens, 1, stream).source) == sorted(with_end));
    const auto prefix = prefix_lm(tokens, 1, stream);
    REQUIRE(prefix.source.size() + prefix.target.size() == n + 2);
  }
}

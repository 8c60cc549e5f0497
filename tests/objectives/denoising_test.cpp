// BART.
#include "objectives/denoising/noise.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "objectives/span_corruption/noise.h"
#include "tests/objectives/texts.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("whole sentences are permuted, in every order, with their word starts", "[noising]") {
  const Ids before{2, 10, 20, 21, 30, 31, 32, 40, 3};
  const Flags starts{1, 1, 1, 0, 1, 0, 0, 0, 1};  // zero for ids that do not end in 0, and for 40
  std::map<Ids, int> seen;
  auto stream = stream_of(0);
  for (int i = 0; i < 6000; ++i) {
    auto tokens = before;
    auto flags = starts;
    permute_sentences(tokens, flags, Ids{1, 2, 3}, 1, stream);
    REQUIRE(tokens.front() == 2);
    REQUIRE(tokens.back() == 3);
    REQUIRE(tokens[7] == 40);  // after the last sentence
    for (size_t k = 1; k < 7; ++k) {
      REQUIRE(flags[k] == (tokens[k] % 10 == 0));
      if (tokens[k] % 10) REQUIRE(tokens[k] == tokens[k - 1] + 1);
    }
    REQUIRE(sorted(tokens) == sorted(before));
    ++seen[tokens];
  }
  check_uniform(seen, 6, 6000);
}

TEST_CASE("only the given share of the sentences is permuted, every subset equally often", "[noising]") {
  auto stream = stream_of(0);
  std::map<Ids, int> seen;
  int unchanged = 0;
  for (int i = 0; i < 12000; ++i) {
    auto tokens = framed(5);
    Flags flags(7, 1);
    permute_sentences(tokens, flags, Ids{1, 1, 1, 1, 1}, 0.3, stream);  // ceil(1.5) = 2 of 5
    int moved = 0;
    for (size_t k = 1; k < 6; ++k) moved += tokens[k] != static_cast<int64_t>(999 + k);
    REQUIRE((moved == 0 || moved == 2));
    if (moved)
      ++seen[tokens];
    else
      ++unchanged;
  }
  CHECK(std::abs(unchanged - 6000.0) < 4.5 * std::sqrt(3000.0));
  check_uniform(seen, 10, 12000.0 - unchanged);
  auto tokens = framed(5);
  Flags flags(7, 1);
  CHECK_THROWS_AS(permute_sentences(tokens, flags, Ids{3, 3}, 1, stream), DataError);
  permute_sentences(tokens, flags, Ids{5}, 1, stream);
  permute_sentences(tokens, flags, Ids{}, 1, stream);
  CHECK(tokens == framed(5));
}

namespace {

struct Outcome {
  Mean corrupted, masks, length, random;
};

/// Text infilling of 512 tokens, a quarter of them continuations.
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
        REQUIRE(tokens[k] > last);  // kept tokens stay in order
        last = tokens[k];
        ++kept;
      } else {
        REQUIRE(tokens[k] >= 4);
        random += tokens[k] != 4;
      }
    }
    const auto masks = static_cast<int64_t>(tokens.size()) - 2 - kept;
    out.corrupted.add(static_cast<double>(510 - kept) / 512);
    out.masks.add(static_cast<double>(masks));
    out.length.add(static_cast<double>(tokens.size()));
    out.random.add(masks ? static_cast<double>(random) / static_cast<double>(masks) : 0);
  }
  return out;
}

}  // namespace

TEST_CASE("infilling matches a simulation of the published rules", "[noising]") {
  // Corrupted share, masks with inserted ones, length: 4000 draws of a separate implementation of the rules, whose
  // standard errors are as small as those here.
  BartNoise rules;
  double corrupted = 0.2658, masks = 27.13, length = 403.02;
  SECTION("mean 3.5, one mask per span") {}
  SECTION("mean 3") { rules.poisson_lambda = 3, corrupted = 0.2671, masks = 32.19, length = 407.45; }
  SECTION("no mask per span") { rules.replace_length = 0, corrupted = 0.2659, masks = 1.02, length = 376.87; }
  SECTION("one mask per token") { rules.replace_length = -1, corrupted = 0.2661, masks = 137.25, length = 513.0; }
  const auto found = infill(rules);
  CHECK(std::abs(found.corrupted.mean() - corrupted) < 6 * found.corrupted.error());
  CHECK(std::abs(found.masks.mean() - masks) < 6 * found.masks.error() + 0.01);
  CHECK(std::abs(found.length.mean() - length) < 6 * found.length.error() + 0.01);
  // A tenth of the spans, and of n inserted tokens ceil(n / 10): one if there are any, in 0.86 and 0.63 of the texts,
  // which have 1.94 and 1.0 inserted tokens.
  if (rules.replace_length != 0)
    CHECK(found.random.mean() ==
          Approx(0.1 + (rules.poisson_lambda == 3 ? 0.66 : 0.53) / masks).margin(5 * found.random.error()));
}

TEST_CASE("a span covers whole words and stops before the end", "[noising]") {
  // Two words, the second up to </s>; everything is to be masked.
  BartNoise rules{.mask_ratio = 1, .random_ratio = 0};
  for (const auto unit : {MaskLength::word, MaskLength::span_poisson}) {
    rules.mask_length = unit;
    for (uint64_t item = 0; item < 200; ++item) {
      auto stream = stream_of(item);
      Ids tokens{2, 10, 11, 12, 13, 14, 3};
      text_infilling(tokens, Flags{1, 0, 1, 0, 1, 0, 1}, rules, kIds, stream);
      REQUIRE(tokens[0] == 2);
      REQUIRE(std::count(tokens.begin(), tokens.end(), 10) == 1);  // tokens before the first word belong to no word
      REQUIRE(tokens.back() == 3);
      if (rules.mask_length == MaskLength::word) REQUIRE(tokens == Ids{2, 10, 4, 4, 3});
      // Words are kept or masked as a whole.
      for (const int64_t id : {11, 13})
        REQUIRE(std::count(tokens.begin(), tokens.end(), id) == std::count(tokens.begin(), tokens.end(), id + 1));
    }
  }
}

TEST_CASE("token masking and token deletion change exactly the share, rounded up", "[noising]") {
  BartNoise rules{.random_ratio = 0, .mask_length = MaskLength::subword};
  std::map<int64_t, int> seen;
  for (const int64_t replace : {1, 0, -1}) {
    rules.replace_length = replace;
    for (uint64_t item = 0; item < 1000; ++item) {
      auto stream = stream_of(item);
      auto tokens = framed(21);
      text_infilling(tokens, Flags(23, 0), rules, kIds, stream);  // word starts are unused
      const auto masks = std::count(tokens.begin(), tokens.end(), 4);
      REQUIRE(masks == (replace == 0 ? 0 : 7));  // ceil(6.3)
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
  // Integer shares are not rounded up.
  auto stream = stream_of(0);
  rules.replace_length = 0;
  auto ten = framed(10);
  text_infilling(ten, Flags(12, 0), rules, kIds, stream);
  CHECK(ten.size() == 9);
}

TEST_CASE("invalid rules are rejected", "[noising]") {
  auto stream = stream_of(0);
  auto tokens = framed(10);
  const Flags starts(12, 1);
  CHECK_THROWS_AS(text_infilling(tokens, starts, BartNoise{.replace_length = 2}, kIds, stream), ConfigError);
  CHECK_THROWS_AS(text_infilling(tokens, starts, BartNoise{.poisson_lambda = 0}, kIds, stream),
                  ConfigError);  // spans of 0 words forever
  CHECK_THROWS_AS(text_infilling(tokens, starts, BartNoise{}, NoiseIds{}, stream), ConfigError);
  CHECK_THROWS_AS(text_infilling(tokens, Flags(3, 1), BartNoise{}, kIds, stream), ShapeError);
  CHECK(tokens == framed(10));
}

TEST_CASE("long spans have the right mean", "[noising]") {
  // 100000 words, 3 % of them masked by spans of 30: few overlap, so the number of masks is that of spans.
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

TEST_CASE("reported span lengths are those drawn, including zeros and the last one before truncation", "[noising]") {
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
    const auto masks = std::count(tokens.begin(), tokens.end(), 4);  // one per span, unless two overlap
    REQUIRE(masks <= static_cast<int64_t>(drawn.size()));
    REQUIRE(infilled.corrupted == 20002 - (static_cast<int64_t>(tokens.size()) - masks));
    exact += masks == static_cast<int64_t>(drawn.size()) &&
             tokens.size() - 20002 == drawn.size() - 40;  // masked words are removed, masks added
  }
  CHECK(exact > 90);
}

TEST_CASE("inserted tokens are uniform between the ends, a fixed number of them random ids", "[noising]") {
  auto stream = stream_of(0);
  std::map<size_t, int> positions, random_positions;
  for (int i = 0; i < 20000; ++i) {
    auto tokens = framed(6);
    insert_tokens(tokens, 4, 0.3, kIds, stream);  // ceil(1.2) = 2 random ones
    REQUIRE(tokens.size() == 12);
    REQUIRE(tokens.front() == 2);
    REQUIRE(tokens.back() == 3);
    int random = 0;
    int64_t next = 1000;
    for (size_t k = 1; k < 11; ++k) {
      if (tokens[k] >= 1000)
        REQUIRE(tokens[k] == next++);
      else
        ++positions[k], random += tokens[k] != 4, random_positions[k] += tokens[k] != 4;
    }
    REQUIRE(random == 2);
  }
  check_uniform(positions, 10, 80000);
  check_uniform(random_positions, 10, 40000);
  auto tokens = framed(0);
  insert_tokens(tokens, 2, 0, kIds, stream);
  CHECK(tokens == Ids{2, 4, 4, 3});
}

TEST_CASE("a rotated text starts at any of its tokens, at its own start twice as often", "[noising]") {
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

TEST_CASE("BART's noise is sentence permutation, infilling, insertion, rotation, in this order", "[noising]") {
  const BartNoise none{.permute_sentences = 0, .mask_ratio = 0};
  const auto tokens = framed(40);
  const Flags starts(42, 1);
  const Ids lengths{10, 5, 25};
  auto stream = stream_of(0);
  CHECK(bart_noise(tokens, starts, lengths, none, kIds, stream) == tokens);
  // Permutation with rotation loses no token.
  BartNoise rules = none;
  rules.permute_sentences = 1;
  rules.rotate_prob = 1;
  for (uint64_t item = 0; item < 100; ++item) {
    auto a = stream_of(item), b = stream_of(item);
    const auto out = bart_noise(tokens, starts, lengths, rules, kIds, a);
    CHECK(sorted(out) == sorted(tokens));
    auto expected = tokens;
    auto flags = starts;
    permute_sentences(expected, flags, lengths, 1, b);
    b.bits();  // is it rotated?
    rotate_document(expected, b);
    CHECK(out == expected);
  }
  // All four by hand; the share of insertions is of the length after infilling.
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

TEST_CASE("noising accepts every length, any ids and any flags, and is a function of its stream", "[noising]") {
  for (uint64_t item = 0; item < 3000; ++item) {
    auto stream = stream_of(item, "any");
    const size_t n = stream.below(9);
    Ids tokens(n);
    for (auto& id : tokens)
      id = static_cast<int64_t>(stream.below(6));  // masks, sentinels, end tokens and random ids anywhere
    const auto starts = random_starts(n, stream.uniform(), stream);
    BartNoise rules;
    rules.mask_ratio = stream.uniform();
    rules.permute_sentences = stream.uniform();
    rules.insert_ratio = stream.uniform();
    rules.rotate_prob = 0.5;
    rules.poisson_lambda = 0.1 + 20 * stream.uniform();
    rules.random_ratio = stream.uniform();
    rules.mask_length = choices(MaskLength{})[stream.below(3)].value;
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
    const auto noise =
        item % 2 ? random_spans(length, density, 1 + 4 * stream.uniform(), stream) : iid_mask(length, density, stream);
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

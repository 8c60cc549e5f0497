#include "core/contains.h"
#include "core/config/config.h"
#include "objectives/mlm/mlm.h"
#include "objectives/masking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

struct Fixture {
  TempDir dir;
  Tokenizer tokenizer = Tokenizer::open(dir.write("vocab.txt", tiny_vocabulary(50)));
  TokenProperties vocabulary{tokenizer};
};

struct Counts {
  int64_t rows = 0, candidates = 0, chosen = 0, masked = 0, random = 0, kept = 0, special_chosen = 0,
          random_special = 0;
};

/// Counts over `rows` masked rows of [CLS] + 62 tokens + [SEP], every third token a continuation.
Counts run(Fixture& f, const MlmConfig& config, int64_t rows) {
  Counts c;
  Masker masker(config, f.vocabulary);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> ids(64), positions, labels;
    for (int64_t i = 0; i < 64; ++i) ids[i] = i % 3 == 2 ? 55 + (i + row) % 50 : 5 + (i * 7 + row) % 50;
    ids[0] = f.vocabulary.special.cls;
    ids[63] = f.vocabulary.special.sep;
    const auto before = ids;
    masker.corrupt(ids.data(), 64, 0, Rng(1).stream("mask", 0, row), positions, labels);
    ++c.rows;
    c.candidates += 62;
    c.chosen += static_cast<int64_t>(positions.size());
    REQUIRE(positions.size() == labels.size());
    for (size_t k = 0; k < positions.size(); ++k) {
      const auto at = positions[k];
      REQUIRE(labels[k] == before[at]);
      REQUIRE((k == 0 || positions[k - 1] < at));
      c.special_chosen += f.vocabulary.is_special[before[at]];
      if (ids[at] == f.vocabulary.special.mask)
        ++c.masked;
      else if (ids[at] == before[at])
        ++c.kept;
      else
        ++c.random, c.random_special += f.vocabulary.is_special[ids[at]];
    }
    for (int64_t i = 0; i < 64; ++i)
      if (ids[i] != before[i]) REQUIRE(contains(positions, i));
  }
  return c;
}

/// Deviation of a binomial count from its expectation, in standard deviations.
double sigmas(int64_t observed, int64_t n, double p) { return (observed - n * p) / std::sqrt(n * p * (1 - p)); }

}  // namespace

TEST_CASE("google-bert's rule chooses exactly the rounded share of every sequence, never a special token",
          "[objectives]") {
  Fixture f;
  MlmConfig config;
  const auto c = run(f, config, 10000);
  CHECK(c.chosen == c.rows * 10);  // round half to even of 0.15 * 64 = 9.6
  CHECK(c.special_chosen == 0);
}

TEST_CASE("the share is rounded half to even and at least one token is predicted", "[objectives]") {
  Fixture f;
  MlmConfig config;
  Masker masker(config, f.vocabulary);
  for (const auto& [length, wanted] : {std::pair<int64_t, size_t>{30, 4}, {50, 8}, {70, 10}, {3, 1}}) {
    std::vector<int64_t> ids(length, 7), positions, labels;
    ids[0] = f.vocabulary.special.cls;
    masker.corrupt(ids.data(), length, 0, Rng(1).stream("mask"), positions, labels);
    CHECK(positions.size() == wanted);
  }
}

TEST_CASE("of the chosen tokens 80, 10 and 10 percent are masked, replaced and kept", "[objectives]") {
  Fixture f;
  MlmConfig config;
  const auto c = run(f, config, 100000);
  // A random token is the original one with probability 1/105, and [MASK] as often; both shift the shares.
  CHECK(std::abs(sigmas(c.masked, c.chosen, 0.8 + 0.1 / 105)) < 4.5);
  CHECK(std::abs(sigmas(c.kept, c.chosen, 0.1 + 0.1 / 105)) < 4.5);
  CHECK(std::abs(sigmas(c.random, c.chosen, 0.1 * 103 / 105)) < 4.5);
  CHECK(c.random_special > 0);
}

TEST_CASE("random tokens drawn from words are never special", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.random_from = RandomFrom::words;
  CHECK(run(f, config, 5000).random_special == 0);
}

TEST_CASE("huggingface's rule chooses every token independently", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.count = CountRule::bernoulli;
  const auto c = run(f, config, 100000);
  CHECK(std::abs(sigmas(c.chosen, c.candidates, 0.15)) < 4.5);
  CHECK(c.special_chosen == 0);
}

TEST_CASE("the stochastic rule has the exact share as its mean", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.count = CountRule::stochastic;
  const auto c = run(f, config, 100000);  // 9 or 10 of each row, mean 9.6
  CHECK(std::abs(sigmas(c.chosen - 9 * c.rows, c.rows, 0.6)) < 4.5);
}

TEST_CASE("max_predictions_per_seq limits the predictions", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.max_predictions_per_seq = 4;
  CHECK(run(f, config, 100).chosen == 400);
}

TEST_CASE("whole word masking chooses all tokens of a word or none, and never joins across a special token",
          "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.unit = MaskingUnit::word;
  Masker masker(config, f.vocabulary);
  for (uint64_t row = 0; row < 500; ++row) {
    // [CLS] w ##c w ##c ##c w ... [SEP] ##c: the last continuation follows a separator.
    std::vector<int64_t> ids{f.vocabulary.special.cls};
    for (int i = 0; i < 20; ++i) {
      ids.push_back(5 + i);
      for (int k = 0; k < i % 3; ++k) ids.push_back(55 + k);
    }
    ids.push_back(f.vocabulary.special.sep);
    ids.push_back(60);
    std::vector<int64_t> positions, labels, before = ids;
    masker.corrupt(ids.data(), static_cast<int64_t>(ids.size()), 0, Rng(2).stream("mask", 0, row), positions, labels);
    std::vector<bool> chosen(ids.size());
    for (const auto p : positions) chosen[p] = true;
    for (size_t i = 1; i + 2 < ids.size(); ++i)
      if (!f.vocabulary.words.begins(before, i)) REQUIRE(chosen[i] == chosen[i - 1]);
  }
}

TEST_CASE("with draw_per word all tokens of a word are treated alike", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.unit = MaskingUnit::word;
  config.draw_per = DrawPer::word;
  Masker masker(config, f.vocabulary);
  for (uint64_t row = 0; row < 300; ++row) {
    std::vector<int64_t> ids, positions, labels;
    for (int i = 0; i < 20; ++i) ids.insert(ids.end(), {5 + i, 55 + i, 56 + i});
    masker.corrupt(ids.data(), 60, 0, Rng(3).stream("mask", 0, row), positions, labels);
    for (size_t k = 0; k + 2 < positions.size(); k += 3) {
      const auto masked = [&](size_t j) { return ids[positions[j]] == f.vocabulary.special.mask; };
      if (masked(k) && masked(k + 1)) CHECK(masked(k + 2));
    }
  }
}

namespace {

/// Distribution of the number of runs when `budget` words are chosen in runs whose lengths 1, 2, ... have the given
/// probabilities, the last one truncated.
std::vector<double> runs_of(const std::vector<double>& lengths, int budget) {
  std::vector<std::vector<double>> after(static_cast<size_t>(budget) + 1,
                                         std::vector<double>(static_cast<size_t>(budget) + 1));
  after[0][0] = 1;
  for (size_t left = 1; left < after.size(); ++left)
    for (size_t l = 1; l <= lengths.size(); ++l)
      for (size_t runs = 0; runs + 1 < after.size(); ++runs)
        after[left][runs + 1] += lengths[l - 1] * after[left - std::min(l, left)][runs];
  return after.back();
}

}  // namespace

TEST_CASE("span lengths are clipped geometric, P(n) of n-grams is proportional to 1/n", "[objectives]") {
  Fixture f;
  constexpr int64_t words = 8000, rows = 3000;
  MlmConfig config;
  config.draw_per = DrawPer::span;
  config.mask_prob = 1;
  config.random_prob = 0;
  std::vector<double> lengths;
  int budget = 0;
  SECTION("spans") {
    config.unit = MaskingUnit::span;
    config.count = CountRule::ceil;
    budget = 10;
    for (int n = 1; n <= 10; ++n)
      lengths.push_back(0.2 * std::pow(0.8, n - 1) / (1 - std::pow(0.8, 10)));  // Joshi et al. 2020, section 3.1
    CHECK(lengths[0] == Approx(0.2241).margin(1e-4));
  }
  SECTION("n-grams") {
    config.unit = MaskingUnit::ngram;
    budget = 7;
    for (int n = 1; n <= 3; ++n) lengths.push_back(1.0 / n / (1 + 0.5 + 1.0 / 3));  // Lan et al. 2020, section 4.1
  }
  config.max_predictions_per_seq = budget;
  Masker masker(config, f.vocabulary);
  std::vector<int64_t> seen(static_cast<size_t>(budget) + 1);
  for (uint64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> ids(words, 7), positions, labels;
    masker.corrupt(ids.data(), words, 0, Rng(4).stream("mask", 0, row), positions, labels);
    REQUIRE(positions.size() == static_cast<size_t>(budget));
    size_t runs = 1;
    for (size_t k = 1; k < positions.size(); ++k) runs += positions[k] != positions[k - 1] + 1;
    ++seen[runs];
  }
  const auto expected = runs_of(lengths, budget);
  double chi = 0;
  int degrees = -1;
  for (size_t n = 1; n < seen.size(); ++n) {
    const double wanted = expected[n] * static_cast<double>(rows);
    if (wanted < 5) continue;
    chi += (static_cast<double>(seen[n]) - wanted) * (static_cast<double>(seen[n]) - wanted) / wanted;
    ++degrees;
  }
  REQUIRE(degrees >= 3);
  CHECK(chi < degrees + 5 * std::sqrt(2.0 * degrees));
}

TEST_CASE("an n-gram that overlaps chosen words is skipped and not shortened, as in ALBERT's code", "[objectives]") {
  Fixture f;
  constexpr int64_t words = 126, budget = 19, rows = 20000;
  MlmConfig config;
  config.like = "albert";
  config.unit = MaskingUnit::ngram;
  config.max_predictions_per_seq = budget;
  config.mlm_probability = 0.2;  // above the limit
  Masker masker(config, f.vocabulary);
  std::array<double, 8> own{}, published{};  // number of runs of n chosen words; the last: 7 or more
  const auto count_runs = [](const std::vector<uint8_t>& chosen, std::array<double, 8>& runs) {
    size_t run = 0;
    for (size_t i = 0; i <= chosen.size(); ++i) {
      if (i < chosen.size() && chosen[i]) {
        ++run;
      } else if (run > 0) {
        ++runs[std::min(run, runs.size() - 1)];
        run = 0;
      }
    }
  };
  // google-research/albert, create_masked_lm_predictions: starts in random order; n with P(n) in proportion to 1/n;
  // fewer words only if n would exceed the limit; none if any of them is already chosen.
  std::mt19937_64 random(11);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> ids(words, 7), positions, labels;
    masker.corrupt(ids.data(), words, 0, Rng(4).stream("mask", 0, static_cast<uint64_t>(row)), positions, labels);
    std::vector<uint8_t> chosen(words);
    for (const auto at : positions) chosen[static_cast<size_t>(at)] = 1;
    count_runs(chosen, own);

    std::vector<int64_t> starts(words);
    std::iota(starts.begin(), starts.end(), 0);
    std::shuffle(starts.begin(), starts.end(), random);
    std::fill(chosen.begin(), chosen.end(), uint8_t{0});
    int64_t left = budget;
    for (size_t k = 0; k < starts.size() && left > 0; ++k) {
      std::discrete_distribution<int64_t> draw{6, 3, 2};
      const int64_t first = starts[k], n = std::min({draw(random) + 1, words - first, left});
      if (std::any_of(chosen.begin() + first, chosen.begin() + first + n, [](uint8_t c) { return c != 0; })) continue;
      std::fill_n(chosen.begin() + first, n, uint8_t{1});
      left -= n;
    }
    count_runs(chosen, published);
  }
  const double all_own = std::accumulate(own.begin(), own.end(), 0.0),
               all_published = std::accumulate(published.begin(), published.end(), 0.0);
  for (size_t n = 1; n < own.size(); ++n) {
    const double p = (own[n] + published[n]) / (all_own + all_published);
    const double difference = own[n] / all_own - published[n] / all_published;
    CAPTURE(n, own[n] / all_own, published[n] / all_published);
    CHECK(std::abs(difference) < 5 * std::sqrt(p * (1 - p) * (1 / all_own + 1 / all_published)));
  }
}

TEST_CASE("reported lengths are those drawn, and reporting changes nothing", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.unit = GENERATE(MaskingUnit::ngram, MaskingUnit::span);
  if (config.unit == MaskingUnit::span) config.count = CountRule::ceil;
  config.max_predictions_per_seq = 40;
  Masker masker(config, f.vocabulary);
  for (uint64_t row = 0; row < 200; ++row) {
    constexpr int64_t words = 100000;  // so many that runs seldom touch
    std::vector<int64_t> ids(words, 7), positions, labels, again, drawn;
    masker.corrupt(ids.data(), words, 0, Rng(6).stream("mask", 0, row), positions, labels);
    std::fill(ids.begin(), ids.end(), 7);
    labels.clear();
    masker.corrupt(ids.data(), words, 0, Rng(6).stream("mask", 0, row), again, labels, &drawn);
    REQUIRE(again == positions);
    std::vector<int64_t> runs{1};
    for (size_t k = 1; k < positions.size(); ++k)
      positions[k] == positions[k - 1] + 1 ? ++runs.back() : (runs.push_back(1), 0);
    if (runs.size() != drawn.size()) continue;  // two runs touched, or the last n-gram was too long
    // Sorted, run lengths equal the draws, except for the last draw, which the budget of 40 truncates.
    const auto last = drawn.back();
    drawn.back() -= std::accumulate(drawn.begin(), drawn.end(), int64_t{0}) - 40;
    REQUIRE(drawn.back() <= last);
    std::sort(runs.begin(), runs.end());
    std::sort(drawn.begin(), drawn.end());
    REQUIRE(runs == drawn);
  }
  std::vector<int64_t> ids(60, 7), positions, labels, none;
  MlmConfig tokens;
  Masker(tokens, f.vocabulary).corrupt(ids.data(), 60, 0, Rng(6).stream("mask"), positions, labels, &none);
  CHECK(none.empty());
}

TEST_CASE("rows draw their masking in proportion to its share, never one with share 0", "[objectives]") {
  std::vector<MaskingPart> parts(4);
  parts[0].share = 0.5;
  parts[1].share = 0;
  parts[2].share = 0.3;
  parts[3].share = 0.2;
  std::array<int64_t, 4> seen{};
  constexpr int64_t rows = 100000;
  for (uint64_t row = 0; row < rows; ++row) ++seen[draw_masking(parts, Rng(5).stream("mixture", 0, row))];
  CHECK(seen[1] == 0);
  for (const size_t k : {0, 2, 3}) CHECK(std::abs(sigmas(seen[k], rows, parts[k].share)) < 4.5);
  parts[3].share = 0, parts[2].share = 0.5 - 1e-16;  // the last masking with a share absorbs rounding errors
  for (uint64_t row = 0; row < 1000; ++row) CHECK(draw_masking(parts, Rng(5).stream("mixture", 0, row)) % 2 == 0);
}

TEST_CASE("a span is masked, replaced or kept as a whole, and random tokens follow the frequencies of the text",
          "[objectives]") {
  Fixture f;
  std::vector<uint64_t> counts(static_cast<size_t>(f.tokenizer.size()));
  counts[10] = 300;
  counts[11] = 100;
  const TokenProperties counted(f.tokenizer, counts);
  auto config = preset<MlmConfig>("spanbert");
  config.mask_prob = 0.5;
  config.random_prob = 0.5;
  Masker masker(config, counted);
  int64_t ten = 0, eleven = 0, spans = 0, masked = 0;
  for (uint64_t row = 0; row < 2000; ++row) {
    std::vector<int64_t> ids(60, 7), positions, labels;
    masker.corrupt(ids.data(), 60, 0, Rng(3).stream("mask", 0, row), positions, labels);
    for (size_t k = 0; k < positions.size(); ++k) {
      const int64_t now = ids[positions[k]];
      const bool mask = now == counted.special.mask, follows = k > 0 && positions[k] == positions[k - 1] + 1;
      if (follows)
        REQUIRE(mask == (ids[positions[k - 1]] == counted.special.mask));
      else
        ++spans, masked += mask;
      if (mask) continue;
      REQUIRE((now == 10 || now == 11));
      ++(now == 10 ? ten : eleven);
    }
  }
  CHECK(std::abs(sigmas(masked, spans, 0.5)) < 4.5);
  CHECK(std::abs(sigmas(ten, ten + eleven, 0.75)) < 4.5);
}

TEST_CASE("special tokens are chosen if the rule allows it", "[objectives]") {
  Fixture f;
  const auto c = run(f, preset<MlmConfig>("fairseq-roberta"), 3000);
  CHECK(std::abs(sigmas(c.special_chosen, c.chosen, 2.0 / 64)) < 4.5);
}

TEST_CASE("gpt-bert's spans tile the text, all lengths are equally likely, and a span shares one draw",
          "[objectives][mntp]") {
  Fixture f;
  auto config = preset<MlmConfig>("gpt-bert");
  config.mlm_probability = 0.3;
  const auto c = run(f, config, 10000);
  CHECK(c.special_chosen == 0);
  CHECK(c.random_special == 0);
  CHECK(c.chosen >= c.rows * 18);  // 0.3 * 62 = 18.6, rounded at random
  CHECK(c.chosen <= c.rows * 19);
  CHECK(std::abs(sigmas(c.chosen - c.rows * 18, c.rows, 0.6)) < 5);
  Masker masker(config, f.vocabulary);
  std::array<double, 4> lengths{};
  int64_t rows_of_masks = 0, alike = 0, spans = 0, masks = 0;
  for (int64_t row = 0; row < 4000; ++row) {
    std::vector<int64_t> ids(64, 7), positions, labels, drawn;
    ids[0] = f.vocabulary.special.cls;
    ids[63] = ids[20] = f.vocabulary.special.sep;
    masker.corrupt(ids.data(), 64, 0, Rng(1).stream("mask", 0, row), positions, labels, &drawn);
    for (const auto n : drawn) ++lengths.at(static_cast<size_t>(n));
    rows_of_masks +=
        std::accumulate(drawn.begin(), drawn.end(), int64_t{0}) >= 61;  // they cover all that may be chosen
    for (size_t k = 0; k + 1 < positions.size(); ++k) {
      if (positions[k + 1] != positions[k] + 1) continue;
      ++spans;
      const bool here = ids[positions[k]] == f.vocabulary.special.mask,
                 next = ids[positions[k + 1]] == f.vocabulary.special.mask;
      alike += here == next;
      masks += here;
    }
  }
  CHECK(rows_of_masks == 4000);
  const double all = lengths[1] + lengths[2] + lengths[3];
  for (size_t n = 1; n <= 3; ++n)
    CHECK(std::abs(sigmas(static_cast<int64_t>(lengths[n]), static_cast<int64_t>(all), 1.0 / 3)) < 5);
  // Of two adjacent tokens most are of one span and share its draw; of two spans they would be alike in 68 %.
  CHECK(static_cast<double>(alike) / static_cast<double>(spans) > 0.85);
  CHECK(static_cast<double>(alike) / static_cast<double>(spans) < 0.97);
  // Adjacent spans draw apart: with draws for whole runs all would be alike.
  CHECK(alike < spans);
}

TEST_CASE("words longer than all predictions of a row are cut, so that no row is without", "[objectives]") {
  Fixture f;
  for (const auto unit : {MaskingUnit::word, MaskingUnit::ngram}) {
    MlmConfig config;
    config.unit = unit;
    Masker masker(config, f.vocabulary);
    std::vector<int64_t> often(40);
    for (uint64_t row = 0; row < 2000; ++row) {
      std::vector<int64_t> ids(40, 60), positions, labels;  // one word of 38 pieces
      ids[0] = f.vocabulary.special.cls;
      ids[1] = 7;
      ids[39] = f.vocabulary.special.sep;
      masker.corrupt(ids.data(), 40, 0, Rng(5).stream("mask", 0, row), positions, labels);
      REQUIRE(positions.size() == 6);
      REQUIRE(positions.back() - positions.front() == 5);
      for (const auto at : positions) ++often[static_cast<size_t>(at)];
    }
    CHECK(often[0] + often[39] == 0);
    CHECK(*std::min_element(often.begin() + 6, often.begin() + 34) > 250);  // about 2000 * 6 / 33
  }
}

TEST_CASE("words that fit into the predictions of a row are never cut for longer ones", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.unit = MaskingUnit::word;
  Masker masker(config, f.vocabulary);
  for (uint64_t row = 0; row < 200; ++row) {
    std::vector<int64_t> ids(60, 7), positions, labels;  // 40 words of one piece, one of 20
    std::fill(ids.begin() + 41, ids.end(), 60);
    masker.corrupt(ids.data(), 60, 0, Rng(6).stream("mask", 0, row), positions, labels);
    REQUIRE(positions.size() == 9);
    REQUIRE(positions.back() < 40);
  }
}

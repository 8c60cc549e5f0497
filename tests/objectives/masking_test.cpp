#include "objectives/masking.h"

#include <cmath>

#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

struct Fixture {
  TempDir dir;
  Tokenizer tokenizer = Tokenizer::open(dir.write("vocab.txt", tiny_vocabulary(50)));
  Vocabulary vocabulary{tokenizer};
};

struct Counts {
  int64_t rows = 0, candidates = 0, chosen = 0, masked = 0, random = 0, kept = 0, special_touched = 0, random_special = 0;
};

/// Masks `rows` rows of [CLS] + 62 words + [SEP], every third token a continuation, and counts.
Counts run(Fixture& f, const MlmConfig& config, int64_t rows) {
  Counts c;
  Masker masker(config, f.vocabulary);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> ids(64), positions, labels;
    for (int64_t i = 0; i < 64; ++i) ids[i] = i % 3 == 2 ? 55 + (i + row) % 50 : 5 + (i * 7 + row) % 50;
    ids[0] = f.vocabulary.special.cls, ids[63] = f.vocabulary.special.sep;
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
      c.special_touched += f.vocabulary.is_special[before[at]];
      if (ids[at] == f.vocabulary.special.mask) ++c.masked;
      else if (ids[at] == before[at]) ++c.kept;
      else ++c.random, c.random_special += f.vocabulary.is_special[ids[at]];
    }
    for (int64_t i = 0; i < 64; ++i)
      if (ids[i] != before[i]) REQUIRE(std::find(positions.begin(), positions.end(), i) != positions.end());
  }
  return c;
}

/// Deviation of a count from its expectation in standard deviations of a binomial.
double sigmas(int64_t observed, int64_t n, double p) { return (observed - n * p) / std::sqrt(n * p * (1 - p)); }

}  // namespace

TEST_CASE("google-bert's rule chooses exactly the rounded share of every sequence, never a special token", "[objectives]") {
  Fixture f;
  MlmConfig config;
  const auto c = run(f, config, 10000);
  CHECK(c.chosen == c.rows * 10);   // round half to even of 0.15 * 64 = 9.6
  CHECK(c.special_touched == 0);
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

TEST_CASE("80, 10 and 10 percent of the chosen are masked, replaced and kept", "[objectives]") {
  Fixture f;
  MlmConfig config;
  const auto c = run(f, config, 100000);
  // A random draw returns the same token once in 105 ids, and [MASK] as often; both move shares by a known amount.
  CHECK(std::abs(sigmas(c.masked, c.chosen, 0.8 + 0.1 / 105)) < 4.5);
  CHECK(std::abs(sigmas(c.kept, c.chosen, 0.1 + 0.1 / 105)) < 4.5);
  CHECK(std::abs(sigmas(c.random, c.chosen, 0.1 * 103 / 105)) < 4.5);
  CHECK(c.random_special > 0);
}

TEST_CASE("random tokens are never special when they are drawn from words", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.random_from = "words";
  CHECK(run(f, config, 5000).random_special == 0);
}

TEST_CASE("huggingface's rule chooses every token on its own", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.count = "bernoulli";
  const auto c = run(f, config, 100000);
  CHECK(std::abs(sigmas(c.chosen, c.candidates, 0.15)) < 4.5);
  CHECK(c.special_touched == 0);
}

TEST_CASE("the stochastic rule has the exact share as its mean", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.count = "stochastic";
  const auto c = run(f, config, 100000);   // 9 or 10 of each row, mean 9.6
  CHECK(std::abs(sigmas(c.chosen - 9 * c.rows, c.rows, 0.6)) < 4.5);
}

TEST_CASE("a limit on predictions holds", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.max_predictions_per_seq = 4;
  CHECK(run(f, config, 100).chosen == 400);
}

TEST_CASE("whole word masking takes every piece of a word or none, and never joins across a special token", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.unit = "word";
  Masker masker(config, f.vocabulary);
  for (uint64_t row = 0; row < 500; ++row) {
    // [CLS] w ##c w ##c ##c w ... [SEP] ##c: the last piece stands alone behind a separator.
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
      if (!f.vocabulary.starts_word[before[i]]) REQUIRE(chosen[i] == chosen[i - 1]);
  }
}

TEST_CASE("one draw for a word replaces all of its pieces alike", "[objectives]") {
  Fixture f;
  MlmConfig config;
  config.unit = "word", config.draw_per = "word";
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

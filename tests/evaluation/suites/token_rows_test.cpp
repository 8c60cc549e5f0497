// Log-probabilities at chosen positions against single rows of the plain network.
#include "evaluation/suites/token_rows.h"

#include "tests/inference/scoring/random_run.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// What a row asks for, by a loop over its logits.
std::vector<double> slow(const LoadedRun& run, const TokenRow& row, bool bidirectional = false) {
  Inputs inputs{.input_ids = row_of(row.read.ids)};
  if (!row.read.decoder.empty()) inputs.decoder_input_ids = row_of(row.read.decoder);
  if (bidirectional) inputs.prefix = at::full({1}, static_cast<int64_t>(row.read.ids.size()), at::kLong);
  const auto logits = logits_of(run, inputs);
  std::vector<double> found;
  for (const auto& [position, target] : row.predicted) found.push_back(log_probability(logits[position], target));
  return found;
}

/// Rows of three lengths, one of them twice with other questions.
std::vector<TokenRow> some_rows(const Ids& decoder = {}) {
  const auto row = [&](const Ids& ids, const std::vector<PredictedToken>& asked) {
    return TokenRow{.read = {.ids = ids, .decoder = decoder}, .predicted = asked};
  };
  return {row({2, 6, 8, 3}, {{1, 9}, {0, 7}}), row({2, 7, 4, 14, 3}, {{2, 13}}), row({2, 6, 8, 3}, {{1, 9}}),
          row({2, 16, 8, 3}, {{1, 5}}),        row({5, 6}, {{1, 6}, {1, 5}}),    row({5, 6, 7}, {})};
}

void check_rows(const LoadedRun& run, const std::vector<TokenRow>& rows, bool bidirectional = false) {
  const auto found = log_probabilities(run, rows, bidirectional);
  REQUIRE(found.size() == rows.size());
  for (size_t r = 0; r < rows.size(); ++r)
    check_values({found[r].begin(), found[r].end()}, slow(run, rows[r], bidirectional));
}

}  // namespace

TEST_CASE("asked tokens have the log-probabilities of their row alone", "[suites][rows]") {
  const auto name = GENERATE("bert", "roberta", "gpt2", "modernbert");
  INFO(name);
  const TempDir dir;
  check_rows(random_run(dir, name), some_rows());
}

TEST_CASE("an encoder-decoder is asked at positions of its decoder", "[suites][rows]") {
  const auto name = GENERATE("bart", "t5");
  INFO(name);
  const TempDir dir;
  const auto run = random_run(dir, name);
  check_rows(run, some_rows({3, 4, 6}));
}

TEST_CASE("a decoder that reads in both directions is asked as a prefix", "[suites][rows]") {
  const TempDir dir;
  const auto run = random_run(dir, family("gpt2").model, {default_objective<MntpConfig>()});
  check_rows(run, some_rows(), true);
  CHECK(log_probabilities(run, some_rows(), true)[0] != log_probabilities(run, some_rows(), false)[0]);
}

TEST_CASE("equal rows have the same bits, however many rows and questions there are", "[suites][rows]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  std::vector<TokenRow> rows;
  for (int64_t copy = 0; copy < 900; ++copy)  // more questions than logits are made at a time
    rows.push_back({.read = {.ids = {2, 6 + copy % 3, 8, 3}, .decoder = {}}, .predicted = {{1, copy % 20}}});
  const auto found = log_probabilities(run, rows);
  for (size_t r = 0; r + 60 < found.size(); ++r) CHECK(found[r] == found[r + 60]);
  for (size_t r = 0; r < 60; ++r) check_values({found[r][0]}, slow(run, rows[r]));
}

TEST_CASE("a row that is too long, logits that are not finite and a run without a head are refused", "[suites][rows]") {
  const TempDir dir;
  const auto run = random_run(dir, "gpt2");
  const TokenRow longest{.read = {.ids = Ids(40, 6), .decoder = {}}, .predicted = {{39, 7}}};
  check_rows(run, {longest});
  auto longer = longest;
  longer.read.ids.push_back(6);
  CHECK_THROWS_AS(log_probabilities(run, {longer}), DataError);
  CHECK_THROWS_WITH(log_probabilities(run, {longer}), Contains("runs/random: reads at most 40 tokens; a text has 41"));
  const auto pairs = random_run(dir, family("bert").model, {default_objective<NspConfig>()});
  CHECK_THROWS_AS(log_probabilities(pairs, some_rows()), ConfigError);
  CHECK_THROWS_WITH(log_probabilities(pairs, some_rows()), Contains("has no head that predicts tokens"));
  {
    const at::NoGradGuard no_grad;
    for (const auto& [key, param] : collect_params(*run.network))
      if (key.ends_with("embeddings.word")) param.value()[8].fill_(std::nan(""));
  }
  CHECK_THROWS_AS(log_probabilities(run, some_rows()), DataError);
  CHECK_THROWS_WITH(log_probabilities(run, some_rows()),
                    Contains("runs/random: its logits for the text '") && Contains("take an earlier checkpoint"));
}

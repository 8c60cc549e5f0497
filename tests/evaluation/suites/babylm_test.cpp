// Choices and correlations of the published BabyLM program.
#include "evaluation/suites/babylm.h"

#include <cmath>

#include "tests/evaluation/suites/reference.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;

namespace {

using Floats = std::vector<float>;
constexpr float nan_float = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("the published program takes the first of the largest sums, or of those that are no numbers",
          "[suites][babylm]") {
  CHECK(babylm_choice(Floats{-3, -1, -2}) == 1);
  CHECK(babylm_choice(Floats{-1, -1}) == 0);
  CHECK(babylm_choice(Floats{-2, -1, -1}) == 1);
  CHECK(babylm_choice(Floats{-2, nan_float, -1, nan_float}) == 1);
  const float infinite = -std::numeric_limits<float>::infinity();
  CHECK(babylm_choice(Floats{infinite, infinite}) == 0);
  for (const auto& sums : {Floats{-3, -1, -2}, Floats{-2, nan_float, -1}, Floats{-1, -1, -4}})
    CHECK(babylm_choice(sums) == static_cast<size_t>(at::tensor(sums).argmax(0).item<int64_t>()));
}

TEST_CASE("the probability of the first candidate is a softmax in fp32", "[suites][babylm]") {
  CHECK(babylm_first_probability(Floats{-10, -10}) == 0.5f);
  CHECK(babylm_first_probability(Floats{-10, -12}) == Approx(1 / (1 + std::exp(-2.0))).epsilon(1e-6));
  CHECK(babylm_first_probability(Floats{40, 0}) == 1.0f);
  CHECK(babylm_first_probability(Floats{-1, -2, -3}) == Approx(0.6652409557748219).epsilon(1e-6));
}

TEST_CASE("sums are added in fp32, from log-probabilities that are rounded first", "[suites][babylm]") {
  PassageScore score;
  for (const double value : {-100.0, -1e-6, -1e-6}) score.tokens.push_back({.end = 5, .log_probability = value});
  CHECK(babylm_sum(Passage{.scored = "owl"}, score) == -100.0f);
  score.tokens[0].end = 4;  // a space before the completion
  CHECK(babylm_sum(Passage{.left = "cat ", .scored = "owl"}, score) == -2e-6f);
  score.tokens[0].end = 0;  // a mark of the start of the first word, a token of its own
  CHECK(babylm_sum(Passage{.scored = "owl"}, score) == -100.0f);
  CHECK(babylm_sum(Floats{-1.5f, -2.25f}) == -3.75f);
  CHECK(babylm_sum(Floats{}) == 0.0f);
}

TEST_CASE("Spearman's correlation has the bits of SciPy's", "[suites][babylm]") {
  for (const auto& one : reference("statistics.json", "pairs"))
    CHECK(babylm_spearman(one["a"], one["b"]) == one["spearman"].get<double>());
  CHECK(std::isnan(babylm_spearman({1, 1, 1}, {1, 2, 3})));
  CHECK(std::isnan(babylm_spearman({1, NAN, 1}, {1, 2, 3})));
  CHECK_THROWS_AS(babylm_spearman({1, 2}, {1}), DataError);
}

TEST_CASE("the backend is that of the first objective that the published program scores", "[suites][babylm]") {
  RunConfig config;
  config.model = Gpt2Config{};
  config.objectives = {default_objective<ClmConfig>()};
  CHECK(babylm_backend(config) == BabylmBackend::causal);
  config.objectives = {default_objective<MntpConfig>()};
  CHECK(babylm_backend(config) == BabylmBackend::mntp);
  config.model = BertConfig{};
  config.objectives = {default_objective<NspConfig>(), default_objective<MlmConfig>()};
  CHECK(babylm_backend(config) == BabylmBackend::mlm);
  config.objectives = {default_objective<RtdConfig>()};
  CHECK_FALSE(babylm_backend(config));
  config.model = XlnetConfig{};
  config.objectives = {default_objective<PlmConfig>()};
  CHECK_FALSE(babylm_backend(config));
  config.model = BartConfig{};
  config.objectives = {default_objective<DenoisingConfig>()};
  CHECK(babylm_backend(config) == BabylmBackend::enc_dec_prefix);
}

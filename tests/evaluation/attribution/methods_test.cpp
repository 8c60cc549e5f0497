// Methods of attribution by what they promise, and by slow forms.
#include "evaluation/attribution/methods.h"

#include <cmath>
#include <numeric>

#include "tests/evaluation/attribution/attributed.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

bool is_near(double got, double wanted, double tolerance) { return std::abs(got - wanted) <= tolerance; }

/// Shapley values by all subsets. Source: Shapley 1953, equation 12.
std::vector<double> exact_shapley(const OneRow& one, size_t words) {
  std::vector<double> scores;
  for (size_t subset = 0; subset < size_t{1} << words; ++subset) {
    std::vector<bool> present(words);
    for (size_t w = 0; w < words; ++w) present[w] = subset >> w & 1;
    scores.push_back(one.score_of(present));
  }
  std::vector<double> values(words, 0);
  for (size_t w = 0; w < words; ++w)
    for (size_t subset = 0; subset < scores.size(); ++subset) {
      if (subset >> w & 1) continue;
      const auto size = static_cast<double>(std::popcount(subset)), all = static_cast<double>(words);
      const double weight = std::exp(std::lgamma(size + 1) + std::lgamma(all - size) - std::lgamma(all + 1));
      values[w] += weight * (scores[subset | size_t{1} << w] - scores[subset]);
    }
  return values;
}

double sum_of_values(const Attribution& made) { return std::accumulate(made.values.begin(), made.values.end(), 0.0); }

}  // namespace

TEST_CASE("the points of Gauss and Legendre are NumPy's, and integrate what they promise",
          "[evaluation][attribution]") {
  const auto five = gauss_legendre(5);
  const std::vector<std::pair<double, double>> wanted{{0.04691007703066802, 0.11846344252809464},
                                                      {0.23076534494715845, 0.23931433524968315},
                                                      {0.5, 0.28444444444444433},
                                                      {0.7692346550528415, 0.23931433524968315},
                                                      {0.9530899229693319, 0.11846344252809464}};
  for (size_t i = 0; i < 5; ++i) {
    CHECK(is_near(five[i].first, wanted[i].first, 1e-15));
    CHECK(is_near(five[i].second, wanted[i].second, 1e-15));
  }
  const auto fifty = gauss_legendre(50);
  CHECK(is_near(fifty[0].first, 0.0005667977899644905, 1e-15));
  CHECK(is_near(fifty[0].second, 0.0014543112765789633, 1e-14));
  CHECK(is_near(fifty[20].first, 0.36185590311023397, 1e-15));
  CHECK(is_near(fifty[20].second, 0.029892529352132657, 1e-15));
  double ninth = 0;
  for (const auto& [x, weight] : five) ninth += weight * std::pow(x, 9);
  CHECK(is_near(ninth, 0.1, 1e-15));
  CHECK(gauss_legendre(1) == std::vector<std::pair<double, double>>{{0.5, 1}});
}

TEST_CASE("integrated gradients sum to the score above the baseline, and are those of a fine midpoint rule",
          "[evaluation][attribution]") {
  const OneRow one(6);
  const auto made = one.attribution({.points = 60});
  CHECK(is_near(made.score, one.score_of(std::vector<bool>(6, true)), 1e-6));
  CHECK(is_near(made.baseline, one.score_of(std::vector<bool>(6, false)), 1e-6));
  CHECK(is_near(sum_of_values(made), made.score - made.baseline, 1e-4));
  CHECK(is_near(*made.check,
                std::abs(sum_of_values(made) - made.score + made.baseline) / std::abs(made.score - made.baseline),
                1e-12));
  constexpr int steps = 2000;
  std::vector<RowVariant> way;
  for (int i = 0; i < steps; ++i) {
    way.push_back({.kept = std::vector<float>(8, static_cast<float>((i + 0.5) / steps))});
    way.back().kept.front() = way.back().kept.back() = 1;
  }
  std::vector<double> slow(8, 0);
  for (const auto& at : score_variants(one.in(), way, TokenGradient::by_difference))
    for (size_t t = 0; t < 8; ++t) slow[t] += at.gradients[t] / steps;
  for (size_t w = 0; w < 6; ++w) CHECK(is_near(made.values[w], slow[w + 1], 1e-4));
}

TEST_CASE("integrated gradients of too few points are refused with how far they are off", "[evaluation][attribution]") {
  OneRow one(6);
  CHECK(one.attribution({.points = 60}).points == 60);
  CHECK(one.attribution({.points = 1}).points > 1);
  const auto table = one.network->backbone->token_embedding().value();
  table.mul_(at::exp(at::arange(23, at::kFloat) * 0.4).unsqueeze(1));  // a way that is longer than one point sees
  CHECK_THROWS_WITH(one.attribution({.points = 1}),
                    Catch::Contains("t: the integrated gradients of 8 points sum to ") &&
                        Catch::Contains(" % off, of which 1 % is allowed; raise --points"));
}

TEST_CASE("a score that is that of its baseline but for rounding is complete", "[evaluation][attribution]") {
  OneRow one(3);
  for (auto at : {1, 2, 3}) one.rows[0].ids[static_cast<size_t>(at)] = 4;  // the baseline itself
  const auto table = one.network->backbone->token_embedding().value();
  one.rows[0].ids[2] = 9;
  table[9].copy_(table[4] * (1 + 1e-6));
  const auto made = one.attribution({.points = 2});
  CHECK(std::abs(made.score - made.baseline) < 1e-5);
  CHECK(made.points == 2);
}

TEST_CASE("sampled Shapley values come close to those of all subsets, and sum to the score above the baseline",
          "[evaluation][attribution]") {
  const OneRow one(6);
  const auto exact = exact_shapley(one, 6);
  const auto few = one.attribution({.method = AttributionMethod::shap, .samples = 4});
  const auto many = one.attribution({.method = AttributionMethod::shap, .samples = 2000});
  double off_by_few = 0, off_by_many = 0;
  for (size_t w = 0; w < 6; ++w) {
    off_by_few = std::max(off_by_few, std::abs(few.values[w] - exact[w]));
    off_by_many = std::max(off_by_many, std::abs(many.values[w] - exact[w]));
  }
  CHECK(off_by_many < 0.02 * std::abs(many.score - many.baseline) + 0.01);
  CHECK(off_by_many < off_by_few);
  for (const auto& made : {few, many}) {
    CHECK(is_near(sum_of_values(made), made.score - made.baseline, 1e-9));
    CHECK(*made.check < 1e-9);
  }
}

TEST_CASE("of two words an order and its reverse are all orders: the values are Shapley's",
          "[evaluation][attribution]") {
  const OneRow one(2);
  const auto exact = exact_shapley(one, 2);
  const auto made = one.attribution({.method = AttributionMethod::shap, .samples = 1});
  for (size_t w = 0; w < 2; ++w) CHECK(is_near(made.values[w], exact[w], 1e-6));
  const auto single = OneRow(1).attribution({.method = AttributionMethod::shap});
  CHECK(is_near(single.values.at(0), single.score - single.baseline, 1e-12));
}

TEST_CASE("samples are drawn by the seed, the item and the part, whatever stands beside it",
          "[evaluation][attribution]") {
  OneRow one(7);
  const AttributionOptions options{.method = AttributionMethod::shap, .samples = 2, .seed = 3};
  const auto first = one.attribution(options);
  one.rows.push_back(row_of_words(4, 9));
  one.scores = {{.row = 1, .column = 0}, {.row = 0, .column = 1, .among = ProbabilityAmong::labels}};
  one.explained.insert(one.explained.begin(), single_tokens(one.rows[1]));
  one.explained[0].name = "other";
  CHECK(attributions_of(one.in(), one.explained, options)[1].values == first.values);
  auto seeded = options;
  seeded.seed = 4;
  CHECK(attributions_of(one.in(), one.explained, seeded)[1].values != first.values);
  one.explained[1].part = "end";
  CHECK(attributions_of(one.in(), one.explained, options)[1].values != first.values);
}

TEST_CASE("the linear model of words is NumPy's weighted ridge regression", "[evaluation][attribution]") {
  const std::vector<std::vector<bool>> present{{1, 1, 1, 1}, {1, 0, 1, 1}, {0, 0, 1, 0}, {0, 0, 0, 0},
                                               {1, 1, 0, 0}, {0, 1, 1, 1}, {1, 0, 0, 1}};
  const auto model = fitted_words(present, {2.5, 1.75, -0.5, -1.25, 0.75, 1.0, 0.25});
  const std::vector<double> wanted{0.45402216665828465, 0.3042462741799081, 0.49521602556968825, 0.29210562379040855};
  for (size_t w = 0; w < 4; ++w) CHECK(is_near(model.slopes[w], wanted[w], 1e-12));
  CHECK(is_near(model.r_squared, 0.5820130029884949, 1e-12));
}

TEST_CASE("drawn texts lack from one word to all, each number as often, and every word as often",
          "[evaluation][attribution]") {
  auto stream = Rng(5).stream("lime");
  std::vector<int> lacking(7, 0), without(6, 0);
  for (int i = 0; i < 6000; ++i) {
    const auto present = drawn_words(6, stream);
    ++lacking[static_cast<size_t>(std::count(present.begin(), present.end(), false))];
    for (size_t w = 0; w < 6; ++w) without[w] += !present[w];
  }
  CHECK(lacking[0] == 0);
  for (size_t n = 1; n <= 6; ++n) CHECK(std::abs(lacking[n] - 1000) < 120);
  for (const auto count : without) CHECK(std::abs(count - 3500) < 150);
}

TEST_CASE("LIME says how well its line fits, and is the line of the texts that it draws", "[evaluation][attribution]") {
  const OneRow one(5);
  const auto made = one.attribution({.method = AttributionMethod::lime, .samples = 300, .seed = 2});
  auto stream = Rng(2).stream("lime", name_hash("t\n"));
  std::vector<std::vector<bool>> texts{std::vector<bool>(5, true)};
  std::vector<double> scores;
  while (texts.size() < 300) texts.push_back(drawn_words(5, stream));
  for (const auto& text : texts) scores.push_back(one.score_of(text));
  const auto model = fitted_words(texts, scores);
  for (size_t w = 0; w < 5; ++w) CHECK(is_near(made.values[w], model.slopes[w], 1e-5));
  CHECK(is_near(*made.check, model.r_squared, 1e-5));
  CHECK(*made.check <= 1);
}

TEST_CASE("occlusion is the score less that without the word, and tokens of a word go and count together",
          "[evaluation][attribution]") {
  OneRow one(5);
  auto& words = one.explained[0].words;
  words[1].positions.push_back(words[2].positions[0]);
  words.erase(words.begin() + 2);
  const auto occluded = one.attribution({.method = AttributionMethod::occlusion});
  REQUIRE(occluded.values.size() == 4);
  CHECK(is_near(occluded.values[1], occluded.score - one.score_of({true, false, true, true}), 1e-6));
  CHECK(!occluded.check);
  const auto joined = one.attribution({.method = AttributionMethod::gradient_norm});
  const auto apart = OneRow(5).attribution({.method = AttributionMethod::gradient_norm});
  CHECK(is_near(joined.values[1], apart.values[1] + apart.values[2], 1e-5));
  CHECK(is_near(joined.values[2], apart.values[3], 1e-5));
}

TEST_CASE("rollout is the product of attentions mixed with the identity, read where the head reads",
          "[evaluation][attribution]") {
  const OneRow one(4);
  Traces traces;
  const auto setting = labelled_setting(one.network->model_config(), one.objectives);
  {
    const at::NoGradGuard no_grad;
    one.network->backbone->hidden(labelled_batch(setting, {&one.rows[0]}, false), &traces);
  }
  std::vector<std::vector<double>> all(6, std::vector<double>(6, 0));
  for (size_t i = 0; i < 6; ++i) all[i][i] = 1;
  for (const auto& layer : traces.encoder.attentions) {
    auto next = std::vector<std::vector<double>>(6, std::vector<double>(6, 0));
    for (int64_t q = 0; q < 6; ++q)
      for (int64_t k = 0; k < 6; ++k) {
        double mixed = q == k ? 0.5 : 0;
        for (int64_t h = 0; h < 3; ++h) mixed += layer[0][h][q][k].item<double>() / 6;
        for (size_t j = 0; j < 6; ++j) next[static_cast<size_t>(q)][j] += mixed * all[static_cast<size_t>(k)][j];
      }
    all = next;
  }
  const auto made = one.attribution({.method = AttributionMethod::rollout});
  for (size_t w = 0; w < 4; ++w) CHECK(is_near(made.values[w], all[0][w + 1], 1e-6));
  const auto mean = rolled_out(*one.network, setting, one.rows[0], -1);
  CHECK(is_near(std::accumulate(mean.begin(), mean.end(), 0.0), 1, 1e-6));
  CHECK(is_near(mean[2], (all[0][2] + all[1][2] + all[2][2] + all[3][2] + all[4][2] + all[5][2]) / 6, 1e-6));
}

TEST_CASE("rollout is refused where attention has no matrix of its stack", "[evaluation][attribution]") {
  auto longformer = small<LongformerConfig>();
  longformer.attention = WindowAttention{.attention_window = {4}, .global_tokens = GlobalTokens::none};
  for (const auto& model : {ModelConfig(longformer), ModelConfig(small<BartConfig>())}) {
    INFO(kind_of(model));
    CHECK_THROWS_WITH(OneRow(4, model).attribution({.method = AttributionMethod::rollout}),
                      Catch::Contains("--method rollout: follows the attention of one stack over all its tokens"));
  }
}

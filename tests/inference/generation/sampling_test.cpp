#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "tests/inference/generation/fake_model.h"

using namespace cloze;

namespace {

/// The definitions as sorts over the whole vocabulary, in double.
std::map<int64_t, double> naive_distribution(std::vector<double> x, const SearchConfig& c) {
  const size_t n = x.size();
  for (auto& v : x) v /= c.temperature;
  const auto softmax = [&] {
    std::vector<double> p;
    double sum = 0;
    for (const auto v : x) p.push_back(std::exp(v)), sum += p.back();
    for (auto& v : p) v /= sum;
    return p;
  };
  const auto ordered = [&](const std::vector<double>& key) {
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key[a] < key[b]; });
    return order;
  };
  const auto keep_until = [&](const std::vector<double>& key, double mass) {
    const auto p = softmax();
    double before = 0;
    for (const auto i : ordered(key)) {
      if (before >= mass && before > 0) x[i] = -std::numeric_limits<double>::infinity();
      before += p[i];
    }
  };
  const auto negative = [&] {
    auto key = x;
    for (auto& v : key) v = -v;
    return key;
  };
  if (c.top_k > 0) {
    const auto order = ordered(negative());
    for (size_t i = static_cast<size_t>(c.top_k); i < n; ++i) x[order[i]] = -std::numeric_limits<double>::infinity();
  }
  if (c.top_p < 1) keep_until(negative(), c.top_p);
  if (c.typical_p < 1) {
    const auto p = softmax();
    double entropy = 0;
    for (const auto v : p) entropy -= v > 0 ? v * std::log(v) : 0;
    std::vector<double> key;
    for (const auto v : p) key.push_back(std::abs(-std::log(v) - entropy));
    keep_until(key, c.typical_p);
  }
  std::map<int64_t, double> out;
  const auto p = softmax();
  for (size_t i = 0; i < n; ++i)
    if (p[i] > 0) out[static_cast<int64_t>(i)] = p[i];
  return out;
}

}  // namespace

TEST_CASE("the sampling distribution equals that of the logits processors of transformers in sequence", "[search]") {
  Fake model(12, 11, 1, 0);
  model.start({{7, 9}}, 1);
  const SearchConfig c{.do_sample = true,
                       .temperature = 0.7,
                       .top_p = 0.95,
                       .typical_p = 0.9,
                       .top_k = 8,
                       .repetition_penalty = 1.5,
                       .eos_token_id = 2};
  const auto kept = distribution(model.step({9}, {}), 12, {7, 9}, 2, c);
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].first == 4);
  CHECK(kept[0].second == Approx(0.6795517802).epsilon(1e-6));
  CHECK(kept[1].first == 11);
  CHECK(kept[1].second == Approx(0.3204481900).epsilon(1e-6));
}

TEST_CASE("temperature, top-k, top-p and typical sampling keep the tokens that their definitions keep", "[search]") {
  for (const int64_t vocab : {3, 50, 67, 3001})
    for (const float scale : {0.25F, 1.0F, 3.0F})
      for (const double temperature : {1.0, 0.6, 2.0})
        for (const int64_t top_k : {0, 1, 40})
          for (const double top_p : {1.0, 0.9, 0.3})
            for (const double typical : {1.0, 0.9, 0.2}) {
              const SearchConfig c{.do_sample = true,
                                   .temperature = temperature,
                                   .top_p = top_p,
                                   .typical_p = typical,
                                   .top_k = std::min(top_k, vocab)};
              INFO("vocab " << vocab << " scale " << scale << " temperature " << temperature << " top_k " << top_k
                            << " top_p " << top_p << " typical " << typical);
              const auto logits = random_logits(vocab, 5 + static_cast<uint64_t>(vocab), scale);
              const auto expected = naive_distribution({logits.begin(), logits.end()}, c);
              const auto kept = distribution(logits.data(), vocab, {0}, 1, c);
              REQUIRE(kept.size() == expected.size());
              double largest = 0;
              for (const auto& [id, p] : kept) {
                REQUIRE(expected.count(id) == 1);
                largest = std::max(largest, std::abs(p - expected.at(id)));
              }
              CHECK(largest < 1e-6);
            }
}

TEST_CASE("the repetition penalty is applied once per token, however often the token occurs", "[search]") {
  const std::vector<float> logits = {1, -1, 0.5, 2};
  const SearchConfig c{.do_sample = true, .repetition_penalty = 2};
  const auto found = distribution(logits.data(), 4, {1, 3, 3, 1, 99}, 1, c),
             expected = distribution(std::vector<float>{1, -2, 0.5, 1}.data(), 4, {0}, 1, {.do_sample = true});
  for (size_t i = 0; i < 4; ++i) CHECK(found[i].second == Approx(expected[i].second));
}

TEST_CASE("draws follow the distribution, and the score is their log-probability", "[search]") {
  const SearchConfig c{
      .max_new_tokens = 1, .num_return_sequences = 20000, .do_sample = true, .temperature = 1.3, .top_k = 5};
  Fake model(30, 3, 0.5, 0);
  model.start({{4}}, 1);
  const auto kept = distribution(model.step({4}, {}), 30, {4}, 1, c);
  std::map<int64_t, double> count;
  const auto texts = run({30, 3, 0.5, 0}, {{4}}, c);
  for (const auto& g : texts[0]) {
    count[g.ids[1]] += 1;
    const auto it = std::find_if(kept.begin(), kept.end(), [&](const auto& k) { return k.first == g.ids[1]; });
    REQUIRE(it != kept.end());
    REQUIRE(g.score == Approx(std::log(it->second)));
  }
  double chi = 0;
  for (const auto& [id, p] : kept) chi += (count[id] - 20000 * p) * (count[id] - 20000 * p) / (20000 * p);
  CHECK(chi < 18.5);  // 99.9 % of chi-square with 4 degrees of freedom
  CHECK(count.size() == 5);
}

TEST_CASE("a draw depends on seed, number of the prompt, sequence and position, never on the batch", "[search]") {
  const SearchConfig c{.max_new_tokens = 9, .num_return_sequences = 2, .do_sample = true};
  const Fake model(200, 1, 0.5, 0);
  const auto both = run(model, {{3, 4}, {5, 6}}, c), second = run(model, {{5, 6}}, c, {1});
  for (size_t i = 0; i < 2; ++i) CHECK(both[1][i].ids == second[0][i].ids);
  CHECK(both[0][0].ids != both[0][1].ids);
  CHECK(run(model, {{5, 6}}, c)[0][0].ids != second[0][0].ids);
  auto other = c;
  other.seed = 2;
  CHECK(run(model, {{5, 6}}, other, {1})[0][0].ids != second[0][0].ids);
  Fixed flat(std::vector<float>(100));  // here only the draws differ
  const auto drawn = search(flat, {{5}}, {.max_new_tokens = 50, .do_sample = true})[0][0].ids;
  CHECK(std::set<int64_t>(drawn.begin(), drawn.end()).size() > 25);
}

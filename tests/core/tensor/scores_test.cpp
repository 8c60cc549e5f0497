#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "core/kernels/kernels.h"
#include "core/tensor/plain.h"
#include "tests/support/compare.h"
#include "tests/support/isa.h"

using namespace cloze;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN(),
                lowest = std::numeric_limits<float>::lowest();

}  // namespace

TEST_CASE(
    "loops over scores equal their formulas, for every instruction set, with forbidden tokens and non-finite numbers",
    "[kernels][scores]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto& over = kernels::table().scores;
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 5);
  for (const int64_t n : {1, 15, 16, 17, 64, 70, 1000, 5003}) {
    INFO(isa << ", " << n << " scores");
    std::vector<float> x(static_cast<size_t>(n));
    for (auto& v : x) v = normal(random);
    if (n > 2) x[static_cast<size_t>(n) / 2] = -infinity;
    float highest = lowest;
    for (const float v : x) highest = std::max(highest, v);
    double all = 0, kept = 0;
    for (const float v : x) {
      all += std::exp(double{v} - double{highest});
      if (v >= highest - 6) kept += std::exp(double{v} - double{highest});
    }
    CHECK(over.largest(n, x.data()) == highest);
    const auto [max, log] = over.log_sum(n, x.data());
    CHECK(max == highest);
    CHECK(log == Approx(std::log(all)).margin(2e-6));
    std::vector<float> out(static_cast<size_t>(n) + 1, 77);
    over.minus(n, x.data(), 1.5F, 0.25F, out.data());
    for (size_t i = 0; i < x.size(); ++i) CHECK(out[i] == (x[i] - 1.5F) - 0.25F);
    CHECK(over.weights(n, x.data(), highest - 6, highest, out.data()) == Approx(kept).epsilon(1e-6));
    for (size_t i = 0; i < x.size(); ++i)
      CHECK(out[i] ==
            (x[i] >= highest - 6 ? Approx(std::exp(double{x[i]} - double{highest})).epsilon(1e-6) : Approx(0)));
    CHECK(out.back() == 77);  // nothing is written after the row
    for (const float bound : {-infinity, highest - 3, highest}) {
      std::vector<int64_t> found, wanted;
      for (int64_t i = over.next_above(x.data(), 0, n, 0.5F, bound); i < n;
           i = over.next_above(x.data(), i + 1, n, 0.5F, bound))
        found.push_back(i);
      for (int64_t i = 0; i < n; ++i)
        if (x[static_cast<size_t>(i)] + 0.5F > bound) wanted.push_back(i);
      CHECK(found == wanted);
    }
    for (const float bad : {nan_value, infinity}) {
      auto broken = x;
      broken.back() = bad;
      CHECK(std::isnan(over.log_sum(n, broken.data()).log));
      CHECK(std::isnan(over.weights(n, broken.data(), lowest, highest, out.data())));
    }
    const std::vector<float> forbidden(static_cast<size_t>(n), -infinity);
    CHECK(over.largest(n, forbidden.data()) == lowest);
    CHECK(over.log_sum(n, forbidden.data()).max == lowest);
    CHECK(over.next_above(forbidden.data(), 0, n, 0, lowest) == n);
  }
}

TEST_CASE("sums of exponentials are those of fp64, over blocks of a row and for every instruction set",
          "[kernels][scores]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  const auto add = kernels::table().scores.add_exponentials;
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 20);
  const auto log_sum = [](const kernels::ExpSum& sum) { return double{sum.max} + std::log(sum.total); };
  for (const int64_t n : {1, 15, 16, 17, 40, 70, 5003}) {
    INFO(isa << ", " << n << " scores");
    std::vector<float> x(static_cast<size_t>(n)), bias(x.size()), both(x.size());
    for (auto& v : x) v = normal(random);
    for (auto& v : bias) v = normal(random);
    if (n > 2) x[1] = -infinity;
    for (size_t i = 0; i < x.size(); ++i) both[i] = x[i] + bias[i];
    const auto wanted = [](const std::vector<float>& values) {
      const double max = *std::max_element(values.begin(), values.end());
      double total = 0;
      for (const float v : values) total += std::exp(double{v} - max);
      return max + std::log(total);
    };
    kernels::ExpSum bare, shifted, blocks;
    add(n, x.data(), nullptr, bare);
    CHECK(log_sum(bare) == Approx(wanted(x)).epsilon(1e-14));
    add(n, x.data(), bias.data(), shifted);
    CHECK(log_sum(shifted) == Approx(wanted(both)).epsilon(1e-14));
    for (int64_t c = 0; c < n; c += 32) add(std::min<int64_t>(32, n - c), x.data() + c, nullptr, blocks);
    CHECK(log_sum(blocks) == Approx(wanted(x)).epsilon(1e-14));
    for (const float bad : {nan_value, infinity}) {
      auto broken = x;
      broken.back() = bad;
      kernels::ExpSum sum;
      add(n, broken.data(), nullptr, sum);
      CHECK_FALSE(std::isfinite(log_sum(sum)));
    }
  }
}

TEST_CASE("a loss over NaN logits is NaN", "[kernels][scores]") {
  const auto isa = GENERATE_REF(from_range(tested_isas()));
  const UseIsa use(isa);
  for (const uint32_t bits : {0x7FC00000U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {  // as CPUs and GPUs encode NaN
    auto weights = numbers({40, 3}, 0.4);
    weights[20].fill_(std::bit_cast<float>(bits));  // of a token that is not a label
    const Param table(weights.set_requires_grad(true), Init::weight);
    CHECK(std::isnan(token_cross_entropy(numbers({2, 3}, 0.3).set_requires_grad(true), table, Param(),
                                         at::tensor({2, 5}, at::kLong), {}, nullptr)
                         .item<float>()));
  }
}

TEST_CASE("losses of single predictions add up to the summed loss, computed in blocks of rows", "[kernels][scores]") {
  const int64_t rows = 700, width = 9001;  // more than one block
  const Param table(numbers({width, 6}, 0.4), Init::weight);
  const auto hidden = numbers({rows, 6}, 0.7);
  const auto labels = (at::arange(rows, at::kLong) * 7919).remainder(width);
  Tensor correct;
  const auto sum = plain::token_cross_entropy(hidden, table, Param(), labels, {}, &correct);
  const auto scores = token_scores(hidden, table, Param(), labels);
  CHECK(scores.loss.numel() == rows);
  CHECK(scores.loss.sum(at::kDouble).item<double>() == Approx(sum.item<double>()).epsilon(1e-5));
  CHECK(scores.correct.sum().item<int64_t>() == correct.item<int64_t>());
  const auto logits = hidden.to(at::kDouble).matmul(table.value().to(at::kDouble).t());
  const auto wanted = -at::log_softmax(logits, -1).gather(-1, labels.unsqueeze(-1)).squeeze(-1);
  CHECK((scores.loss.to(at::kDouble) - wanted).abs().max().item<double>() < 1e-5);
  TokenDraw whole{.temperature = 0.5, .uniform = uniform_numbers(rows, 5)}, with_scores = whole;
  whole.drawn = draw_tokens(hidden, table, Param(), whole);
  token_scores(hidden, table, Param(), labels, &with_scores);
  CHECK(at::equal(whole.drawn, with_scores.drawn));
  CHECK(token_scores(hidden.narrow(0, 0, 0), table, Param(), labels.narrow(0, 0, 0)).loss.numel() == 0);
}

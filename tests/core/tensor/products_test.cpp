#include "core/tensor/products.h"

#include <ATen/Parallel.h>

#include "core/kernels/products.h"
#include "tests/support/compare.h"
#include "tests/support/isa.h"

using namespace cloze;

namespace {

/// Sums of products in double, by loops.
Tensor by_loops(const Tensor& a, const Tensor& b) {
  const auto x = a.to(at::kDouble).contiguous(), y = b.to(at::kDouble).contiguous();
  auto out = at::zeros({a.size(0), b.size(1)}, at::kDouble);
  for (int64_t i = 0; i < a.size(0); ++i)
    for (int64_t j = 0; j < b.size(1); ++j)
      for (int64_t k = 0; k < a.size(1); ++k)
        out.data_ptr<double>()[i * b.size(1) + j] +=
            x.data_ptr<double>()[i * a.size(1) + k] * y.data_ptr<double>()[k * b.size(1) + j];
  return out;
}

double furthest(const Tensor& found, const Tensor& wanted) {
  return ((found.to(at::kDouble) - wanted).abs() / (wanted.abs() + 1)).max().item<double>();
}

constexpr double rounding = 1.0 / 256;  // of a bf16 number

}  // namespace

TEST_CASE("products of bf16 matrices equal loops in double, at every edge of their panels and tiles", "[kernels]") {
  const int threads = GENERATE(1, 2);  // alone, a thread goes through more columns than it lays out at a time
  at::set_num_threads(threads);
  struct Sizes {
    int64_t rows, outputs, inputs;
  };
  // Rows that fill no six, columns that fill no vector or panel, pairs that fill no block of sixteen, odd sizes, one
  // block of 512 pairs and more.
  for (const auto& [rows, outputs, inputs] :
       {Sizes{48, 64, 64}, Sizes{49, 1, 2}, Sizes{53, 70, 30}, Sizes{150, 129, 66}, Sizes{60, 17, 1100},
        Sizes{1101, 23, 34}, Sizes{64, 2055, 8}, Sizes{64, 8, 2054}, Sizes{64, 400, 1100}, Sizes{48, 2050, 64},
        Sizes{48, 8200, 6}, Sizes{51, 33, 7}, Sizes{3, 5, 6}}) {
    INFO("rows " << rows << ", outputs " << outputs << ", inputs " << inputs
                 << ", own kernel: " << (kernels::product_kernel() != nullptr));
    const auto x = numbers({rows, inputs}, 0.1).to(at::kBFloat16),
               w = numbers({outputs, inputs}, 0.2).to(at::kBFloat16),
               dy = numbers({rows, outputs}, 0.3).to(at::kBFloat16);
    const auto bias = numbers({outputs}, 0.4);
    const auto forward = by_loops(x, w.t()), back = by_loops(dy, w), outer = by_loops(dy.t(), x);
    const auto gradient = at::ones({outputs, inputs}), sum = at::ones({rows, inputs});
    CHECK(furthest(times_transposed(x, w), forward) < rounding);
    CHECK(furthest(times_transposed(x, w, bias), forward + bias.to(at::kDouble)) < 2 * rounding);
    CHECK(furthest(times(dy, w), back) < rounding);
    add_outer(gradient, dy, x);
    add_times(sum, dy, w);
    const bool exact = kernels::product_kernel() && !cpu_has_amx() && rows >= 48;  // nothing is rounded on the way
    CHECK(furthest(gradient, outer + 1) < (exact ? 1e-5 : rounding));
    CHECK(furthest(sum, back + 1) < (exact && outputs % 2 == 0 ? 1e-5 : rounding));
  }
  at::set_num_threads(2);
}

TEST_CASE("a part of a larger matrix is multiplied as it lies, and nothing beside it is touched", "[kernels]") {
  const auto all = numbers({80, 96}, 0.1).to(at::kBFloat16), table = numbers({90, 64}, 0.2).to(at::kBFloat16);
  const auto x = all.narrow(1, 16, 64), w = table.narrow(0, 10, 70);
  CHECK(furthest(times_transposed(x, w), by_loops(x, w.t())) < rounding);
  const auto gradient = at::zeros({90, 64});
  const auto dy = numbers({80, 70}, 0.3).to(at::kBFloat16);
  add_outer(gradient.narrow(0, 10, 70), dy, x);
  CHECK(furthest(gradient.narrow(0, 10, 70), by_loops(dy.t(), x)) < rounding);
  CHECK(gradient.narrow(0, 0, 10).abs().max().item<float>() == 0);
  CHECK(gradient.narrow(0, 80, 10).abs().max().item<float>() == 0);
}

TEST_CASE("matrices that do not fit each other are refused", "[kernels]") {
  const auto x = numbers({64, 64}, 0.1).to(at::kBFloat16), narrow = numbers({64, 62}, 0.2).to(at::kBFloat16);
  CHECK_THROWS(times_transposed(x, narrow));
  CHECK_THROWS(times(narrow, x));
  CHECK_THROWS_WITH(add_outer(at::zeros({64, 64}), narrow, x),
                    Catch::Contains("a product of 62 x 64 cannot be added to 64 x 64"));
  CHECK_THROWS(add_times(at::zeros({64, 62}), x, x));
  CHECK(times_transposed(x.narrow(1, 0, 0), x.narrow(1, 0, 0)).abs().max().item<float>() == 0);  // a sum of nothing
}

TEST_CASE("products are the same bits for any number of threads", "[kernels]") {
  const auto x = numbers({700, 130}, 0.1).to(at::kBFloat16), w = numbers({190, 130}, 0.2).to(at::kBFloat16),
             dy = numbers({700, 190}, 0.3).to(at::kBFloat16);
  if (!kernels::product_kernel() || cpu_has_amx())
    return not_tested("bf16 products of our own");  // LibTorch multiplies here
  std::vector<std::vector<Tensor>> found;
  for (const int threads : {1, 2, 3, 8}) {
    at::set_num_threads(threads);
    const auto gradient = at::zeros({190, 130});
    add_outer(gradient, dy, x);
    found.push_back({times_transposed(x, w), times(dy, w), gradient});
  }
  at::set_num_threads(2);
  for (const auto& other : found)
    for (size_t k = 0; k < other.size(); ++k) CHECK(at::equal(other[k], found[0][k]));
}

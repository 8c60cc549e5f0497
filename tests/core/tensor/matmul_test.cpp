#include "core/tensor/matmul.h"

#include <ATen/Parallel.h>

#include "core/kernels/gemm.h"
#include "tests/support/compare.h"
#include "tests/support/isa.h"

using namespace cloze;

namespace {

/// Matrix multiplication in double, by loops.
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

double max_error(const Tensor& found, const Tensor& wanted) {
  return ((found.to(at::kDouble) - wanted).abs() / (wanted.abs() + 1)).max().item<double>();
}

constexpr double rounding = 1.0 / 256;  // of a bf16 number

/// The instruction sets of this processor that have a GEMM of their own.
std::vector<std::string> with_gemm() {
  std::vector<std::string> found;
  for (const auto& isa : tested_isas()) {
    const UseIsa use(isa);
    if (kernels::bf16_gemm()) found.push_back(isa);
  }
  if (found.empty()) not_tested("the bf16 GEMM kernels");
  return found;
}
/// These, and one where LibTorch multiplies.
std::vector<std::string> gemm_isas() {
  auto isas = with_gemm();
  isas.push_back(base_isa);
  return isas;
}

}  // namespace

TEST_CASE("bf16 matrix multiplications equal loops in double, at every edge of panels and tiles", "[kernels]") {
  const int threads = GENERATE(1, 2);  // a single thread processes more columns than it packs at a time
  const auto isa = GENERATE(from_range(gemm_isas()));
  const UseIsa use(isa);
  at::set_num_threads(threads);
  struct Sizes {
    int64_t rows, outputs, inputs;
  };
  // Rows and columns that fill no tile, vector or panel, pairs that fill no block of sixteen, odd sizes, one block of
  // pairs and more, with one group of columns and more.
  for (const auto& [rows, outputs, inputs] :
       {Sizes{48, 64, 64}, Sizes{49, 1, 2}, Sizes{53, 70, 30}, Sizes{150, 129, 66}, Sizes{60, 17, 1100},
        Sizes{1101, 23, 34}, Sizes{64, 2055, 8}, Sizes{64, 8, 2054}, Sizes{64, 400, 1100}, Sizes{48, 2050, 64},
        Sizes{48, 8200, 6}, Sizes{600, 40, 1000}, Sizes{51, 33, 7}, Sizes{32, 300, 128}, Sizes{16, 2, 64},
        Sizes{3, 5, 6}}) {
    INFO("rows " << rows << ", outputs " << outputs << ", inputs " << inputs << ", " << isa);
    const auto x = numbers({rows, inputs}, 0.1).to(at::kBFloat16),
               w = numbers({outputs, inputs}, 0.2).to(at::kBFloat16),
               dy = numbers({rows, outputs}, 0.3).to(at::kBFloat16);
    const auto bias = numbers({outputs}, 0.4);
    const auto forward = by_loops(x, w.t()), back = by_loops(dy, w), outer = by_loops(dy.t(), x);
    const auto gradient = at::ones({outputs, inputs}), sum = at::ones({rows, inputs});
    CHECK(max_error(matmul_nt(x, w), forward) < rounding);
    CHECK(max_error(matmul_nt(x, w, bias), forward + bias.to(at::kDouble)) < 2 * rounding);
    CHECK(max_error(matmul_nn(dy, w), back) < rounding);
    add_matmul_tn(gradient, dy, x);
    add_matmul_nn(sum, dy, w);
    const bool exact = kernels::bf16_gemm() && rows >= 16;  // no intermediate rounding
    CHECK(max_error(gradient, outer + 1) < (exact ? 1e-5 : rounding));
    CHECK(max_error(sum, back + 1) < (exact && outputs % 2 == 0 ? 1e-5 : rounding));
  }
  at::set_num_threads(2);
}

TEST_CASE(
    "fp32 matrix multiplications equal loops in double, at every edge of panels and tiles, with the same bits for "
    "any number of threads",
    "[kernels]") {
  const auto isa = GENERATE(from_range(tested_isas()));
  const UseIsa use(isa);
  struct Sizes {
    int64_t rows, outputs, inputs;
  };
  for (const auto& [rows, outputs, inputs] :
       {Sizes{64, 64, 64}, Sizes{61, 70, 75}, Sizes{100, 33, 300}, Sizes{48, 130, 600}, Sizes{300, 17, 100},
        Sizes{601, 90, 49}, Sizes{48, 1100, 50}, Sizes{7, 260, 270}, Sizes{3, 5, 6}}) {
    INFO("rows " << rows << ", outputs " << outputs << ", inputs " << inputs << ", " << isa);
    const auto all = numbers({rows, inputs + 3}, 0.1), w = numbers({outputs, inputs}, 0.2),
               dy = numbers({rows, outputs}, 0.3), bias = numbers({outputs}, 0.4), x = all.narrow(1, 2, inputs);
    const auto forward = by_loops(x, w.t()), back = by_loops(dy, w), outer = by_loops(dy.t(), x);
    std::vector<std::vector<Tensor>> tensors;
    for (const int threads : {1, 2, 3, 5}) {
      at::set_num_threads(threads);
      const auto gradient = at::ones({outputs, inputs}), sum = at::ones({rows, inputs});
      const auto dx = matmul_backward(gradient, dy, x, w);
      add_matmul_nn(sum, dy, w);
      tensors.push_back({matmul_nt(x, w), matmul_nt(x, w, bias), dx, gradient, sum});
    }
    at::set_num_threads(2);
    const std::vector<Tensor> wanted{forward, forward + bias.to(at::kDouble), back, outer + 1, back + 1};
    for (size_t k = 0; k < wanted.size(); ++k) {
      CHECK(max_error(tensors[0][k], wanted[k]) < 1e-5);
      for (const auto& other : tensors) CHECK(at::equal(other[k], tensors[0][k]));
    }
  }
}

TEST_CASE("the fp32 kernel sums a product as loops in double do, with the same bits however it is cut", "[kernels]") {
  std::vector<std::string> isas;
  for (const auto& isa : tested_isas()) {
    const UseIsa use(isa);
    if (kernels::fp32_gemm()) isas.push_back(isa);
  }
  if (isas.empty()) {
    not_tested("the fp32 GEMM kernels");
    return;
  }
  const UseIsa use(GENERATE_COPY(from_range(isas)));
  const bool a_depth_major = GENERATE(false, true), b_depth_major = GENERATE(false, true);
  const auto& kernel = *kernels::fp32_gemm();
  struct Sizes {
    int64_t rows, columns, depth;
  };
  // Rows that fill no tile and more than are packed at once, columns that fill no vector or panel and more than are
  // packed at once, one block of the depth and more.
  for (const auto& [rows, columns, depth] : {Sizes{1, 1, 1}, Sizes{5, 17, 19}, Sizes{12, 64, 32}, Sizes{149, 70, 33},
                                             Sizes{7, 1100, 21}, Sizes{13, 39, 1030}}) {
    INFO(rows << " x " << columns << " by " << depth);
    const auto a = numbers({rows, depth}, 0.1), b = numbers({columns, depth}, 0.2), bias = numbers({columns}, 0.3);
    const auto stored = [](const Tensor& x, bool depth_major) { return (depth_major ? x.t() : x).contiguous(); };
    const auto left = stored(a, a_depth_major), right = stored(b, b_depth_major);
    enum class Kind { plain, biased, added };
    const auto product = [&](Kind kind, int64_t cut_row, int64_t cut_column) {
      auto out = at::full({rows, columns + 3}, 2.0);  // with columns that nothing may touch
      for (const auto& [row, row_end] : {std::pair{int64_t{0}, cut_row}, std::pair{cut_row, rows}})
        for (const auto& [column, column_end] : {std::pair{int64_t{0}, cut_column}, std::pair{cut_column, columns}}) {
          if (row == row_end || column == column_end) continue;
          kernels::Gemm<float> p{};
          p.rows = row_end - row;
          p.columns = column_end - column;
          p.depth = depth;
          p.a_stride = left.stride(0);
          p.a_depth_major = a_depth_major;
          p.a = left.data_ptr<float>() + row * (a_depth_major ? 1 : p.a_stride);
          p.b_stride = right.stride(0);
          p.b_depth_major = b_depth_major;
          p.b = right.data_ptr<float>() + column * (b_depth_major ? 1 : p.b_stride);
          p.c_stride = out.stride(0);
          float* at = out.data_ptr<float>() + row * p.c_stride + column;
          (kind == Kind::added ? p.sum : p.c) = at;
          if (kind == Kind::biased) p.bias = bias.data_ptr<float>() + column;
          std::vector<uint32_t> scratch(static_cast<size_t>(kernel.scratch(p)));
          p.scratch = scratch.data();
          kernel.run(p);
        }
      CHECK((out.narrow(1, columns, 3) == 2).all().item<bool>());
      return out.narrow(1, 0, columns).contiguous();
    };
    const auto wanted = by_loops(a, b.t());
    for (const auto kind : {Kind::plain, Kind::biased, Kind::added}) {
      const auto whole = product(kind, rows, columns);
      CHECK(max_error(whole, kind == Kind::biased  ? wanted + bias.to(at::kDouble)
                             : kind == Kind::added ? wanted + 2
                                                   : wanted) < 1e-5);
      CHECK(at::equal(product(kind, rows / 3, columns / 2), whole));
    }
  }
}

TEST_CASE("views of a larger matrix are multiplied in place, and nothing outside them is touched", "[kernels]") {
  const UseIsa use(GENERATE(from_range(gemm_isas())));
  const auto all = numbers({80, 96}, 0.1).to(at::kBFloat16), table = numbers({90, 64}, 0.2).to(at::kBFloat16);
  const auto x = all.narrow(1, 16, 64), w = table.narrow(0, 10, 70);
  CHECK(max_error(matmul_nt(x, w), by_loops(x, w.t())) < rounding);
  const auto gradient = at::zeros({90, 64});
  const auto dy = numbers({80, 70}, 0.3).to(at::kBFloat16);
  add_matmul_tn(gradient.narrow(0, 10, 70), dy, x);
  CHECK(max_error(gradient.narrow(0, 10, 70), by_loops(dy.t(), x)) < rounding);
  CHECK(gradient.narrow(0, 0, 10).abs().max().item<float>() == 0);
  CHECK(gradient.narrow(0, 80, 10).abs().max().item<float>() == 0);
}

TEST_CASE("matrices whose shapes do not match are rejected", "[kernels]") {
  const auto x = numbers({64, 64}, 0.1).to(at::kBFloat16), narrow = numbers({64, 62}, 0.2).to(at::kBFloat16);
  CHECK_THROWS(matmul_nt(x, narrow));
  CHECK_THROWS(matmul_nn(narrow, x));
  CHECK_THROWS_WITH(add_matmul_tn(at::zeros({64, 64}), narrow, x),
                    Catch::Contains("a matrix of 62 x 64 cannot be added to one of 64 x 64"));
  CHECK_THROWS(add_matmul_nn(at::zeros({64, 62}), x, x));
  CHECK(matmul_nt(x.narrow(1, 0, 0), x.narrow(1, 0, 0)).abs().max().item<float>() == 0);  // an empty sum
}

TEST_CASE("matrix multiplications are bit-identical for any number of threads", "[kernels]") {
  const auto x = numbers({700, 130}, 0.1).to(at::kBFloat16), w = numbers({190, 130}, 0.2).to(at::kBFloat16),
             dy = numbers({700, 190}, 0.3).to(at::kBFloat16);
  for (const auto& isa : gemm_isas()) {
    INFO(isa);
    const UseIsa use(isa);
    std::vector<std::vector<Tensor>> tensors;
    for (const int threads : {1, 2, 3, 5, 8}) {
      at::set_num_threads(threads);
      const auto gradient = at::zeros({190, 130}), both = at::zeros({190, 130});
      add_matmul_tn(gradient, dy, x);
      const auto back = matmul_backward(both, dy, x, w);
      CHECK(at::equal(both, gradient));
      CHECK(at::equal(back, matmul_nn(dy, w)));
      tensors.push_back({matmul_nt(x, w), back, gradient});
    }
    at::set_num_threads(2);
    for (const auto& other : tensors)
      for (size_t k = 0; k < other.size(); ++k) CHECK(at::equal(other[k], tensors[0][k]));
  }
}

#include "core/tensor/products.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "core/kernels/cpu.h"
#include "core/kernels/kernels.h"
#include "core/kernels/products.h"

namespace cloze {

namespace {

using kernels::Product;

constexpr int64_t least_rows = 48;     // below, what a product needs is laid out for too little work
constexpr int64_t most_depth = 8192;   // of what is summed in one go: a panel of 64 columns lies in the second cache

/// True where the own kernel takes operands that share an axis of `shared` against `wanted`: bf16, rows without gaps, and no AMX units, which LibTorch drives well.
bool own(const Tensor& a, const Tensor& b, int64_t rows, int64_t shared, int64_t wanted) {
  static const bool amx = cpu_has_amx();
  return !amx && kernels::product_kernel() && a.is_cpu() && a.scalar_type() == at::kBFloat16 && b.scalar_type() == at::kBFloat16 && a.stride(1) == 1 && b.stride(1) == 1 && rows >= least_rows && shared == wanted;
}
/// Numbers lie in pairs along the rows.
bool pairs_lie(const Tensor& t) { return t.size(1) > 0 && t.size(1) % 2 == 0 && t.stride(0) % 2 == 0 && reinterpret_cast<uintptr_t>(t.data_ptr()) % 4 == 0; }
bool fits(const Tensor& sum, int64_t rows, int64_t columns) { return sum.scalar_type() == at::kFloat && sum.size(0) == rows && sum.size(1) == columns && sum.stride(1) == 1; }

const uint16_t* bits(const Tensor& t) { return static_cast<const uint16_t*>(t.data_ptr()); }

/// Runs it on all threads, each with a part of the rows and columns of the result.
void run(const Product& whole) {
  constexpr int64_t panel = kernels::product_panel, six = 6;
  const int64_t threads = std::max(1, at::get_num_threads());
  // Every part lays out all it reads, at the price of about 16 rows of products for a column, and the other way round where rows are laid out.
  const auto up = [](int64_t n, int64_t unit) { return (n + unit - 1) / unit; };
  int64_t row_parts = 1, least = 0;
  for (int64_t parts = 1; parts <= threads; ++parts) {
    if (threads % parts != 0) continue;
    const int64_t rows = up(up(whole.rows, six), parts) * six, columns = up(up(whole.columns, panel), threads / parts) * panel;
    const int64_t cost = rows * columns + 16 * (columns + (whole.a_by_depth ? rows : 0));
    if (least == 0 || cost < least) least = cost, row_parts = parts;
  }
  const int64_t column_parts = threads / row_parts;
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const auto range = [&](int64_t k, int64_t parts, int64_t size, int64_t unit) {
        const int64_t units = up(size, unit);
        return std::pair{units * k / parts * unit, std::min(size, units * (k + 1) / parts * unit)};
      };
      const auto [row, row_end] = range(part / column_parts, row_parts, whole.rows, six);
      const auto [column, column_end] = range(part % column_parts, column_parts, whole.columns, panel);
      if (row >= row_end || column >= column_end) continue;
      Product p = whole;
      p.rows = row_end - row, p.columns = column_end - column;
      p.a += row * (p.a_by_depth ? 1 : p.a_stride), p.b += column * (p.b_by_depth ? 1 : p.b_stride);
      if (p.bias) p.bias += column;
      if (p.c) p.c += row * p.c_stride + column;
      if (p.sum) p.sum += row * p.c_stride + column;
      constexpr size_t line = 64 / sizeof(uint32_t);
      const auto scratch = std::make_unique_for_overwrite<uint32_t[]>(static_cast<size_t>(kernels::product_scratch(p)) + line);
      p.scratch = scratch.get() + (line - reinterpret_cast<uintptr_t>(scratch.get()) / sizeof(uint32_t) % line) % line;
      kernels::product_kernel()(p);
    }
  });
}

/// of += product [same sizes], fp32 and bf16.
void add_to(Tensor of, const Tensor& product) {
  require<ShapeError>(of.sizes() == product.sizes(), "a product of ", product.size(0), " x ", product.size(1), " cannot be added to ", of.size(0), " x ", of.size(1));
  if (!of.is_contiguous()) {
    of.add_(product);
    return;
  }
  auto* out = of.data_ptr<float>();
  const auto* in = bits(product);
  at::parallel_for(0, (of.numel() + 15) / 16, 2048, [&](int64_t begin, int64_t end) {
    kernels::table().bf16.add_to(std::min(16 * end, of.numel()) - 16 * begin, in + 16 * begin, out + 16 * begin);
  });
}

}  // namespace

Tensor times_transposed(const Tensor& x, const Tensor& w, const Tensor& bias) {
  if (!own(x, w, x.size(0), x.size(1), w.size(1)) || !pairs_lie(x) || !pairs_lie(w) || x.size(1) > most_depth) return bias.defined() ? at::addmm(bias.to(x.scalar_type()), x, w.t()) : at::mm(x, w.t());
  auto y = at::empty({x.size(0), w.size(0)}, x.options());
  run({.rows = x.size(0), .columns = w.size(0), .depth = x.size(1), .a = bits(x), .a_stride = x.stride(0), .a_by_depth = false, .b = bits(w), .b_stride = w.stride(0), .b_by_depth = false,
       .bias = bias.defined() ? bias.data_ptr<float>() : nullptr, .c = static_cast<uint16_t*>(y.data_ptr()), .sum = nullptr, .c_stride = w.size(0), .scratch = nullptr});
  return y;
}

Tensor times(const Tensor& dy, const Tensor& w) {
  if (!own(dy, w, dy.size(0), dy.size(1), w.size(0)) || !pairs_lie(dy) || dy.size(1) > most_depth) return at::mm(dy, w);
  auto dx = at::empty({dy.size(0), w.size(1)}, dy.options());
  run({.rows = dy.size(0), .columns = w.size(1), .depth = dy.size(1), .a = bits(dy), .a_stride = dy.stride(0), .a_by_depth = false, .b = bits(w), .b_stride = w.stride(0), .b_by_depth = true,
       .bias = nullptr, .c = static_cast<uint16_t*>(dx.data_ptr()), .sum = nullptr, .c_stride = w.size(1), .scratch = nullptr});
  return dx;
}

void add_outer(Tensor grad, const Tensor& dy, const Tensor& x) {
  if (dy.scalar_type() == at::kFloat) {
    grad.addmm_(dy.t(), x);
  } else if (!own(dy, x, dy.size(0), dy.size(0), x.size(0)) || !fits(grad, dy.size(1), x.size(1))) {
    add_to(grad, at::mm(dy.t(), x));
  } else {
    run({.rows = dy.size(1), .columns = x.size(1), .depth = dy.size(0), .a = bits(dy), .a_stride = dy.stride(0), .a_by_depth = true, .b = bits(x), .b_stride = x.stride(0), .b_by_depth = true,
         .bias = nullptr, .c = nullptr, .sum = grad.data_ptr<float>(), .c_stride = grad.stride(0), .scratch = nullptr});
  }
}

void add_times(Tensor sum, const Tensor& dy, const Tensor& w) {
  if (dy.scalar_type() == at::kFloat) {
    sum.addmm_(dy, w);
  } else if (!own(dy, w, dy.size(0), dy.size(1), w.size(0)) || !pairs_lie(dy) || !fits(sum, dy.size(0), w.size(1))) {
    add_to(sum, at::mm(dy, w));
  } else {
    run({.rows = dy.size(0), .columns = w.size(1), .depth = dy.size(1), .a = bits(dy), .a_stride = dy.stride(0), .a_by_depth = false, .b = bits(w), .b_stride = w.stride(0), .b_by_depth = true,
         .bias = nullptr, .c = nullptr, .sum = sum.data_ptr<float>(), .c_stride = sum.stride(0), .scratch = nullptr});
  }
}

}  // namespace cloze

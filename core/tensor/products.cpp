#include "core/tensor/products.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "core/error.h"
#include "core/kernels/cpu.h"
#include "core/kernels/kernels.h"
#include "core/kernels/products.h"

namespace cloze {

namespace {

using kernels::Product;

constexpr int64_t least_rows = 48;    // below, what a product needs is laid out for too little work
constexpr int64_t most_depth = 8192;  // of what is summed in one go: a panel of 64 columns lies in the second cache

const uint16_t* bits(const Tensor& t) { return static_cast<const uint16_t*>(t.data_ptr()); }

/// Two numbers that follow each other in a row are a pair.
bool pairs_lie(const Tensor& t) {
  return t.size(1) > 0 && t.size(1) % 2 == 0 && t.stride(0) % 2 == 0 &&
         reinterpret_cast<uintptr_t>(t.data_ptr()) % 4 == 0;
}

/// The product of two matrices by the own kernel, without a place to go to; none where LibTorch has to make it: other
/// types, a processor without such units, or one with AMX, which LibTorch drives well.
std::optional<Product> own(const Tensor& a, bool a_by_depth, const Tensor& b, bool b_by_depth) {
  static const bool amx = cpu_has_amx();
  const auto plain = [](const Tensor& t) { return t.is_cpu() && t.scalar_type() == at::kBFloat16 && t.stride(1) == 1; };
  if (amx || !kernels::product_kernel() || !plain(a) || !plain(b) || a.size(0) < least_rows) return std::nullopt;
  const Product p{.rows = a.size(a_by_depth ? 1 : 0),
                  .columns = b.size(b_by_depth ? 1 : 0),
                  .depth = a.size(a_by_depth ? 0 : 1),
                  .a = bits(a),
                  .a_stride = a.stride(0),
                  .a_by_depth = a_by_depth,
                  .b = bits(b),
                  .b_stride = b.stride(0),
                  .b_by_depth = b_by_depth,
                  .bias = nullptr,
                  .c = nullptr,
                  .sum = nullptr,
                  .c_stride = 0,
                  .scratch = nullptr};
  if (p.depth != b.size(b_by_depth ? 0 : 1) || (!a_by_depth && !pairs_lie(a)) || (!b_by_depth && !pairs_lie(b)))
    return std::nullopt;
  return p;
}

/// Runs it on all threads, each with a part of the rows and columns of the result.
void run(const Product& whole) {
  constexpr int64_t panel = kernels::product_panel, six = kernels::product_rows;
  const int64_t threads = std::max(1, at::get_num_threads());
  // Every part lays out all it reads, at the price of about 16 rows of products for a column, and the other way round
  // where rows are laid out.
  const auto up = [](int64_t n, int64_t unit) { return (n + unit - 1) / unit; };
  int64_t row_parts = 1, least = 0;
  for (int64_t parts = 1; parts <= threads; ++parts) {
    if (threads % parts != 0) continue;
    const int64_t rows = up(up(whole.rows, six), parts) * six,
                  columns = up(up(whole.columns, panel), threads / parts) * panel;
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
      const auto scratch =
          std::make_unique_for_overwrite<uint32_t[]>(static_cast<size_t>(kernels::product_scratch(p)) + line);
      p.scratch = scratch.get() + (line - reinterpret_cast<uintptr_t>(scratch.get()) / sizeof(uint32_t) % line) % line;
      kernels::product_kernel()(p);
    }
  });
}

/// Rows and columns of parts.
struct Grid {
  int64_t rows = 1, columns = 1;
  int64_t count() const { return rows * columns; }
};

/// The parts of one of `matrices` products, by the sizes alone: small ones feed few threads, larger ones feed many.
Grid grid_of(int64_t matrices, int64_t rows, int64_t columns, int64_t depth) {
  constexpr int64_t least_work = 1 << 21, few_parts = 16, large_work = 1 << 26, most_parts = 128, least_side = 32;
  const int64_t work = rows * columns * depth, parts = std::max(std::min(work / least_work, few_parts / matrices),
                                                                std::min(work / large_work, most_parts / matrices));
  Grid grid;
  while (2 * grid.count() <= parts) {
    const int64_t height = rows / grid.rows, width = columns / grid.columns;
    if (std::max(height, width) < 2 * least_side) break;
    if (height >= width)
      grid.rows *= 2;
    else
      grid.columns *= 2;
  }
  return grid;
}

/// f(part) for each below `count`, every part by one thread. The libraries below LibTorch share out, and sum, small and
/// odd products differently for each number of threads; in a parallel region they take one. A single part needs a
/// second, empty one: without it there would be no region.
template <class F>
void each_by_one_thread(int64_t count, const F& f) {
  at::parallel_for(0, std::max<int64_t>(count, 2), 1, [&](int64_t begin, int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView no_graph;
    for (int64_t part = begin; part < std::min(end, count); ++part) f(part);
  });
}

/// What a product does with what is there.
enum class Sum { none, out, bias };

/// First of the k-th of so many parts of a size, and how many.
std::pair<int64_t, int64_t> part_of(int64_t size, int64_t k, int64_t parts) {
  constexpr int64_t unit = 16;
  const int64_t units = (size + unit - 1) / unit, begin = units * k / parts * unit;
  return {begin, std::min(size, units * (k + 1) / parts * unit) - begin};
}

/// out = a b, out += a b, or out = bias + a b by LibTorch, in parts that are cut by the sizes alone.
void in_parts(const Tensor& out, const Tensor& a, const Tensor& b, Sum sum, const Tensor& bias = {}) {
  const auto grid = grid_of(1, out.size(0), out.size(1), a.size(1));
  each_by_one_thread(grid.count(), [&](int64_t part) {
    const auto [row, rows] = part_of(out.size(0), part / grid.columns, grid.rows);
    const auto [column, columns] = part_of(out.size(1), part % grid.columns, grid.columns);
    auto c = out.narrow(0, row, rows).narrow(1, column, columns);
    const auto left = a.narrow(0, row, rows), right = b.narrow(1, column, columns);
    if (sum == Sum::none)
      at::mm_out(c, left, right);
    else
      at::addmm_out(c, sum == Sum::out ? c : bias.narrow(0, column, columns), left, right);
  });
}

/// a b [M, N].
Tensor made_in_parts(const Tensor& a, const Tensor& b, const Tensor& bias = {}) {
  auto out = at::empty({a.size(0), b.size(1)}, a.options().requires_grad(false));
  in_parts(out, a, b, bias.defined() ? Sum::bias : Sum::none, bias);
  return out;
}

/// of += product [same sizes], fp32 and bf16.
void add_to(Tensor of, const Tensor& product) {
  require<ShapeError>(of.sizes() == product.sizes(), "a product of ", product.size(0), " x ", product.size(1),
                      " cannot be added to ", of.size(0), " x ", of.size(1));
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

/// The product, rounded; an undefined tensor where the own kernel does not make it.
Tensor rounded(std::optional<Product> p, const Tensor& bias = {}) {
  if (!p || p->depth > most_depth) return {};
  auto made = at::empty({p->rows, p->columns}, at::kBFloat16);
  p->c = static_cast<uint16_t*>(made.data_ptr()), p->c_stride = p->columns;
  if (bias.defined()) p->bias = bias.data_ptr<float>();
  run(*p);
  return made;
}

/// sum += product; false where the own kernel does not make it.
bool added(std::optional<Product> p, const Tensor& sum) {
  if (!p || sum.scalar_type() != at::kFloat || sum.size(0) != p->rows || sum.size(1) != p->columns ||
      sum.stride(1) != 1)
    return false;
  p->sum = sum.data_ptr<float>(), p->c_stride = sum.stride(0);
  run(*p);
  return true;
}

}  // namespace

Tensor times_transposed(const Tensor& x, const Tensor& w, const Tensor& bias) {
  if (const auto made = rounded(own(x, false, w, false), bias); made.defined()) return made;
  return made_in_parts(x, w.t(), bias.defined() ? bias.detach().to(x.scalar_type()) : Tensor());
}

Tensor times(const Tensor& dy, const Tensor& w) {
  const auto made = rounded(own(dy, false, w, true));
  return made.defined() ? made : made_in_parts(dy, w);
}

void add_outer(Tensor grad, const Tensor& dy, const Tensor& x) {
  if (dy.scalar_type() == at::kFloat)
    in_parts(grad, dy.t(), x, Sum::out);
  else if (!added(own(dy, true, x, true), grad))
    add_to(grad, made_in_parts(dy.t(), x));
}

void add_times(Tensor sum, const Tensor& dy, const Tensor& w) {
  if (dy.scalar_type() == at::kFloat)
    in_parts(sum, dy, w, Sum::out);
  else if (!added(own(dy, false, w, true), sum))
    add_to(sum, made_in_parts(dy, w));
}

Tensor times_each(const Tensor& a, const Tensor& b) {
  const auto leading = at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  const auto with = [&leading](int64_t rows, int64_t columns) {
    auto sizes = leading;
    sizes.insert(sizes.end(), {rows, columns});
    return sizes;
  };
  if (b.dim() == 2) return times(a.reshape({-1, a.size(-1)}), b).view(with(a.size(-2), b.size(-1)));
  const auto batch = c10::multiply_integers(leading);
  const auto all = [&](const Tensor& x) {
    return x.expand(with(x.size(-2), x.size(-1))).reshape({batch, x.size(-2), x.size(-1)});
  };
  const auto left = all(a), right = all(b);
  const auto out = at::empty({batch, a.size(-2), b.size(-1)}, a.options().requires_grad(false));
  const auto grid = grid_of(std::max<int64_t>(batch, 1), out.size(1), out.size(2), a.size(-1));
  each_by_one_thread(batch * grid.count(), [&](int64_t k) {
    const int64_t matrix = k / grid.count(), part = k % grid.count();
    const auto [row, rows] = part_of(out.size(1), part / grid.columns, grid.rows);
    const auto [column, columns] = part_of(out.size(2), part % grid.columns, grid.columns);
    auto c = out.select(0, matrix).narrow(0, row, rows).narrow(1, column, columns);
    at::mm_out(c, left.select(0, matrix).narrow(0, row, rows), right.select(0, matrix).narrow(1, column, columns));
  });
  return out.view(with(a.size(-2), b.size(-1)));
}

}  // namespace cloze

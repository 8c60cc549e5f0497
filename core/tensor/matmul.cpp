#include "core/tensor/matmul.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "core/error.h"
#include "core/kernels/gemm.h"
#include "core/kernels/kernels.h"
#include "core/tensor/parallel.h"

namespace cloze {

namespace {

bool is_of_intel() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

/// On Intel's processors MKL's sums depend on the alignment of the matrices, which differs from run to run, unless its
/// environment says otherwise before its first call. Source: oneMKL developer guide, "Conditional Numerical
/// Reproducibility".
void choose_strict_sums() {
  if (is_of_intel()) setenv("MKL_CBWR", "AUTO,STRICT", /*overwrite=*/0);
}

/// oneDNN keeps the code that it made for each of 1,024 sizes of a matrix multiplication, and texts have many sizes:
/// scoring 16,750 pairs of BLiMP took 714 MB so, and as long with 128 in 608 MB. Source: oneDNN developer guide,
/// "Primitive Cache".
void keep_little_code() {
  if (!std::getenv("DNNL_PRIMITIVE_CACHE_CAPACITY")) setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128", /*overwrite=*/0);
}

/// MKL looks for the code of each of its functions of vectors when it is first called. A second thread that calls it
/// meanwhile gets the least accurate code, with errors of 7e-6. Source: PyTorch, issue 188792; the functions are those
/// of ATen/cpu/vml.h.
void find_vector_functions() {
  const at::NoGradGuard no_grad;
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto x = at::full({1}, 0.5, type);
    for (const auto function : {at::acos, at::asin, at::atan, at::cos, at::erf, at::erfc, at::erfinv, at::exp, at::log,
                                at::log10, at::log2, at::sin, at::sqrt, at::tan, at::tanh, at::trunc})
      function(x);
  }
}

/// Sets up the libraries below LibTorch so that every process computes the same bits. Called before their first use,
/// while there is one thread. Returns true.
bool set_up_math_libraries() {
  choose_strict_sums();
  keep_little_code();
  find_vector_functions();
  return true;
}

using kernels::Gemm;

[[maybe_unused]] const bool are_set_up = set_up_math_libraries();

constexpr int64_t min_rows = 16;         // in bf16; with fewer, packing costs too much
constexpr int64_t min_packed_side = 48;  // of each matrix in fp32, likewise
constexpr int64_t max_depth = 8192;      // of bf16, summed at once: a panel of columns fits into the second-level cache

/// Our kernel for a number; null where LibTorch multiplies. In fp32 that is on Intel's processors, for which its MKL is
/// written: on others it has one code for all instruction sets, which reaches three quarters of their peak.
template <class T>
const kernels::GemmKernel<T>* own_kernel();
template <>
const kernels::GemmKernel<uint16_t>* own_kernel() {
  return kernels::bf16_gemm();
}
template <>
const kernels::GemmKernel<float>* own_kernel() {
  static const bool mkl_is_best = is_of_intel();
  return mkl_is_best ? nullptr : kernels::fp32_gemm();
}

template <class T>
constexpr at::ScalarType type_of = sizeof(T) == sizeof(float) ? at::kFloat : at::kBFloat16;
template <class T>
const T* data_of(const Tensor& t) {
  return static_cast<const T*>(t.data_ptr());
}

/// Parts of a multiplication, each of which one thread computes.
struct Parts {
  int64_t count = 0;
  std::function<void(int64_t)> work{};
};
/// Computes two multiplications at once.
void compute(const Parts& one, const Parts& two = {}) {
  each_part(one.count + two.count, [&](int64_t k) { k < one.count ? one.work(k) : two.work(k - one.count); });
}

/// n in whole units.
int64_t in_units(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

/// Of `count` parts of a multiplication, the number of cuts along its rows with which a part costs the least.
template <class T>
int64_t row_parts_of(const Gemm<T>& product, const kernels::GemmKernel<T>& kernel, int64_t count) {
  int64_t row_parts = 1, min_cost = 0;
  for (int64_t parts = 1; parts <= count; ++parts) {
    if (count % parts != 0) continue;
    const int64_t rows = in_units(in_units(product.rows, kernel.rows), parts) * kernel.rows,
                  columns = in_units(in_units(product.columns, kernel.columns), count / parts) * kernel.columns;
    const int64_t cost = rows * columns + kernel.packing_cost * (columns + (product.a_depth_major ? rows : 0));
    if (min_cost == 0 || cost < min_cost) {
      min_cost = cost;
      row_parts = parts;
    }
  }
  return row_parts;
}

/// Part k of [0, size) in so many parts, cut between units.
std::pair<int64_t, int64_t> range_of(int64_t k, int64_t parts, int64_t size, int64_t unit) {
  const int64_t units = in_units(size, unit);
  return {units * k / parts * unit, std::min(size, units * (k + 1) / parts * unit)};
}

/// Computes these rows and columns of a multiplication by our kernel.
template <class T>
void compute_part(const Gemm<T>& product, const kernels::GemmKernel<T>& kernel, std::pair<int64_t, int64_t> rows,
                  std::pair<int64_t, int64_t> columns) {
  const auto [row, row_end] = rows;
  const auto [column, column_end] = columns;
  if (row >= row_end || column >= column_end) return;
  Gemm<T> p = product;
  p.rows = row_end - row;
  p.columns = column_end - column;
  p.a += row * (p.a_depth_major ? 1 : p.a_stride);
  p.b += column * (p.b_depth_major ? 1 : p.b_stride);
  if (p.bias) p.bias += column;
  if (p.c) p.c += row * p.c_stride + column;
  if (p.sum) p.sum += row * p.c_stride + column;
  constexpr size_t line = 64 / sizeof(uint32_t);
  const auto scratch = std::make_unique_for_overwrite<uint32_t[]>(static_cast<size_t>(kernel.scratch(p)) + line);
  p.scratch = scratch.get() + (line - reinterpret_cast<uintptr_t>(scratch.get()) / sizeof(uint32_t) % line) % line;
  kernel.run(p);
}

/// The parts of a GEMM by our kernel, each some rows and columns of the result: at least one for each thread, more
/// where they stay large. Every part packs all that it reads, and its sums are those of the whole.
template <class T>
Parts parts_of(const Gemm<T>& product) {
  constexpr int64_t large_work = 1 << (sizeof(T) == sizeof(float) ? 27 : 28), parts_of_thread = 4;  // some milliseconds
  const auto& kernel = *own_kernel<T>();
  const int64_t threads = std::max(1, at::get_num_threads()), work = product.rows * product.columns * product.depth,
                count = threads * std::clamp<int64_t>(work / large_work / threads, 1, parts_of_thread),
                row_parts = row_parts_of(product, kernel, count), column_parts = count / row_parts;
  return {count, [=, &kernel](int64_t part) {
            compute_part(product, kernel, range_of(part / column_parts, row_parts, product.rows, kernel.rows),
                         range_of(part % column_parts, column_parts, product.columns, kernel.columns));
          }};
}

/// The rows that oneDNN multiplies for `count` ones: it makes code for each number of rows, and keeps it to the end of
/// the process, 0.3 MB each. Texts have many lengths.
int64_t padded_rows(int64_t count) {
  const int64_t unit = count <= 256 ? 32 : 256;
  return (count + unit - 1) / unit * unit;
}

/// The numbers of row parts and column parts.
struct Grid {
  int64_t rows = 1, columns = 1;
  int64_t count() const { return rows * columns; }
};

/// The parts of each of `matrices` multiplications, a function of the sizes alone: few parts for small ones, more for
/// large ones.
Grid grid_of(int64_t matrices, int64_t rows, int64_t columns, int64_t depth) {
  constexpr int64_t min_work = 1 << 21, few_parts = 16, large_work = 1 << 26, max_parts = 128, min_side = 32;
  const int64_t work = rows * columns * depth, parts = std::max(std::min(work / min_work, few_parts / matrices),
                                                                std::min(work / large_work, max_parts / matrices));
  Grid grid;
  while (2 * grid.count() <= parts) {
    const int64_t height = rows / grid.rows, width = columns / grid.columns;
    if (std::max(height, width) < 2 * min_side) break;
    if (height >= width)
      grid.rows *= 2;
    else
      grid.columns *= 2;
  }
  return grid;
}

/// What the result is added to.
enum class Sum { none, out, bias };

/// The first index and the size of the k-th of `parts` parts of `size`.
std::pair<int64_t, int64_t> part_of(int64_t size, int64_t k, int64_t parts) {
  constexpr int64_t unit = 16;
  const int64_t units = (size + unit - 1) / unit, begin = units * k / parts * unit;
  return {begin, std::min(size, units * (k + 1) / parts * unit) - begin};
}

/// The parts of out = a b, out += a b, or out = bias + a b by LibTorch, which depend on the sizes alone: its BLAS
/// splits and sums small and odd shapes differently for each number of threads.
Parts parts_of(const Tensor& out, const Tensor& a, const Tensor& b, Sum sum, const Tensor& bias = {}) {
  const auto grid = grid_of(1, out.size(0), out.size(1), a.size(1));
  return {grid.count(), [=](int64_t part) {
            const at::AutoDispatchBelowADInplaceOrView no_graph;
            const auto [row, rows] = part_of(out.size(0), part / grid.columns, grid.rows);
            const auto [column, columns] = part_of(out.size(1), part % grid.columns, grid.columns);
            auto c = out.narrow(0, row, rows).narrow(1, column, columns);
            const auto left = a.narrow(0, row, rows), right = b.narrow(1, column, columns);
            if (sum == Sum::none)
              at::mm_out(c, left, right);
            else
              at::addmm_out(c, sum == Sum::out ? c : bias.narrow(0, column, columns), left, right);
          }};
}

/// Room for a product of x and another matrix.
Tensor room(const Tensor& x, int64_t rows, int64_t columns) {
  return at::empty({rows, columns}, x.options().requires_grad(false));
}

/// a b [M, N].
Tensor mm_in_parts(const Tensor& a, const Tensor& b) {
  const auto out = room(a, a.size(0), b.size(1));
  compute(parts_of(out, a, b, Sum::none));
  return out;
}

/// sum += x, of the same sizes; fp32 and bf16.
void add_to(Tensor sum, const Tensor& x) {
  require<ShapeError>(sum.sizes() == x.sizes(), "a matrix of ", x.size(0), " x ", x.size(1),
                      " cannot be added to one of ", sum.size(0), " x ", sum.size(1));
  if (!sum.is_contiguous()) {
    sum.add_(x);
    return;
  }
  auto* out = sum.data_ptr<float>();
  const auto* in = data_of<uint16_t>(x);
  each_range(sum.numel(), 1 << 15,
             [&](int64_t begin, int64_t end) { kernels::table().bf16.add_to(end - begin, in + begin, out + begin); });
}

/// True if neighbouring numbers of each row form aligned pairs.
bool has_pairs(const Tensor& t) {
  return t.size(1) > 0 && t.size(1) % 2 == 0 && t.stride(0) % 2 == 0 &&
         reinterpret_cast<uintptr_t>(t.data_ptr()) % 4 == 0;
}

/// A matrix of a multiplication; `depth_major`: [depth, rows or columns of the result].
struct Operand {
  const Tensor& matrix;
  bool depth_major;
  int64_t depth() const { return matrix.size(depth_major ? 0 : 1); }
  int64_t side() const { return matrix.size(depth_major ? 1 : 0); }
};

/// The parts of out = a b' (+ bias), or out += a b', by our kernel; nullopt where LibTorch has to compute it: other
/// dtypes, small matrices, or a processor without a kernel.
template <class T>
std::optional<Parts> own_parts_of(const Tensor& out, Sum sum, const Operand& a, const Operand& b, const Tensor& bias) {
  const bool adds = sum == Sum::out, is_bf16 = type_of<T> == at::kBFloat16;
  const auto has = [](const Tensor& t, at::ScalarType type) {
    return t.is_cpu() && t.scalar_type() == type && t.stride(1) == 1;
  };
  if (!own_kernel<T>() || !has(a.matrix, type_of<T>) || !has(b.matrix, type_of<T>) ||
      !has(out, adds ? at::kFloat : type_of<T>) || a.depth() != b.depth() || out.size(0) != a.side() ||
      out.size(1) != b.side())
    return std::nullopt;
  if (is_bf16 ? a.matrix.size(0) < min_rows || (!adds && a.depth() > max_depth) ||
                    (!a.depth_major && !has_pairs(a.matrix)) || (!b.depth_major && !has_pairs(b.matrix))
              : std::min({a.side(), b.side(), a.depth()}) < min_packed_side)
    return std::nullopt;
  return parts_of(Gemm<T>{.rows = a.side(),
                          .columns = b.side(),
                          .depth = a.depth(),
                          .a = data_of<T>(a.matrix),
                          .a_stride = a.matrix.stride(0),
                          .a_depth_major = a.depth_major,
                          .b = data_of<T>(b.matrix),
                          .b_stride = b.matrix.stride(0),
                          .b_depth_major = b.depth_major,
                          .bias = sum == Sum::bias ? bias.data_ptr<float>() : nullptr,
                          .c = adds ? nullptr : static_cast<T*>(out.data_ptr()),
                          .sum = adds ? out.data_ptr<float>() : nullptr,
                          .c_stride = out.stride(0),
                          .scratch = nullptr});
}
std::optional<Parts> own_parts(const Tensor& out, Sum sum, const Operand& a, const Operand& b,
                               const Tensor& bias = {}) {
  return a.matrix.scalar_type() == at::kFloat ? own_parts_of<float>(out, sum, a, b, bias)
                                              : own_parts_of<uint16_t>(out, sum, a, b, bias);
}

}  // namespace

Tensor matmul_nt(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const auto out = room(x, x.size(0), w.size(0));
  const auto sum = bias.defined() ? Sum::bias : Sum::none;
  const auto own = own_parts(out, sum, {x, false}, {w, false}, bias);
  compute(own ? *own : parts_of(out, x, w.t(), sum, bias.defined() ? bias.detach().to(x.scalar_type()) : Tensor()));
  return out;
}

Tensor matmul_packed(const Tensor& x, const Tensor& packed, const Tensor& bias) {
  static const auto linear_op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
          .typed<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, std::string_view,
                        c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>)>();
  const auto multiply = [&](const Tensor& rows) {
    return linear_op.call(rows, packed, bias.defined() ? std::optional<Tensor>(bias) : std::nullopt, "none",
                          c10::List<std::optional<at::Scalar>>(), "");
  };
  const int64_t width = x.size(-1), count = x.numel() / std::max<int64_t>(width, 1), padded = padded_rows(count);
  if (padded == count) return multiply(x);
  auto rows = at::empty({padded, width}, x.options());
  rows.narrow(0, 0, count).copy_(x.reshape({count, width}));
  rows.narrow(0, count, padded - count).zero_();
  auto sizes = x.sizes().vec();
  const auto result = multiply(rows);
  sizes.back() = result.size(1);
  return result.narrow(0, 0, count).view(sizes);
}

Tensor matmul_nn(const Tensor& dy, const Tensor& w) {
  const auto out = room(dy, dy.size(0), w.size(1));
  const auto own = own_parts(out, Sum::none, {dy, false}, {w, true});
  compute(own ? *own : parts_of(out, dy, w, Sum::none));
  return out;
}

void add_matmul_tn(Tensor grad, const Tensor& dy, const Tensor& x) {
  const auto own = own_parts(grad, Sum::out, {dy, true}, {x, true});
  if (own || dy.scalar_type() == at::kFloat)
    compute(own ? *own : parts_of(grad, dy.t(), x, Sum::out));
  else
    add_to(grad, mm_in_parts(dy.t(), x));
}

void add_matmul_nn(Tensor sum, const Tensor& dy, const Tensor& w) {
  const auto own = own_parts(sum, Sum::out, {dy, false}, {w, true});
  if (own || dy.scalar_type() == at::kFloat)
    compute(own ? *own : parts_of(sum, dy, w, Sum::out));
  else
    add_to(sum, mm_in_parts(dy, w));
}

Tensor matmul_backward(Tensor grad, const Tensor& dy, const Tensor& x, const Tensor& w) {
  const auto dx = room(dy, dy.size(0), w.size(1));
  const auto outer = own_parts(grad, Sum::out, {dy, true}, {x, true}),
             own = own_parts(dx, Sum::none, {dy, false}, {w, true});
  const auto back = own ? *own : parts_of(dx, dy, w, Sum::none);
  if (outer || dy.scalar_type() == at::kFloat) {
    compute(outer ? *outer : parts_of(grad, dy.t(), x, Sum::out), back);
  } else {
    add_to(grad, mm_in_parts(dy.t(), x));
    compute(back);
  }
  return dx;
}

Tensor batched_matmul(const Tensor& a, const Tensor& b) {
  const auto leading = at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  const auto with = [&leading](int64_t rows, int64_t columns) {
    auto sizes = leading;
    sizes.insert(sizes.end(), {rows, columns});
    return sizes;
  };
  if (b.dim() == 2) return matmul_nn(a.reshape({-1, a.size(-1)}), b).view(with(a.size(-2), b.size(-1)));
  const auto batch = c10::multiply_integers(leading);
  const auto all = [&](const Tensor& x) {
    return x.expand(with(x.size(-2), x.size(-1))).reshape({batch, x.size(-2), x.size(-1)});
  };
  const auto left = all(a), right = all(b);
  const auto out = at::empty({batch, a.size(-2), b.size(-1)}, a.options().requires_grad(false));
  const auto grid = grid_of(std::max<int64_t>(batch, 1), out.size(1), out.size(2), a.size(-1));
  each_part(batch * grid.count(), [&](int64_t k) {
    const at::AutoDispatchBelowADInplaceOrView no_graph;
    const int64_t matrix = k / grid.count(), part = k % grid.count();
    const auto [row, rows] = part_of(out.size(1), part / grid.columns, grid.rows);
    const auto [column, columns] = part_of(out.size(2), part % grid.columns, grid.columns);
    auto c = out.select(0, matrix).narrow(0, row, rows).narrow(1, column, columns);
    at::mm_out(c, left.select(0, matrix).narrow(0, row, rows), right.select(0, matrix).narrow(1, column, columns));
  });
  return out.view(with(a.size(-2), b.size(-1)));
}

}  // namespace cloze

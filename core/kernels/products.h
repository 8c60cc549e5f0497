#pragma once
// Products of bf16 matrices on units that multiply pairs of numbers (AVX512-BF16), on raw pointers: no LibTorch, no
// threads. Weights, or what is summed over tokens, are laid out panel by panel as those units read them; nothing is
// kept between calls.
#include <cstdint>

namespace cloze::kernels {

/// c [rows, columns], a sum of `depth` products each in fp32. Strides are numbers from row to row of what is named.
struct Product {
  int64_t rows, columns, depth;
  const uint16_t* a;  ///< [rows, depth], where depth is even; `a_by_depth`: [depth, rows]
  int64_t a_stride;   ///< even, but for `a_by_depth`
  bool a_by_depth;
  const uint16_t* b;  ///< [columns, depth], where depth is even; `b_by_depth`: [depth, columns]
  int64_t b_stride;   ///< even, but for `b_by_depth`
  bool b_by_depth;
  const float* bias;  ///< [columns], or null; of `c`
  uint16_t* c;        ///< receives the product, rounded; or null
  float* sum;         ///< the product is added to it
  int64_t c_stride;   ///< of `c` or `sum`
  uint32_t* scratch;  ///< product_scratch(...) words, best from a multiple of 64 bytes on
};

inline constexpr int64_t product_rows = 6;     ///< rows that are computed together
inline constexpr int64_t product_panel = 64;   ///< columns that are computed together
inline constexpr int64_t product_tiles = 24;   ///< so many times these rows are laid out together
inline constexpr int64_t product_block = 512;  ///< pairs along the depth that are summed before they are added to `sum`
inline constexpr int64_t product_room =
    96 << 10;  ///< words of panels that a pass over the rows of `c` reads, one panel more or less
inline constexpr int64_t product_group = 2048;  ///< columns that a pass over the rows of `sum` reads

/// Columns whose panels lie in the scratch space at a time.
static inline int64_t product_width(const Product& p) {
  const int64_t columns = (p.columns + product_panel - 1) / product_panel * product_panel;
  const int64_t most = p.sum ? product_group : (product_room / (p.depth / 2 + 1) / product_panel + 1) * product_panel;
  return columns < most ? columns : most;
}
static inline int64_t product_scratch(const Product& p) {
  const int64_t pairs = (p.depth + 1) / 2, block = p.sum && pairs > product_block ? product_block : pairs;
  return block * (product_width(p) + (p.a_by_depth ? product_rows * product_tiles : 0));
}

using ProductKernel = void (*)(const Product&);
/// Null where `table()` is of an instruction set without such units.
ProductKernel product_kernel();

}  // namespace cloze::kernels

#pragma once
// GEMM of bf16 matrices with AVX512-BF16 instructions, on raw pointers: no LibTorch, no threads. Operands are packed
// into panels as those instructions read them; nothing is kept between calls.
#include <cstdint>

namespace cloze::kernels {

/// c [rows, columns] = a b', summed over `depth` in fp32. Strides are elements from row to row.
struct Gemm {
  int64_t rows, columns, depth;
  const uint16_t* a;  ///< [rows, depth], where depth is even; `a_depth_major`: [depth, rows]
  int64_t a_stride;   ///< even, but for `a_depth_major`
  bool a_depth_major;
  const uint16_t* b;  ///< [columns, depth], where depth is even; `b_depth_major`: [depth, columns]
  int64_t b_stride;   ///< even, but for `b_depth_major`
  bool b_depth_major;
  const float* bias;  ///< [columns], added to `c`; or null
  uint16_t* c;        ///< receives the result, rounded; or null
  float* sum;         ///< or: the result is added to it
  int64_t c_stride;   ///< of `c` or `sum`
  uint32_t* scratch;  ///< gemm_scratch(...) words, best aligned to 64 bytes
};

inline constexpr int64_t gemm_rows = 6;        ///< rows that are computed together
inline constexpr int64_t gemm_panel = 64;      ///< columns that are computed together
inline constexpr int64_t gemm_row_tiles = 24;  ///< tiles of rows that are packed at a time
inline constexpr int64_t gemm_depth_block =
    512;  ///< pairs along the depth that are accumulated before they are added to `sum`
inline constexpr int64_t gemm_panel_words =
    96 << 10;  ///< words of packed panels that a pass over the rows of `c` reads, up to one panel
inline constexpr int64_t gemm_column_group = 2048;  ///< columns that a pass over the rows of `sum` reads

/// Columns whose packed panels are in the scratch space at a time.
static inline int64_t gemm_columns_at_once(const Gemm& p) {
  const int64_t columns = (p.columns + gemm_panel - 1) / gemm_panel * gemm_panel;
  const int64_t max = p.sum ? gemm_column_group : (gemm_panel_words / (p.depth / 2 + 1) / gemm_panel + 1) * gemm_panel;
  return columns < max ? columns : max;
}
static inline int64_t gemm_scratch(const Gemm& p) {
  const int64_t pairs = (p.depth + 1) / 2, block = p.sum && pairs > gemm_depth_block ? gemm_depth_block : pairs;
  return block * (gemm_columns_at_once(p) + (p.a_depth_major ? gemm_rows * gemm_row_tiles : 0));
}

using GemmKernel = void (*)(const Gemm&);
/// Null if the instruction set of `table()` is not AVX512-BF16.
GemmKernel gemm_kernel();

}  // namespace cloze::kernels

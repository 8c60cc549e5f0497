#pragma once
// GEMM of bf16 matrices with AMX or AVX512-BF16 instructions, on raw pointers: no LibTorch, no threads. Operands are
// packed into panels as those instructions read them; nothing is kept between calls.
#include <cstdint>

namespace cloze::kernels {

/// c [rows, columns] = a b', summed over `depth`, at least 1, in fp32. Strides are elements from row to row.
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
  uint32_t* scratch;  ///< as many words as the kernel says, best aligned to 64 bytes
};

/// The GEMM of an instruction set.
struct GemmKernel {
  void (*run)(const Gemm&);
  int64_t (*scratch)(const Gemm&);  ///< words of scratch space
  int64_t rows, columns;            ///< that are computed together
  int64_t packing_cost;             ///< of a column, or of a row of a depth-major `a`: rows that are computed meanwhile
};
/// Null if the instruction set of `table()` is neither AMX nor AVX512-BF16.
const GemmKernel* gemm_kernel();

}  // namespace cloze::kernels

#pragma once
// GEMM of bf16 matrices with AMX or AVX512-BF16 instructions, and of fp32 ones with AVX2 or AVX-512, on raw pointers:
// no LibTorch, no threads. Operands are packed into panels as those instructions read them; nothing is kept between
// calls.
#include <cstdint>

namespace cloze::kernels {

/// c [rows, columns] = a b', summed over `depth`, at least 1, in fp32. Strides are elements from row to row. T is
/// float, or uint16_t: bf16, where `depth` and the strides of operands that are not depth-major are even.
template <class T>
struct Gemm {
  int64_t rows, columns, depth;
  const T* a;  ///< [rows, depth]; `a_depth_major`: [depth, rows]
  int64_t a_stride;
  bool a_depth_major;
  const T* b;  ///< [columns, depth]; `b_depth_major`: [depth, columns]
  int64_t b_stride;
  bool b_depth_major;
  const float* bias;  ///< [columns], added to `c`; or null
  T* c;               ///< receives the result, rounded; or null
  float* sum;         ///< or: the result is added to it
  int64_t c_stride;   ///< of `c` or `sum`
  uint32_t* scratch;  ///< as many words as the kernel says, best aligned to 64 bytes
};

/// The GEMM of an instruction set. Sums do not depend on how many rows and columns are computed with them.
template <class T>
struct GemmKernel {
  void (*run)(const Gemm<T>&);
  int64_t (*scratch)(const Gemm<T>&);  ///< words of scratch space
  int64_t rows, columns;               ///< that are computed together
  int64_t packing_cost;  ///< of a column, or of a row of a depth-major `a`: rows that are computed meanwhile
};
/// Null if the instruction set of `table()` is neither AMX nor AVX512-BF16.
const GemmKernel<uint16_t>* bf16_gemm();
/// Null if that instruction set is `base_isa`.
const GemmKernel<float>* fp32_gemm();

}  // namespace cloze::kernels

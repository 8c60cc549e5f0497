#include "core/tensor/math_libraries.h"

#include <ATen/ATen.h>

#include <cstdlib>

namespace cloze {

namespace {

/// On Intel's processors MKL's sums depend on the alignment of the matrices, which differs from run to run, unless its
/// environment says otherwise before its first call. Source: oneMKL developer guide, "Conditional Numerical
/// Reproducibility".
void choose_strict_sums() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_is("intel")) setenv("MKL_CBWR", "AUTO,STRICT", /*overwrite=*/0);
#endif
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

}  // namespace

bool set_up_math_libraries() {
  choose_strict_sums();
  keep_little_code();
  find_vector_functions();
  return true;
}

}  // namespace cloze

#pragma once
// Additions whose order a GPU does not choose.
#include <ATen/Context.h>

namespace cloze {

/// While one exists, the operators of LibTorch on a GPU add in one order. It is around single calls: operators that
/// have no such form refuse to run, and products ask for a workspace that the environment has to name.
class InOrder {
 public:
  InOrder() {
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~InOrder() { at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;
};

}  // namespace cloze

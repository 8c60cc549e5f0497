#pragma once
// Functions of libraries that are looked for as the program runs: those of the driver, and what LibTorch's CUDA brings.
#include <dlfcn.h>

#include "core/error.h"

namespace cloze::device {

/// A C function of a library, which may be null; those of a library that is loaded for the whole process come first.
template <class F>
F* function_of(void* library, const char* name) {
  void* address = dlsym(RTLD_DEFAULT, name);
  if (!address && library) address = dlsym(library, name);
  require<Error>(address != nullptr, "the function ", name, " is missing");
  return reinterpret_cast<F*>(address);
}

}  // namespace cloze::device

#pragma once
// The kernels of kernels.cu: compiled by NVRTC, which comes with LibTorch's CUDA, for the card that this process
// computes on, and kept in the user's cache folder. Neither nvcc nor CUDA's headers are needed to build or run.
#include <cstdint>
#include <string>
#include <utility>

namespace cloze::device {

/// The compute capability of a card, {9, 0}; {0, 0}: the driver does not tell.
std::pair<int, int> compute_capability(int card);

/// Why the kernels cannot run in this process: NVRTC or the driver is missing, or does not compile them. Empty: they
/// can. The first call finds out, which takes seconds where they are not in the cache.
const std::string& without_kernels();

/// Where and how often a kernel runs.
struct Launch {
  void* stream;        ///< CUstream of the current card
  bool bf16;           ///< the element type: bf16, or float
  const char* kernel;  ///< its name
  int64_t warps;       ///< each is a part of the work by itself
};

/// Throws Error with the driver's reason. arguments: pointers to the kernel's parameters
void launch(const Launch& where, void** arguments);

/// Launches a kernel; each argument has the size of its parameter: pointers, int64_t, int, float, structs.
template <class... Arguments>
void launch(const Launch& where, Arguments... arguments) {
  void* all[] = {&arguments...};
  launch(where, all);
}

}  // namespace cloze::device

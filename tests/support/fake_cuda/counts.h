#pragma once
// What a program asked of the stand-in for a GPU (tests/support/fake_cuda/device.cpp).
#include <cstdint>
#include <map>
#include <string>

#define FAKE_CUDA_API __attribute__((visibility("default")))

namespace fake_cuda {

using CountsByName = std::map<std::string, int64_t>;

/// Of all threads, since the process began or `reset_counts`.
struct Counts {
  CountsByName operators{};  ///< that a GPU would run, by name; of a kernel that calls others it alone
  CountsByName syncs{};  ///< waits of the host for the GPU, by cause: `item`, `nonzero`, a copy of pageable memory, ...
  CountsByName mixed{};  ///< operators with tensors of both devices, which a GPU refuses or makes slow
  CountsByName unordered{};  ///< operators that would add in an order which a GPU chooses anew in each run
  int64_t copies_to_device = 0, copies_to_host = 0;
  int64_t bytes_to_device = 0, bytes_to_host = 0;
};

FAKE_CUDA_API Counts counts();
FAKE_CUDA_API void reset_counts();

/// The sum over names.
inline int64_t total(const CountsByName& counts) {
  int64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

}  // namespace fake_cuda

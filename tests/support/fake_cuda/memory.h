#pragma once
// The memory of the stand-in for a GPU: pages that the host may not touch. A stray data_ptr<float>() of a tensor on the
// device ends the program at its line, as on a GPU.
#include <ATen/core/Tensor.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace fake_cuda {

/// FAKE_CUDA_MEMORY is the number of bytes of the card, 1 GiB without it; an allocation above it throws
/// OutOfMemoryError, with the words of LibTorch's allocator.
c10::DeviceAllocator& device_memory();
/// Memory of the host that a copy need not wait for.
c10::Allocator& pinned_memory();
bool is_pinned(const void* data);

/// The memory of a tensor on the device may be touched while this lives, under device_mutex().
class OpenMemory {
 public:
  explicit OpenMemory(const at::Tensor& tensor);
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
  /// A tensor of the CPU over the same memory.
  const at::Tensor& on_host() const { return on_host_; }

 private:
  void* begin_ = nullptr;
  at::Tensor on_host_;
};

}  // namespace fake_cuda

#pragma once
// How the parts of the stand-in for a GPU count.
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <mutex>
#include <string>

#include "tests/support/fake_cuda/counts.h"

namespace fake_cuda {

/// Held by each operator: the device runs one at a time, and memory is open for it alone.
std::recursive_mutex& device_mutex();

/// An operator while it runs. What it calls is part of it and not counted.
class OperatorScope {
 public:
  explicit OperatorScope(const std::string& name);
  ~OperatorScope();
  OperatorScope(const OperatorScope&) = delete;
  OperatorScope& operator=(const OperatorScope&) = delete;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

/// A kernel that is launched by itself, counted among the operators.
void count_kernel(const std::string& name);
/// The host waits for the device.
void count_sync(const std::string& cause);
/// Tensors of both devices are arguments of an operator. Numbers in a tensor without axes are no such tensor.
void count_mixed(const std::string& name);
/// An operator adds several numbers to one, in an order of the device's own.
void count_unordered(const std::string& name);
/// A copy between the devices. It is a sync, unless `is_async`.
void count_copy(const at::Tensor& from, bool to_device, bool is_async);

}  // namespace fake_cuda

// A GPU for LibTorch without CUDA, so that code for one is tested on any machine: linked with a test, or preloaded.
//
//   LD_PRELOAD=build/libfake_cuda.so FAKE_CUDA_REPORT=counts.txt build/cloze pretrain ... --set train.device=cuda
//
// Kernels of the dispatch key CUDA compute on the processor, over memory that the host may not touch (memory.h); the
// backward pass runs on a thread of its own, as on a GPU. Operators, syncs, copies and operators with tensors of both
// devices are counted (counts.h). What it cannot show: speed, the roundings and atomics of a GPU's kernels, streams.
//
//   FAKE_CUDA_DEVICES   number of GPUs, 1 without it; 0: as a machine without a driver; CUDA_VISIBLE_DEVICES names some
//   FAKE_CUDA_MEMORY    bytes of the card
//   FAKE_CUDA_CAPABILITY  the first number of its compute capability, 9 without it
//   FAKE_CUDA_REPORT    file that receives the counts when the process ends
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdlib>
#include <sstream>

#include "tests/support/fake_cuda/generator.h"
#include "tests/support/fake_cuda/memory.h"
#include "tests/support/fake_cuda/record.h"

namespace fake_cuda {
namespace {

const c10::Device card(c10::DeviceType::CUDA, 0);
const c10::Stream only_stream(c10::Stream::DEFAULT, card);

c10::DeviceIndex number_of_cards() {
  const char* number = std::getenv("FAKE_CUDA_DEVICES");
  const int all = number ? std::atoi(number) : 1;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return static_cast<c10::DeviceIndex>(all);
  c10::DeviceIndex seen = 0;
  std::istringstream numbers(visible);
  for (std::string one; std::getline(numbers, one, ',');) seen += std::atoi(one.c_str()) < all;
  return seen;
}

}  // namespace
}  // namespace fake_cuda

namespace at {

// LibTorch looks for a class of this name and namespace.
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return fake_cuda::number_of_cards() > 0; }
  int getNumGPUs() const override { return fake_cuda::number_of_cards(); }
  DeviceIndex deviceCount() const override { return fake_cuda::number_of_cards(); }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  Device getDeviceFromPtr(void*) const override { return fake_cuda::card; }
  void deviceSynchronize(DeviceIndex) const override { fake_cuda::count_sync("synchronize"); }
  const Generator& getDefaultGenerator(DeviceIndex) const override { return fake_cuda::default_generator(); }
  Generator getNewGenerator(DeviceIndex) const override { return fake_cuda::new_generator(); }
  Allocator* getPinnedMemoryAllocator() const override { return &fake_cuda::pinned_memory(); }
  Allocator* getCUDADeviceAllocator() const override { return &fake_cuda::device_memory(); }
  bool isPinnedPtr(const void* data) const override { return fake_cuda::is_pinned(data); }
};
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at

namespace fake_cuda {
namespace {

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device exchangeDevice(c10::Device) const override { return card; }
  c10::Device getDevice() const override { return card; }
  c10::DeviceIndex deviceCount() const noexcept override { return number_of_cards(); }
  c10::Stream getStream(c10::Device) const noexcept override { return only_stream; }
  c10::Stream getDefaultStream(c10::Device) const override { return only_stream; }
  c10::Stream getNewStream(c10::Device, int) const override { return only_stream; }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return only_stream; }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { count_sync("synchronize"); }
  void synchronizeEvent(void*) const override { count_sync("synchronize"); }
  void synchronizeDevice(const c10::DeviceIndex) const override { count_sync("synchronize"); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

[[maybe_unused]] const bool has_memory = [] {
  c10::SetAllocator(c10::DeviceType::CUDA, &device_memory());
  return true;
}();

}  // namespace
}  // namespace fake_cuda

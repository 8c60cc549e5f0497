#include "tests/support/fake_cuda/memory.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/support/fake_cuda/record.h"
#include "tests/support/fake_nvrtc/kernel_runs.h"

namespace fake_cuda {

namespace {

const c10::Device card(c10::DeviceType::CUDA, 0);

size_t whole_pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

struct Region {
  size_t bytes;  ///< of whole pages
  int open = 0;  ///< number of OpenMemory
};
/// By its first byte. Never freed: tensors may outlive static variables.
std::map<void*, Region>& regions() {
  static auto* all = new std::map<void*, Region>;
  return *all;
}

struct DeviceMemory final : c10::DeviceAllocator {
  size_t capacity = size_t{1} << 30, used = 0, peak = 0;

  DeviceMemory() {
    if (const char* bytes = std::getenv("FAKE_CUDA_MEMORY")) capacity = std::strtoull(bytes, nullptr, 10);
  }
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &free, card};
    const std::lock_guard lock(device_mutex());
    const size_t pages = whole_pages(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, used + pages <= capacity, "CUDA out of memory. Tried to allocate ", bytes,
                     " bytes. GPU 0 has a total capacity of ", capacity, " bytes of which ", capacity - used,
                     " bytes is free.");
    void* data = mmap(nullptr, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(data != MAP_FAILED, "the stand-in for a GPU has no memory");
    regions()[data] = {pages};
    used += pages;
    peak = std::max(peak, used);
    return {data, data, &free, card};
  }
  static void free(void* data);
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].peak = static_cast<int64_t>(peak);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override { return {capacity - used, capacity}; }
};

DeviceMemory& the_memory() {
  static auto* memory = new DeviceMemory;
  return *memory;
}

void DeviceMemory::free(void* data) {
  if (!data) return;
  const std::lock_guard lock(device_mutex());
  const auto region = regions().extract(data);
  the_memory().used -= region.mapped().bytes;
  munmap(data, region.mapped().bytes);
}

std::map<const char*, size_t>& pinned_blocks() {
  static auto* all = new std::map<const char*, size_t>;
  return *all;
}

struct PinnedMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = std::aligned_alloc(64, whole_pages(bytes + 1));
    const std::lock_guard lock(device_mutex());
    pinned_blocks()[static_cast<const char*>(data)] = bytes;
    return {data, data, &free, c10::Device(c10::DeviceType::CPU)};
  }
  static void free(void* data) {
    const std::lock_guard lock(device_mutex());
    pinned_blocks().erase(static_cast<const char*>(data));
    std::free(data);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

}  // namespace

c10::DeviceAllocator& device_memory() { return the_memory(); }

c10::Allocator& pinned_memory() {
  static auto* memory = new PinnedMemory;
  return *memory;
}

bool is_pinned(const void* data) {
  const std::lock_guard lock(device_mutex());
  const auto* byte = static_cast<const char*>(data);
  const auto after = pinned_blocks().upper_bound(byte);
  if (after == pinned_blocks().begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return byte < begin + std::max<size_t>(bytes, 1);
}

OpenMemory::OpenMemory(const at::Tensor& tensor) : on_host_(tensor) {
  if (!tensor.is_cuda()) return;
  const auto& storage = tensor.storage();
  on_host_ = at::empty({0}, tensor.options().device(at::kCPU));
  if (storage.nbytes() == 0) {
    on_host_.resize_(tensor.sizes());
    return;
  }
  begin_ = storage.mutable_data();
  auto& region = regions().at(begin_);
  if (region.open++ == 0) mprotect(begin_, region.bytes, PROT_READ | PROT_WRITE);
  const c10::Storage same(c10::Storage::use_byte_size_t(), storage.nbytes(),
                          c10::DataPtr(begin_, c10::Device(c10::DeviceType::CPU)));
  on_host_.set_(same, tensor.storage_offset(), tensor.sizes(), tensor.strides());
}

OpenMemory::~OpenMemory() {
  if (!begin_) return;
  auto& region = regions().at(begin_);
  if (--region.open == 0) mprotect(begin_, region.bytes, PROT_NONE);
}

namespace {

void protect_all(int protection) {
  for (const auto& [data, region] : regions())
    if (region.open == 0) mprotect(data, region.bytes, protection);
}

/// A kernel reads and writes all memory of the device.
[[maybe_unused]] const bool kernels_run = [] {
  fake_nvrtc::around_kernels() = {.begin =
                                      [](const char* kernel) {
                                        device_mutex().lock();
                                        count_kernel(kernel);
                                        protect_all(PROT_READ | PROT_WRITE);
                                      },
                                  .end =
                                      [] {
                                        protect_all(PROT_NONE);
                                        device_mutex().unlock();
                                      }};
  return true;
}();

}  // namespace

}  // namespace fake_cuda

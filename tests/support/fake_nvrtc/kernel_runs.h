#pragma once
// What a stand-in for a GPU does around each kernel, which reads and writes its memory.

namespace fake_nvrtc {

struct Around {
  void (*begin)(const char* kernel) = nullptr;
  void (*end)() = nullptr;
};
/// Of this process; empty at first.
__attribute__((visibility("default"))) Around& around_kernels();

}  // namespace fake_nvrtc

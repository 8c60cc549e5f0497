// The entry point of libFuzzer for the driver that CLOZE_FUZZ_TARGET names.
#include <cstddef>
#include <cstdint>

#include "core/log.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  cloze::set_log_level(cloze::LogLevel::quiet);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cloze::CLOZE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}

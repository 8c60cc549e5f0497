#pragma once
// The bytes of a text file, decompressed on the fly.
#include <cstddef>
#include <memory>
#include <string>

namespace cloze {

/// Bytes of a file, decompressed.
struct ByteSource {
  virtual ~ByteSource() = default;
  /// Up to `n` bytes; 0 at the end.
  virtual size_t read(char* out, size_t n) = 0;
};

/// Opens a file, or standard input for `-`; `.gz` and `.xz` are decompressed. Throws DataError with the name of a file
/// that cannot be read, or is damaged (when its bytes are read).
std::unique_ptr<ByteSource> open_bytes(const std::string& name);

}  // namespace cloze

#pragma once
// The bytes of a text file, decompressed on the fly.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cloze {

/// Bytes of a file, decompressed.
struct ByteSource {
  virtual ~ByteSource() = default;
  /// Up to `n` bytes; 0 at the end.
  virtual size_t read(char* out, size_t n) = 0;
};

/// A file name without its `.gz` or `.xz`.
std::string uncompressed_name(const std::string& name);

/// Opens a file, or standard input for `-`; `.gz` and `.xz` are decompressed. Throws DataError with the name of a file
/// that cannot be read, or is damaged (when its bytes are read).
std::unique_ptr<ByteSource> open_bytes(const std::string& name);

/// All bytes of a file, decompressed. Throws as `open_bytes`, and as `require_at_most`.
std::string read_bytes(const std::string& name, uint64_t most);

/// Throws DataError for a file of which so many bytes were read, a few of which may unpack to more than memory has.
void require_at_most(uint64_t most, uint64_t bytes, const std::string& name);

/// The file of a name, or its compressed form: the first of `name`, `name.xz` and `name.gz` that is there, else
/// `name`.
std::string plain_or_compressed(const std::string& name);

}  // namespace cloze

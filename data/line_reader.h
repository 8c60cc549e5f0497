#pragma once
// The lines of a text file.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_source.h"

namespace cloze {

/// Lines of a file, without carriage returns at line ends and without a byte order mark. Throws DataError for a line
/// over 16 MB or with a NUL.
class LineReader {
 public:
  explicit LineReader(const std::string& file_name);
  /// Reads the next line, valid until the next call; false at the end.
  bool next(std::string_view& line);
  /// `name:number` of the last line, for messages.
  std::string where() const;

  std::string name;
  uint64_t number = 0;  ///< of the last line, from 1
  uint64_t bytes = 0;   ///< read so far, decompressed

 private:
  void refill();
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0, scanned_ = 0;
  bool ended_ = false;
};

}  // namespace cloze

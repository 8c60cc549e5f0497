#pragma once
// The lines of a text file.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/byte_source.h"

namespace cloze {

/// A file that is not text; says what it is, as far as that is known.
struct NotText : DataError {
  NotText(std::string file_name, const std::string& message) : DataError(message), file(std::move(file_name)) {}
  std::string file;
};

/// Lines of a file, without carriage returns at line ends and without a byte order mark. Throws DataError for a line
/// over 16 MB, NotText for one with a NUL and for a file that begins as other kinds do.
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

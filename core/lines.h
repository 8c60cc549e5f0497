#pragma once
// Lines of text, of which none fills the memory.
#include <cstddef>
#include <fstream>
#include <string>

namespace cloze {

/// What `read_line` has read: nothing at the end of the stream, a line, or the beginning of a longer one.
enum class LineRead { none, whole, beginning };

/// Reads a line without its end, of a longer one its first `most` bytes, after which the next call goes on.
LineRead read_line(std::istream& in, std::string& line, size_t most);

/// The lines of a log, which others may have made: none of a pipe or a device, and of a line over 1 MiB, which no run
/// writes, the beginning.
class LogLines {
 public:
  explicit LogLines(const std::string& path);
  /// Reads the next line without its end; false at the end.
  bool next(std::string& line);

 private:
  std::ifstream in_{};
};

}  // namespace cloze

#pragma once
// A JSON list of objects, as json.dump and pandas (orient='records') write it, as JSON lines.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cloze {

/// Whether a file begins as a list of objects: `[{"` or `[{}`, with or without white space.
bool begins_as_json_list(std::string_view begin);

/// Makes JSON lines of a list, part by part and byte by byte: commas between its objects end lines, and its brackets
/// and all other ends of lines are spaces. What stands inside of an object is left to the reader of the lines.
class JsonListLines {
 public:
  /// Throws DataError for an element that is empty, and for bytes after the list.
  void turn(char* bytes, size_t count);
  /// Throws DataError for a list that has not ended.
  void end() const;

 private:
  char turned(char byte);
  uint64_t done_ = 0;  // bytes
  size_t depth_ = 0;
  bool is_quoted_ = false, is_escaped_ = false, has_element_ = false, has_ended_ = false;
};

}  // namespace cloze

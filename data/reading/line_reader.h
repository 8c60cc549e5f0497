#pragma once
// The lines of a text file.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/reading/byte_source.h"
#include "data/reading/json_list.h"

namespace cloze {

/// A file that is not text; says what it is, as far as that is known. Standard input, and a stream of which the file
/// is a copy, are told other commands than a file that has a name.
struct NotText : DataError {
  /// what       stands after the name: `: is a PDF; ...`
  /// of_stream  the same of a stream; empty: no other
  NotText(const std::string& file_name, const std::string& what, const std::string& of_stream = "")
      : DataError(file_name + (file_name == "standard input" && !of_stream.empty() ? of_stream : what)),
        file(file_name),
        said_of_stream(of_stream.empty() ? what : of_stream) {}
  std::string file;
  std::string said_of_stream;      ///< after the name
  std::string kind = "binary";     ///< of the file, for a list: `PDF`
  std::string fault{}, command{};  ///< of a file that a command makes text of: what it is, and the command up to the
                                   ///< name of its output; both may be empty
};

/// The ending of the text that a file holds, by which it is read as what it is: `.csv` of notes.csv and notes.csv.zst,
/// `.txt` of others.
std::string ending_of_text(std::string_view name);

/// Where a carriage return without a line feed, the line end of old Macintosh files, ends a line: in files without line
/// feeds, by their first block, so that in tables one inside a cell ends nothing; or everywhere.
enum class LoneReturn { ends_if_no_feeds, ends_line };

/// What the lines are of a file that is one JSON list of objects: those of its text, or its objects.
enum class JsonList { as_text, as_objects };

/// Lines of a file, without their ends (LF, CR LF, CR) and without a byte order mark. Throws DataError for a line over
/// 16 MB and for a file of more bytes than are allowed, NotText for a line with a NUL and for a file that begins as
/// other kinds do.
class LineReader {
 public:
  /// `most_bytes`: of the whole file, decompressed.
  explicit LineReader(const std::string& file_name, LoneReturn rule = LoneReturn::ends_if_no_feeds,
                      uint64_t most_bytes = UINT64_MAX, JsonList lists = JsonList::as_text);
  /// Reads the next line, valid until the next call; false at the end.
  bool next(std::string_view& line);
  /// `name:number` of the last line, or `name: object number`, for messages.
  std::string where() const;
  /// Whether the lines are objects of a list.
  bool is_json_list() const { return list_.has_value(); }

  std::string name;
  uint64_t number = 0;  ///< of the last line, from 1
  uint64_t bytes = 0;   ///< read so far, decompressed

 private:
  void refill();
  void turn_list(char* bytes, size_t count);
  bool find_end(size_t& length, size_t& next);
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0, scanned_ = 0;
  bool ended_ = false;
  LoneReturn rule_;
  uint64_t most_bytes_;
  JsonList lists_;
  std::optional<JsonListLines> list_{};
  bool returns_end_ = false;  // a lone carriage return ends a line
  bool each_ends_ = false;    // carriage returns and line feeds end a line each, side by side too
};

}  // namespace cloze

#include "data/reading/json_list.h"

#include "core/error.h"

namespace cloze {

namespace {

constexpr std::string_view json_white_space = " \t\r\n";

}  // namespace

bool begins_as_json_list(std::string_view begin) {
  if (begin.starts_with("\xEF\xBB\xBF")) begin.remove_prefix(3);
  for (const std::string_view expected : {"[", "{", "\"}"}) {
    begin.remove_prefix(std::min(begin.find_first_not_of(json_white_space), begin.size()));
    if (begin.empty() || expected.find(begin[0]) == expected.npos) return false;
    begin.remove_prefix(1);
  }
  return true;
}

void JsonListLines::turn(char* bytes, size_t count) {
  for (size_t at = 0; at < count; ++at, ++done_) bytes[at] = turned(bytes[at]);
}

char JsonListLines::turned(char byte) {
  if (is_quoted_) {
    is_quoted_ = is_escaped_ || byte != '"';
    is_escaped_ = !is_escaped_ && byte == '\\';
    return byte;
  }
  if (json_white_space.find(byte) != std::string_view::npos) return ' ';
  require<DataError>(!has_ended_, ": goes on after the end of its list of objects, at byte ", done_ + 1,
                     "; write one list, or JSON lines");
  const bool is_between = depth_ == 1 && (byte == ',' || byte == ']');
  require<DataError>(has_element_ || !is_between, ": its list has nothing before the '", byte, "' at byte ", done_ + 1,
                     "; remove a comma, or get the file again");
  has_element_ = depth_ > 0 && !is_between;
  is_quoted_ = byte == '"';
  if (byte == '[' || byte == '{') return ++depth_ == 1 ? ' ' : byte;
  if ((byte == ']' || byte == '}') && depth_ > 0) has_ended_ = --depth_ == 0;
  if (!is_between) return byte;
  return byte == ',' ? '\n' : ' ';
}

void JsonListLines::end() const {
  require<DataError>(has_ended_, ": its list of objects does not end; the file is cut off, get it again");
}

}  // namespace cloze

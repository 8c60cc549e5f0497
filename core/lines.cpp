#include "core/lines.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

namespace cloze {

LineRead read_line(std::istream& in, std::string& line, size_t most) {
  line.clear();
  std::array<char, 1 << 12> part;
  while (line.size() < most) {
    const auto room = std::min(part.size(), most - line.size() + 1);  // with the NUL at its end
    in.getline(part.data(), static_cast<std::streamsize>(room));
    const auto count = static_cast<size_t>(in.gcount());
    if (in.good()) {  // the line feed was counted
      line.append(part.data(), count - 1);
      return LineRead::whole;
    }
    line.append(part.data(), count);
    if (in.eof() || in.bad() || count == 0) return line.empty() ? LineRead::none : LineRead::whole;
    in.clear();  // the part is full
  }
  return LineRead::beginning;
}

LogLines::LogLines(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path, unknown)) in_.open(path, std::ios::binary);
}

bool LogLines::next(std::string& line) {
  constexpr size_t longest = 1 << 20;
  const auto found = read_line(in_, line, longest);
  if (found == LineRead::beginning) in_.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  return found != LineRead::none;
}

}  // namespace cloze

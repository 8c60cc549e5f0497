#pragma once
// Names in commands that a message proposes.
#include <algorithm>
#include <string>
#include <string_view>

namespace cloze {

/// A name as a word of a shell: quoted where it needs to be, and no option.
inline std::string shell_word(const std::string& name) {
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || std::string_view("_-./,:=@%+").find(c) != std::string_view::npos;
  };
  const auto path = name.starts_with("-") ? "./" + name : name;
  if (!path.empty() && std::all_of(path.begin(), path.end(), is_plain)) return path;
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace cloze

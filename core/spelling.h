#pragma once
// The word that was meant, the shortest spelling of a number, and names as messages and shells read them.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// The candidate most similar to a mistyped word, or empty if none is similar or the word is long. Source: Damerau
/// 1964.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);
/// `; did you mean 'x'?` or empty.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);
/// A text with its control characters, and bytes that are not UTF-8, as escapes, such as `\n` and `\x1b`.
std::string visible(const std::string& text);
/// A text of a user as a message repeats it: visible, and cut to about a hundred bytes, with an ellipsis.
std::string shortened(const std::string& text);
/// The shortest text of a number that parses to the same value.
std::string shortest(double value);

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

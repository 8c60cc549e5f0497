#include "core/spelling.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/shown_character.h"

namespace cloze {

namespace {

/// Whether a character of three bytes is none that text shows: a line or paragraph separator, one that turns the
/// direction of what follows (U+202A to U+202E, U+2066 to U+2069), or no character (U+FFFE, U+FFFF).
bool turns_or_ends_text(int first, int second, int third) {
  return (first == 0xE2 && second == 0x80 && third >= 0xA8 && third <= 0xAE) ||
         (first == 0xE2 && second == 0x81 && third >= 0xA6 && third <= 0xA9) ||
         (first == 0xEF && second == 0xBF && third >= 0xBE);
}

}  // namespace

size_t bytes_of_character(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0; };
  const int lead = byte(0), second = byte(1);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7F ? 0 : 1;
  const size_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool is_control = lead == 0xC2 && second < 0xA0;
  const bool is_overlong = lead < 0xC2 || (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool is_no_code = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F) || lead > 0xF4;
  const bool is_hidden = bytes == 3 && turns_or_ends_text(lead, second, byte(2));
  return is_control || is_overlong || is_no_code || is_hidden ? 0 : bytes;
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t longest = 100;
  if (word.size() > longest) return "";
  std::string best;
  size_t best_distance = (word.size() <= 4 ? 1 : std::max<size_t>(2, word.size() / 3)) + 1;
  for (const auto& candidate : candidates) {
    const size_t n = word.size(), m = candidate.size();
    if (std::max(n, m) - std::min(n, m) >= best_distance) continue;  // so many letters are missing; names may be long
    std::vector<std::vector<size_t>> d(n + 1, std::vector<size_t>(m + 1));
    for (size_t i = 0; i <= n; ++i) d[i][0] = i;
    for (size_t j = 0; j <= m; ++j) d[0][j] = j;
    for (size_t i = 1; i <= n; ++i)
      for (size_t j = 1; j <= m; ++j) {
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (word[i - 1] != candidate[j - 1])});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1])
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    if (d[n][m] >= best_distance) continue;
    best_distance = d[n][m];
    best = candidate;
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const auto near = nearest(word, candidates);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

std::string visible(const std::string& text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const auto bytes = bytes_of_character(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (bytes > 0)
      shown.append(text, at, bytes);
    else if (byte == '\n')
      shown += "\\n";
    else if (byte == '\t')
      shown += "\\t";
    else if (byte == '\r')
      shown += "\\r";
    else
      shown += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    at += std::max<size_t>(bytes, 1);
  }
  return shown;
}

std::string shortened(const std::string& text) {
  constexpr size_t longest = 100;
  if (text.size() <= longest) return visible(text);
  size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // no cut character
  return visible(text.substr(0, end)) + "...";
}

std::string shortest(double value) {
  char buffer[32];
  const bool ordinary = std::abs(value) >= 1 && std::abs(value) < 1e7;  // 100000, for which to_chars prefers 1e+05
  const auto [end, error] = ordinary ? std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed)
                                     : std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

}  // namespace cloze

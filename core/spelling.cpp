#include "core/spelling.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cloze {

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t longest = 100;
  if (word.size() > longest) return "";
  std::string best;
  size_t best_distance = (word.size() <= 4 ? 1 : std::max<size_t>(2, word.size() / 3)) + 1;
  for (const auto& candidate : candidates) {
    const size_t n = word.size(), m = candidate.size();
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
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      shown += "\\n";
    else if (c == '\t')
      shown += "\\t";
    else if (c == '\r')
      shown += "\\r";
    else if (byte < 32 || byte == 127)
      shown += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    else
      shown += c;
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

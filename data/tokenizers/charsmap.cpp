#include "data/tokenizers/charsmap.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  uint32_t size = 0;
  require<DataError>(bytes.size() > sizeof size, where, " is not a table of SentencePiece: it has ", bytes.size(),
                     " bytes");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  require<DataError>(size >= 4 && size % 4 == 0 && size < bytes.size(), where,
                     " is not a table of SentencePiece: its trie has ", size, " of the ", bytes.size(), " bytes");
  units_.resize(size / 4);
  std::memcpy(units_.data(), bytes.data(), size);
  written_ = bytes.substr(size);
  require<DataError>(written_.back() == '\0' && find_invalid_utf8(written_) == std::string::npos, where,
                     " is not a table of SentencePiece: its texts are cut off or not UTF-8");
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  const auto offset = [](uint32_t unit) { return static_cast<size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6); };
  size_t node = offset(units_[0]);
  for (const char c : text) {
    const auto label = static_cast<uint8_t>(c);
    node ^= label;
    if (label == 0 || node >= units_.size()) return std::nullopt;
    const uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xFF)) != label) return std::nullopt;
    node ^= offset(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (node >= units_.size()) return std::nullopt;
    const size_t begin = units_[node] & ~(1u << 31);
    if (begin >= written_.size()) return std::nullopt;
    return std::string_view(written_.c_str() + begin);
  }
  return std::nullopt;
}

std::string from_base64(std::string_view text, const std::string& where) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = digits.find(c);
    require<DataError>(digit != std::string_view::npos, where, " is not base64: it has the character '",
                       std::string(1, c), "'");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

}  // namespace cloze

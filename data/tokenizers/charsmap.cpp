#include "data/tokenizers/charsmap.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

/// The two parts of a table: the units of its trie, and the texts that its leaves refer to.
struct Table {
  std::vector<uint32_t> units;
  std::string written;
};

/// Offset of the children of a unit, relative to its index.
size_t offset_of(uint32_t unit) { return static_cast<size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6); }

/// Throws DataError with `where` for a table whose parts do not fit.
Table read_table(std::string_view bytes, const std::string& where) {
  Table table;
  uint32_t size = 0;
  require<DataError>(bytes.size() > sizeof size, where, " is not a table of SentencePiece: it has ", bytes.size(),
                     " bytes");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  require<DataError>(size >= 4 && size % 4 == 0 && size < bytes.size(), where,
                     " is not a table of SentencePiece: its trie has ", size, " of the ", bytes.size(), " bytes");
  table.units.resize(size / 4);
  std::memcpy(table.units.data(), bytes.data(), size);
  table.written = bytes.substr(size);
  require<DataError>(table.written.back() == '\0' && find_invalid_utf8(table.written) == std::string::npos, where,
                     " is not a table of SentencePiece: its texts are cut off or not UTF-8");
  return table;
}

/// Follows every path of a trie.
class TrieCheck {
 public:
  TrieCheck(const Table& table, const std::string& where)
      : table_(table), where_(where), leaves_(table.units.size(), unknown) {}

  /// The maximum number of leaves on a path from the unit whose children start at `base`; `depth`: of this path.
  int8_t leaves_from(size_t base, size_t depth) {
    require_sound((base | 0xFF) < leaves_.size());  // the library reads the child of every possible byte
    require_sound(depth <= max_depth && leaves_[base] != on_path);
    if (leaves_[base] != unknown) return leaves_[base];
    leaves_[base] = on_path;
    int8_t most = 0;
    for (size_t label = 0; label < 256; ++label) {
      const size_t child = base ^ label;
      const uint32_t unit = table_.units[child];
      if ((unit & (1u << 31 | 0xFF)) == label) most = std::max(most, leaves_through(child, unit, depth));
    }
    leaves_[base] = most;
    return most;
  }

 private:
  static constexpr int8_t unknown = -1, on_path = -2;
  static constexpr size_t max_depth = 1024;  // bytes of a spelling
  static constexpr int8_t max_leaves = 32;   // spellings that start alike: the library's list of results

  int8_t leaves_through(size_t child, uint32_t unit, size_t depth) {
    const size_t base = child ^ offset_of(unit);
    const int8_t below = leaves_from(base, depth + 1);
    if ((unit >> 8 & 1) == 0) return below;
    const size_t begin = table_.units[base] & ~(1u << 31);
    require_sound(begin < table_.written.size() && (table_.written[begin] & 0xC0) != 0x80 && below < max_leaves);
    return static_cast<int8_t>(below + 1);
  }
  void require_sound(bool condition) const {
    require<DataError>(condition, where_, " is not a table of SentencePiece: its trie is damaged");
  }

  const Table& table_;
  const std::string& where_;
  std::vector<int8_t> leaves_;  // by the index where children start
};

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  auto [units, written] = read_table(bytes, where);
  units_ = std::move(units);
  written_ = std::move(written);
}

void require_readable_charsmap(std::string_view bytes, const std::string& where) {
  const auto table = read_table(bytes, where);
  TrieCheck(table, where).leaves_from(offset_of(table.units[0]), 0);
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  size_t node = offset_of(units_[0]);
  for (const char c : text) {
    const auto label = static_cast<uint8_t>(c);
    node ^= label;
    if (label == 0 || node >= units_.size()) return std::nullopt;
    const uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xFF)) != label) return std::nullopt;
    node ^= offset_of(unit);
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

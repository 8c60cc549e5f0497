#pragma once
// A cache of the ids of recent words: most text consists of the same few thousand words.
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace cloze {

/// A direct-mapped hash table: a new word replaces another with the same index. Belongs to one thread.
class WordCache {
 public:
  /// Appends the ids of `word` to `out`: from the table, or by `encode(word, out)`, which returns false for a word
  /// whose ids depend on the surrounding text. Returns false, with nothing appended, for such a word and for one too
  /// long for the table. `owner` identifies the tokenizer; a change of owner clears the table.
  template <class Encode>
  bool append(uint64_t owner, std::string_view word, std::vector<int32_t>& out, const Encode& encode) {
    if (word.size() > sizeof(Entry::word)) return false;
    if (owner != owner_ || entries_.empty()) {
      entries_.assign(num_entries, Entry{});
      owner_ = owner;
    }
    auto& entry = entries_[XXH3_64bits(word.data(), word.size()) % num_entries];
    if (entry.length != word.size() || std::memcmp(entry.word, word.data(), word.size()) != 0) {
      const size_t before = out.size();
      const bool independent = encode(word, out);
      const size_t count = out.size() - before;
      entry.length = static_cast<uint8_t>(word.size());
      std::memcpy(entry.word, word.data(), word.size());
      entry.count = independent && count <= std::size(entry.ids) ? static_cast<uint8_t>(count) : context_dependent;
      if (entry.count != context_dependent)
        std::copy(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), entry.ids);
      else
        out.resize(before);
      return entry.count != context_dependent;
    }
    if (entry.count == context_dependent) return false;
    out.insert(out.end(), entry.ids, entry.ids + entry.count);
    return true;
  }

 private:
  static constexpr size_t num_entries = 1 << 17;
  static constexpr uint8_t context_dependent = 255;
  struct Entry {  // two cache lines
    uint8_t length = 0, count = 0;
    char word[46] = {};
    int32_t ids[20] = {};
  };
  static_assert(sizeof(Entry) == 128);
  std::vector<Entry> entries_;
  uint64_t owner_ = 0;
};

}  // namespace cloze

#pragma once
// Ids of the words seen last: text is mostly the same few thousand words.
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace cloze {

/// A table of fixed size in which a new word takes the place of another with the same slot. Belongs to one thread.
class WordCache {
 public:
  /// Appends the ids of `word` to `out`: from the table where it is there, else by `encode(word, out)`, which returns
  /// false for a word whose ids depend on the text around it. Returns false, with nothing appended, for such a word and
  /// for one too long for the table. `owner` names the tokenizer; another one empties the table.
  template <class Encode>
  bool append(uint64_t owner, std::string_view word, std::vector<int32_t>& out, const Encode& encode) {
    if (word.size() > sizeof(Entry::word)) return false;
    if (owner != owner_ || entries_.empty()) {
      entries_.assign(slots, Entry{});
      owner_ = owner;
    }
    auto& entry = entries_[XXH3_64bits(word.data(), word.size()) % slots];
    if (entry.length != word.size() || std::memcmp(entry.word, word.data(), word.size()) != 0) {
      const size_t before = out.size();
      const bool alone = encode(word, out);
      const size_t count = out.size() - before;
      entry.length = static_cast<uint8_t>(word.size());
      std::memcpy(entry.word, word.data(), word.size());
      entry.count = alone && count <= std::size(entry.ids) ? static_cast<uint8_t>(count) : not_alone;
      if (entry.count != not_alone)
        std::copy(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), entry.ids);
      else
        out.resize(before);
      return entry.count != not_alone;
    }
    if (entry.count == not_alone) return false;
    out.insert(out.end(), entry.ids, entry.ids + entry.count);
    return true;
  }

 private:
  static constexpr size_t slots = 1 << 17;
  static constexpr uint8_t not_alone = 255;
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

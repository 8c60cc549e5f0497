#include "data/tokenizers/scripts.h"

#include <algorithm>
#include <array>

#include "data/tokenizers/characters.h"

namespace cloze {

namespace {

/// Code points from `first` to `last`.
struct CodeRange {
  int32_t first, last;
};

/// Ascending.
constexpr std::array without_spaces = {
    CodeRange{0x0E00, 0x0FFF},    // Thai, Lao, Tibetan
    CodeRange{0x1000, 0x109F},    // Burmese
    CodeRange{0x1780, 0x17FF},    // Khmer
    CodeRange{0x1950, 0x19FF},    // Tai Le, New Tai Lue, Khmer symbols
    CodeRange{0x1A20, 0x1AAF},    // Tai Tham
    CodeRange{0x1B00, 0x1B7F},    // Balinese
    CodeRange{0x2E80, 0x2FFF},    // radicals of ideographs
    CodeRange{0x3001, 0x312F},    // their punctuation, kana, bopomofo
    CodeRange{0x3190, 0x31FF},    // marks of kanbun, bopomofo, strokes, small kana
    CodeRange{0x3220, 0x325F},    // ideographs and numbers in circles
    CodeRange{0x3280, 0x4DBF},    // the same, squared kana, ideographs
    CodeRange{0x4E00, 0xA4CF},    // ideographs, Yi
    CodeRange{0xA980, 0xA9FF},    // Javanese, more Burmese
    CodeRange{0xAA60, 0xAADF},    // more Burmese, Tai Viet
    CodeRange{0xF900, 0xFAFF},    // ideographs for compatibility
    CodeRange{0xFE30, 0xFE4F},    // vertical punctuation
    CodeRange{0xFF01, 0xFF0F},    // wide punctuation
    CodeRange{0xFF1A, 0xFF20},    // the same
    CodeRange{0xFF3B, 0xFF40},    // the same
    CodeRange{0xFF5B, 0xFF9F},    // the same, narrow kana
    CodeRange{0x11700, 0x1174F},  // Ahom
    CodeRange{0x16FE0, 0x18DFF},  // Tangut, Khitan
    CodeRange{0x1AFF0, 0x1B2FF},  // more kana, Nushu
    CodeRange{0x20000, 0x3FFFF},  // ideographs
};

/// Vowels and repetition marks of Thai and Lao after a consonant, which Unicode has as letters. Ascending.
constexpr std::array following_letters = {0x0E2F, 0x0E30, 0x0E32, 0x0E33, 0x0E45, 0x0E46,
                                          0x0EB0, 0x0EB2, 0x0EB3, 0x0EC6, 0x30FC};

}  // namespace

bool is_written_without_spaces(int32_t c) {
  if (c < without_spaces.front().first) return false;
  const auto next = std::upper_bound(without_spaces.begin(), without_spaces.end(), c,
                                     [](int32_t code, const CodeRange& range) { return code < range.first; });
  return c <= std::prev(next)->last;
}

bool begins_unit_without_spaces(int32_t c) {
  return is_written_without_spaces(c) && !is_mark(c) &&
         !std::binary_search(following_letters.begin(), following_letters.end(), c);
}

}  // namespace cloze

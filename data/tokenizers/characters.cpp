#include "data/tokenizers/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

bool between(int32_t c, int32_t first, int32_t last) { return c >= first && c <= last; }

int combining_class(int32_t c) { return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class; }

/// The code points that compose with one before them: the last ones of decompositions, and vowels and finals of Hangul.
std::vector<bool> seconds_of_compositions() {
  constexpr int32_t all = 0x110000;
  std::vector<bool> seconds(all);
  for (int32_t c = 0xC0; c < all; ++c) {
    utf8proc_int32_t parts[32] = {c};
    const auto count = utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, nullptr);
    if (count > 1 && count <= 32) seconds[static_cast<size_t>(parts[count - 1])] = true;
  }
  return seconds;
}

/// The composition of two code points, or -1.
int32_t composition(int32_t first, int32_t second) {
  static const auto seconds = seconds_of_compositions();
  if (second < 0x300 || !seconds[static_cast<size_t>(second)]) return -1;
  utf8proc_int32_t pair[2] = {first, second};
  return utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE) == 1 ? pair[0] : -1;
}

}  // namespace

bool is_ascii(std::string_view text) {
  size_t at = 0;
  for (uint64_t eight = 0; at + 8 <= text.size(); at += 8) {
    std::memcpy(&eight, text.data() + at, 8);
    if ((eight & 0x8080808080808080) != 0) return false;
  }
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

bool is_white_space(int32_t c) {
  if (c < 128) return c == ' ' || between(c, '\t', '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || between(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_punctuation(int32_t c) {
  if (c < 128) return between(c, 33, 47) || between(c, 58, 64) || between(c, 91, 96) || between(c, 123, 126);
  return between(utf8proc_category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_closing_punctuation(int32_t c) {
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_PE || category == UTF8PROC_CATEGORY_PF;
}

bool is_number(int32_t c) {
  return c < 128 ? between(c, '0', '9') : between(utf8proc_category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_mark(int32_t c) {
  return c >= 0x300 && between(utf8proc_category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}
bool is_nonspacing_mark(int32_t c) { return c >= 0x300 && utf8proc_category(c) == UTF8PROC_CATEGORY_MN; }

bool is_control(int32_t c) {
  if (c < 128) return c < 32 ? c != '\t' && c != '\n' && c != '\r' : c == 127;
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_word_character(int32_t c) {
  if (c < 128) return between(c, 'a', 'z') || between(c, 'A', 'Z') || between(c, '0', '9') || c == '_';
  const auto category = utf8proc_category(c);
  if (between(category, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC) return true;
  const bool circled = between(c, 0x24B6, 0x24E9) || between(c, 0x1F130, 0x1F149) || between(c, 0x1F150, 0x1F169) ||
                       between(c, 0x1F170, 0x1F189);
  return circled || c == 0x200C || c == 0x200D;
}

bool is_ideograph(int32_t c) {
  return between(c, 0x4E00, 0x9FFF) || between(c, 0x3400, 0x4DBF) || between(c, 0x20000, 0x2A6DF) ||
         between(c, 0x2A700, 0x2B73F) || between(c, 0x2B740, 0x2B81F) || between(c, 0x2B920, 0x2CEAF) ||
         between(c, 0xF900, 0xFAFF) || between(c, 0x2F800, 0x2FA1F);
}

int32_t lower(int32_t c, int32_t& second) {
  second = c == 0x130 ? 0x307 : 0;
  if (c == 0x130) return 'i';
  if (c < 128) return between(c, 'A', 'Z') ? c + 32 : c;
  return utf8proc_tolower(c);
}

namespace {

using Emit = std::function<void(const Rewritten&)>;

/// Passes code points on, the marks after a character in the order of their classes.
class MarkSorter {
 public:
  explicit MarkSorter(const Emit& emit) : emit_(emit) {}
  void add(const Rewritten& next) {
    if (combining_class(next.code) != 0) return marks_.push_back(next);
    flush();
    emit_(next);
  }
  void flush() {
    std::stable_sort(marks_.begin(), marks_.end(), [](const Rewritten& a, const Rewritten& b) {
      return combining_class(a.code) < combining_class(b.code);
    });
    for (const auto& mark : marks_) emit_(mark);
    marks_.clear();
  }

 private:
  const Emit& emit_;
  std::vector<Rewritten> marks_;  // after the last character of class 0
};

/// Joins code points to the character before them, and passes on those to which no later one can be joined.
class Composer {
 public:
  explicit Composer(const Emit& emit) : emit_(emit) {}
  void add(const Rewritten& next) {
    const int its_class = combining_class(next.code);
    const bool may_join = has_base_ && (last_class_ < 0 || (last_class_ < its_class && its_class != 0));
    const int32_t joined = may_join ? composition(open_[0].code, next.code) : -1;
    if (joined >= 0) {
      open_[0] = {joined, open_[0].change + next.change - 1};
      return;
    }
    if (its_class == 0) {
      flush();
      has_base_ = true;
      last_class_ = -1;
    } else if (has_base_) {
      last_class_ = its_class;
    }
    open_.push_back(next);
  }
  void flush() {
    for (const auto& one : open_) emit_(one);
    open_.clear();
  }

 private:
  const Emit& emit_;
  std::vector<Rewritten> open_;  // the character with which the following ones may compose, and the marks after it
  bool has_base_ = false;
  int last_class_ = -1;  // of the marks in between, -1 for none
};

}  // namespace

void each_normalized(std::string_view text, bool compatible, bool compose, const Emit& emit) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  Composer composer(emit);
  const Emit to_composer = [&](const Rewritten& one) { composer.add(one); };
  MarkSorter sorter(compose ? to_composer : emit);
  for (size_t at = 0; at < text.size();) {
    const int32_t c = next_code_point(text, at);
    utf8proc_int32_t parts[32] = {c};
    const auto count =
        c < 128 ? 1 : std::clamp<utf8proc_ssize_t>(utf8proc_decompose_char(c, parts, 32, options, nullptr), 0, 32);
    for (utf8proc_ssize_t i = 0; i < count; ++i) sorter.add({parts[i], i == 0 ? 0 : 1});
  }
  sorter.flush();
  composer.flush();
}

}  // namespace cloze

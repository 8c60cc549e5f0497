#pragma once
// The patterns of tokenizer rules: an Oniguruma regular expression, or a literal text.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/fields.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

/// A span of a text, and whether the pattern matched it.
struct PatternSpan {
  size_t begin = 0, end = 0;
  bool matched = false;
};

/// The CPU time that all expressions of a tokenizer have together. It grows with the bytes of all texts, so that
/// neither one long text nor many short ones nor many expressions take more. May be used from many threads.
class SearchTime {
 public:
  /// Counts a text that the expressions are going to read.
  void add_text(size_t bytes) { read_ += static_cast<int64_t>(bytes); }
  void spend(int64_t nanoseconds) { spent_ += nanoseconds; }
  int64_t allowed() const;  ///< [ns]
  int64_t left() const { return allowed() - spent_; }
  int64_t bytes_read() const { return read_; }

 private:
  std::atomic<int64_t> read_{0}, spent_{0};
};

/// A compiled pattern; copies share it. May be used from many threads.
class Pattern {
 public:
  /// Reads {"String": ...} or {"Regex": ...}. Throws DataError for another form, for an expression that Oniguruma
  /// rejects, and for one with back-references, calls of groups or conditions.
  Pattern(const Field& field, std::shared_ptr<SearchTime> time);
  /// Splits the whole text into spans that match and those between. Throws DataError for a text on which the expression
  /// exceeds the limit of its steps, or all expressions of the tokenizer their time. A single search that goes on
  /// beyond it ends the process with that sentence: Oniguruma gives none up for its time.
  void split(std::string_view text, std::vector<PatternSpan>& out) const;

  struct Compiled;

 private:
  std::shared_ptr<const Compiled> compiled_;
};

/// Stretches of single characters: those that `is` holds for are matched.
template <class Is>
void split_characters(std::string_view text, const Is& is, std::vector<PatternSpan>& out) {
  size_t last = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (!is(next_code_point(text, at))) continue;
    if (last < begin) out.push_back({last, begin, false});
    out.push_back({begin, at, true});
    last = at;
  }
  if (last < text.size()) out.push_back({last, text.size(), false});
}

}  // namespace cloze

#pragma once
// A text that is rewritten step by step, with the source offsets of each byte.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

/// Bytes of the source.
struct SourceRange {
  uint32_t begin = 0, end = 0;
};

/// A part of a text: bytes [begin, end); `source`: the start of its part of the source; `id`: of the added token that
/// it is, -1 for text.
struct Part {
  uint32_t begin = 0, end = 0, source = 0;
  int32_t id = -1;
};

/// The bytes that rules may make of a text: none of a language makes more than 33 of one, and rules that double a text
/// one after the other would fill the memory.
inline size_t most_bytes(size_t source_bytes) {
  return std::min<size_t>(UINT32_MAX, 64 * source_bytes + (size_t{1} << 16));
}

/// A text split into parts. Without `tracked`, `origins` stays empty.
struct NormalizedText {
  std::string text;
  std::vector<SourceRange> origins;  // of each byte
  std::vector<Part> parts;
  bool tracked = false;
  size_t source_bytes = 0;   // of the text before it was rewritten
  size_t written_bytes = 0;  // by all rules so far

  std::string_view view(const Part& part) const {
    return std::string_view(text).substr(part.begin, part.end - part.begin);
  }
  /// The bytes of the source from which bytes of a part came.
  SourceRange origin(const Part& part, size_t begin, size_t end) const {
    if (!tracked || begin >= end || part.begin + end > origins.size()) return {part.source, part.source};
    return {origins[part.begin + begin].begin, origins[part.begin + end - 1].end};
  }
  /// A sub-part.
  Part slice(const Part& part, size_t begin, size_t end) const {
    const auto first = static_cast<uint32_t>(part.begin + begin);
    return {first, static_cast<uint32_t>(part.begin + end), tracked ? origin(part, begin, end).begin : part.source, -1};
  }
};

/// A text as valid UTF-8 in one part, each character with its own bytes as origin.
inline NormalizedText whole_text(std::string_view text, bool tracked) {
  require<DataError>(text.size() < UINT32_MAX, "a text of ", text.size(),
                     " bytes is too long for a tokenizer; at most 4 GB are supported");
  NormalizedText normalized;
  normalized.tracked = tracked;
  normalized.source_bytes = text.size();
  const bool valid = find_invalid_utf8(text) == std::string_view::npos;
  if (valid) normalized.text = text;
  if (!valid || tracked) {
    std::string repaired;
    for (size_t at = 0; at < text.size();) {
      const auto begin = static_cast<uint32_t>(at);
      const int32_t c = next_code_point(text, at);
      append_code_point(repaired, c < 0 ? 0xFFFD : c);
      if (tracked) normalized.origins.resize(repaired.size(), SourceRange{begin, static_cast<uint32_t>(at)});
    }
    if (!valid) normalized.text = std::move(repaired);
  }
  if (!normalized.text.empty()) normalized.parts.push_back({0, static_cast<uint32_t>(normalized.text.size()), 0, -1});
  return normalized;
}

/// Rewrites the parts of a text. Throws DataError for a text that grows beyond most_bytes, and where all rules together
/// write more than twice as much.
/// Source of the rules for origins: huggingface/tokenizers, tokenizer/normalizer.rs, `transform_range`.
class Rewriter {
 public:
  explicit Rewriter(NormalizedText& text) : text_(text), most_bytes_(most_bytes(text.source_bytes)) {
    result_.tracked = text.tracked;
    result_.source_bytes = text.source_bytes;
    result_.written_bytes = text.written_bytes;
    result_.text.reserve(text.text.size() + text.text.size() / 4);
    if (text.tracked) result_.origins.reserve(result_.text.capacity());
    result_.parts.reserve(text.parts.size());
  }

  /// Calls `change(view)` for each part that is text, which uses the functions below; other parts are kept.
  template <class F>
  void each_part(const F& change) {
    for (const auto& part : text_.parts) {
      part_ = part;
      at_ = part.begin;
      const auto begin = static_cast<uint32_t>(result_.text.size());
      if (part.id < 0)
        change(text_.view(part));
      else
        keep(part.end - part.begin);
      check_growth();
      result_.parts.push_back({begin, static_cast<uint32_t>(result_.text.size()), part.source, part.id});
    }
    result_.written_bytes += result_.text.size();
    text_ = std::move(result_);
  }

  /// The current part of the old text.
  const Part& part() const { return part_; }
  /// Copies the next bytes.
  void keep(size_t bytes) {
    bytes = std::min<size_t>(bytes, part_.end - at_);
    result_.text.append(text_.text, at_, bytes);
    if (text_.tracked) {
      const auto from = text_.origins.begin() + static_cast<std::ptrdiff_t>(at_);
      result_.origins.insert(result_.origins.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
    }
    at_ += bytes;
  }
  /// Replaces the next character.
  void replace(int32_t code) {
    write(code, origin_at(at_));
    drop();
  }
  /// Inserts a character, with the origin of the previous byte.
  void insert(int32_t code) {
    const bool first = at_ <= part_.begin;
    write(code, first ? SourceRange{part_.source, part_.source} : origin_at(at_ - 1));
  }
  void insert(std::string_view characters) {
    for (size_t at = 0; at < characters.size();) insert(next_code_point(characters, at));
  }
  /// Inserts characters before the first one of the part, with its origin.
  void prepend(std::string_view characters) {
    if (at_ >= part_.end) return;
    for (size_t at = 0; at < characters.size();) write(next_code_point(characters, at), origin_at(at_));
  }
  /// Skips the next characters.
  void drop(size_t characters = 1) {
    for (; characters > 0 && at_ < part_.end; --characters) next_code_point(text_.text, at_);
  }
  void drop_bytes(size_t bytes) { at_ = std::min<size_t>(at_ + bytes, part_.end); }
  void apply(const Rewritten& change) {
    if (change.change > 0) return insert(change.code);
    replace(change.code);
    drop(static_cast<size_t>(-change.change));
  }

 private:
  SourceRange origin_at(size_t at) const {
    if (!text_.tracked || text_.origins.empty()) return {};
    return text_.origins[std::min(at, text_.origins.size() - 1)];
  }
  void check_growth() const {
    require<DataError>(result_.text.size() <= most_bytes_, "the rules of the tokenizer make more than ", most_bytes_,
                       " bytes of a text of ", text_.source_bytes, "; correct its normalizer");
    require<DataError>(text_.written_bytes + result_.text.size() <= 2 * most_bytes_,
                       "the rules of the tokenizer write more than ", 2 * most_bytes_, " bytes for a text of ",
                       text_.source_bytes, ", one after the other; correct its normalizer");
  }
  void write(int32_t code, SourceRange origin) {
    if (code < 0) return;
    if (code < 128)
      result_.text += static_cast<char>(code);
    else
      append_code_point(result_.text, code);
    check_growth();
    if (text_.tracked) result_.origins.resize(result_.text.size(), origin);
  }

  NormalizedText& text_;
  NormalizedText result_;
  size_t most_bytes_;
  Part part_;
  size_t at_ = 0;
};

}  // namespace cloze

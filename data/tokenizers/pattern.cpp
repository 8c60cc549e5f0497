#include "data/tokenizers/pattern.h"

#include <oniguruma.h>

#include <mutex>

namespace cloze {

namespace {

const OnigUChar* bytes(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

std::string message(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = onig_error_code_to_str(text, code, info);
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(std::max(length, 0))};
}

/// The offsets of one match; each thread has its own.
struct Region {
  Region() : of(onig_region_new()) {}
  ~Region() { onig_region_free(of, 1); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  OnigRegion* of;
};

/// The start of the first match from `at` on, or an error code of Oniguruma.
///
/// steps   try the expression at each character in turn
int search(regex_t* regex, bool steps, std::string_view text, size_t at, OnigRegion* region) {
  const auto begin = bytes(text), end = begin + text.size();
  if (!steps) return onig_search(regex, begin, end, begin + at, end, region, ONIG_OPTION_NONE);
  for (;; next_code_point(text, at)) {
    const int length = onig_match(regex, begin, end, begin + at, region, ONIG_OPTION_NONE);
    if (length >= 0) return static_cast<int>(at);
    if (length != ONIG_MISMATCH || at >= text.size()) return length;
  }
}

}  // namespace

struct Pattern::Compiled {
  std::string source, literal;
  regex_t* regex = nullptr;  // null for a literal
  bool steps = false;        // try it at each character in turn
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (regex) onig_free(regex);
  }
};

Pattern::Pattern(const Field& field) {
  const auto made = std::make_shared<Compiled>();
  const bool is_literal = !field["String"].is_null();
  const auto source = field[is_literal ? "String" : "Regex"];
  if (source.is_null()) field.refuse("has neither a String nor a Regex");
  made->source = source.text();
  if (is_literal && !made->source.empty()) {
    made->literal = made->source;
  } else {
    static std::mutex compiling;
    const std::lock_guard lock(compiling);
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    OnigErrorInfo info;
    const auto text = bytes(made->source);
    const int code = onig_new(&made->regex, text, text + made->source.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                              ONIG_SYNTAX_DEFAULT, &info);
    if (code != ONIG_NORMAL)
      source.refuse(
          words("is '", made->source, "', which is not a valid Oniguruma expression: ", message(code, &info)));
  }
  // Oniguruma 6.9.8 searches an expression anchored at the end only there, where its lookbehind sees no text.
  const auto has = [&](const char* part) { return made->source.find(part) != std::string::npos; };
  made->steps = !is_literal && (has("(?<=") || has("(?<!")) && (has("\\z") || has("\\Z"));
  compiled_ = made;
}

void Pattern::split(std::string_view text, std::vector<PatternSpan>& out) const {
  size_t last = 0;
  const auto add = [&](size_t begin, size_t end) {
    if (last < begin) out.push_back({last, begin, false});
    out.push_back({begin, end, true});
    last = end;
  };
  const auto& c = *compiled_;
  if (!c.regex) {
    for (size_t at = 0; (at = text.find(c.literal, at)) != std::string_view::npos; at = last)
      add(at, at + c.literal.size());
  } else {
    thread_local Region region;
    bool matched_before = false;
    for (size_t at = 0; !text.empty() && at <= text.size();) {
      const int found = search(c.regex, c.steps, text, at, region.of);
      if (found == ONIG_MISMATCH) break;
      require<DataError>(found >= 0, "the tokenizer's expression '", c.source, "' gives up on a text of ", text.size(),
                         " bytes: ", message(found, nullptr));
      const auto first = static_cast<size_t>(region.of->beg[0]), after = static_cast<size_t>(region.of->end[0]);
      if (first == after && matched_before && after == last) {  // an empty match at the end of the previous one
        if (at >= text.size()) break;
        next_code_point(text, at);
        continue;
      }
      add(first, after);
      at = after;
      matched_before = true;
    }
  }
  if (last < text.size()) out.push_back({last, text.size(), false});
}

}  // namespace cloze

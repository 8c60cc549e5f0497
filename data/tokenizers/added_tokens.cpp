#include "data/tokenizers/added_tokens.h"

namespace cloze {

namespace {

/// The character that ends at `at`.
int32_t character_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
  return next_code_point(text, begin);
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word_character(character_before(text, begin))) return false;
  size_t at = end;
  return end == text.size() || !is_word_character(next_code_point(text, at));
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const Field& field) {
  std::vector<AddedToken> tokens;
  for (const auto& entry : field.list()) {
    AddedToken token;
    token.content = entry["content"].text();
    if (entry["id"].is_null()) entry.refuse("has no id");
    token.id = static_cast<int32_t>(entry["id"].count(0, INT32_MAX));
    token.special = entry["special"].flag(false);
    token.single_word = entry["single_word"].flag(false);
    token.lstrip = entry["lstrip"].flag(false);
    token.rstrip = entry["rstrip"].flag(false);
    token.normalized = entry["normalized"].flag(!token.special);
    if (!token.content.empty()) tokens.push_back(std::move(token));
  }
  return tokens;
}

void TokenFinder::add(const AddedToken& token, std::string_view spelling) {
  if (spelling.empty()) return;
  trie_.add(spelling, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(token);
  takes_any_ = takes_any_ || !token.special;
}

void TokenFinder::split(NormalizedText& text) const {
  if (empty()) return;
  std::vector<Part> parts;
  for (const auto& part : text.parts) {
    if (part.id >= 0) {
      parts.push_back(part);
      continue;
    }
    const auto view = text.view(part);
    size_t last = 0;  // where the token before ends
    for (size_t at = 0; at < view.size();) {
      size_t length = 0;
      int32_t which = -1;
      trie_.each_prefix(view.substr(at), [&](size_t bytes, int32_t found) {
        length = bytes;
        which = found;
      });
      if (which < 0) {
        ++at;
        continue;
      }
      const auto& token = tokens_[static_cast<size_t>(which)];
      size_t begin = at, end = at + length;
      at = end;
      if (token.special || (token.single_word && !stands_alone(view, begin, end))) continue;
      while (token.lstrip && begin > last && is_white_space(character_before(view, begin))) do
          --begin;
        while ((view[begin] & 0xC0) == 0x80);
      for (size_t next = end; token.rstrip && next < view.size() && is_white_space(next_code_point(view, next));)
        end = next;
      begin = std::max(begin, last);
      if (last < begin) parts.push_back(text.slice(part, last, begin));
      parts.push_back(text.slice(part, begin, end));
      parts.back().id = token.id;
      last = end;
    }
    if (last < view.size()) parts.push_back(text.slice(part, last, view.size()));
  }
  text.parts = std::move(parts);
}

}  // namespace cloze

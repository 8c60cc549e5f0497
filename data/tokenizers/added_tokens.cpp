#include "data/tokenizers/added_tokens.h"

namespace cloze {

namespace {

/// The character that ends at `at`.
int32_t character_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
  return next_code_point(text, begin);
}

/// The start of the white space that ends at `begin`, not before `first`.
size_t space_before(std::string_view text, size_t begin, size_t first) {
  while (begin > first && is_white_space(character_before(text, begin))) do
      --begin;
    while ((text[begin] & 0xC0) == 0x80);
  return begin;
}

/// The end of the white space that starts at `end`.
size_t space_after(std::string_view text, size_t end) {
  for (size_t next = end; next < text.size() && is_white_space(next_code_point(text, next));) end = next;
  return end;
}

bool is_single_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word_character(character_before(text, begin))) return false;
  size_t at = end;
  return end == text.size() || !is_word_character(next_code_point(text, at));
}

}  // namespace

AddedToken read_added_token(const Field& entry) {
  AddedToken token;
  token.content = entry["content"].text();
  token.special = entry["special"].flag(false);
  token.single_word = entry["single_word"].flag(false);
  token.lstrip = entry["lstrip"].flag(false);
  token.rstrip = entry["rstrip"].flag(false);
  token.normalized = entry["normalized"].flag(!token.special);
  return token;
}

std::vector<AddedToken> read_added_tokens(const Field& field) {
  std::vector<AddedToken> tokens;
  field.require_pieces();
  for (const auto& entry : field.list()) {
    auto token = read_added_token(entry);
    if (entry["id"].is_null()) entry.refuse("has no id");
    token.id = static_cast<int32_t>(entry["id"].count(0, INT32_MAX));
    if (!token.content.empty()) tokens.push_back(std::move(token));
  }
  return tokens;
}

void TokenFinder::add(const AddedToken& token, std::string_view spelling) {
  if (spelling.empty()) return;
  trie_.add(spelling, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(token);
  finds_any_ = finds_any_ || !token.special;
}

void TokenFinder::split(NormalizedText& text) const {
  if (empty()) return;
  std::vector<Part> parts;
  for (const auto& part : text.parts) {
    if (part.id >= 0)
      parts.push_back(part);
    else
      split(text, part, parts);
  }
  text.parts = std::move(parts);
}

void TokenFinder::split(const NormalizedText& text, const Part& part, std::vector<Part>& parts) const {
  const auto view = text.view(part);
  size_t last = 0;         // end of the previous token
  size_t after_space = 0;  // end of the white space examined last
  for (size_t at = 0; at < view.size();) {
    size_t length = 0;
    int32_t which = -1;
    trie_.each_prefix(view.substr(at), [&](size_t bytes, int32_t token) {
      length = bytes;
      which = token;
    });
    if (which < 0) {
      ++at;
      continue;
    }
    const auto& token = tokens_[static_cast<size_t>(which)];
    size_t begin = at, end = at + length;
    at = end;
    if (token.special || (token.single_word && !is_single_word(view, begin, end))) continue;
    if (token.lstrip) begin = std::max(space_before(view, begin, last), last);
    if (token.rstrip && end >= after_space) after_space = space_after(view, end);
    if (token.rstrip) end = std::max(end, after_space);
    if (begin > end) continue;
    if (last < begin) parts.push_back(text.slice(part, last, begin));
    if (begin < end) {
      parts.push_back(text.slice(part, begin, end));
      parts.back().id = token.id;
    }
    last = end;
  }
  if (last < view.size()) parts.push_back(text.slice(part, last, view.size()));
}

std::string AddedTokens::add(const AddedToken& token, const std::vector<Normalizer>& steps) {
  if (!token.normalized) {
    in_source_.add(token, token.content);
    return token.content;
  }
  NormalizedText spelled;
  spelled.text = token.content;
  spelled.source_bytes = token.content.size();
  spelled.parts = {{0, static_cast<uint32_t>(token.content.size()), 0, -1}};
  normalize(steps, spelled, false);
  in_normalized_.add(token, spelled.text);
  return spelled.text;
}

void AddedTokens::split(NormalizedText& text, const std::vector<Normalizer>& steps, bool continues) const {
  in_source_.split(text);
  normalize(steps, text, continues);
  // The source of a part that normalisation shortened starts at its first character.
  std::erase_if(text.parts, [](const Part& part) { return part.begin == part.end; });
  for (auto& part : text.parts)
    if (part.id < 0) part = text.slice(part, 0, part.end - part.begin);
  in_normalized_.split(text);
}

}  // namespace cloze

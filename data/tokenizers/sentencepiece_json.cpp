#include "data/tokenizers/sentencepiece.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/json.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

using Json = nlohmann::json;

std::string base64(std::string_view bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// The merges of a BPE model, reconstructed from its scores. Only normal pieces are merged.
Json merges_of(const std::vector<std::string>& pieces, const std::vector<double>& scores,
               const std::vector<uint64_t>& types) {
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id)
    if (types[id] == 1) ids.emplace(pieces[id], id);
  struct Merge {
    double score;
    size_t left, right;
  };
  std::vector<Merge> merges;
  for (const auto& [piece, id] : ids) {
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if ((piece[cut] & 0xC0) == 0x80) continue;
      const auto left = ids.find(piece.substr(0, cut)), right = ids.find(piece.substr(cut));
      if (left != ids.end() && right != ids.end()) merges.push_back({scores[id], left->second, right->second});
    }
  }
  std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return std::tuple(-a.score, a.left, a.right) < std::tuple(-b.score, b.left, b.right);
  });
  auto list = Json::array();
  for (const auto& merge : merges) list.push_back({pieces[merge.left], pieces[merge.right]});
  return list;
}

Json replace_regex(const std::string& pattern, std::string_view by) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", by}};
}

Json replace_text(std::string_view text, std::string_view by) {
  return {{"type", "Replace"}, {"pattern", {{"String", text}}}, {"content", by}};
}

/// A regular expression of every combining mark, as ranges of code points.
std::string combining_marks() {
  std::string list = "[";
  const auto combines = [](int32_t c) { return c < 0x110000 && utf8proc_get_property(c)->combining_class != 0; };
  for (int32_t c = 0; c < 0x110000; ++c) {
    if (!combines(c)) continue;
    append_code_point(list, c);
    int32_t last = c;
    while (combines(last + 1)) ++last;
    if (last > c) {
      list += '-';
      append_code_point(list, last);
    }
    c = last;
  }
  return list + "]";
}

/// A regular expression that matches exactly `text`.
std::string escaped(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("\\.^$|()[]{}*+?-#/&~").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

Json normalizer_json(const SentencePieceFacts& about, const SentencePieceRules& rules) {
  Json steps = Json::array();
  if (rules.join_spaces)
    steps.push_back(replace_regex(
        R"([\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+)", " "));
  if (rules.split_digit_commas) {
    steps.push_back(replace_text("``", "\""));
    steps.push_back(replace_text("''", "\""));
  }
  if (rules.strip_accents) {
    steps.push_back({{"type", "NFKD"}});
    steps.push_back(replace_regex(combining_marks(), ""));
  }
  if (rules.lowercase) {
    steps.push_back(replace_regex("(?<=\\p{L})\u03A3(?!\\p{L})", "\u03C2"));
    steps.push_back({{"type", "Lowercase"}});
  }
  if (!about.charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(about.charsmap)}});
  if (about.joins_spaces) {
    steps.push_back(replace_regex("\\A +|[ \u2581]+\\z", ""));
    steps.push_back(replace_regex(" {2,}", " "));
  }
  // The space at an end: a separate step, since `Metaspace` inserts none before a text that starts with one.
  if (about.dummy_prefix && about.space_after_words) steps.push_back(replace_regex("(?m)(?<=.)\\z", " "));
  if (about.dummy_prefix && !about.space_after_words) steps.push_back({{"type", "Prepend"}, {"prepend", " "}});
  steps.push_back(replace_text(" ", space_mark));
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

Json pre_tokenizer_json(const SentencePieceParts& parts) {
  Json steps = Json::array();
  std::vector<std::string> symbols;
  for (size_t id = 0; id < parts.pieces.size(); ++id)
    if (parts.about.types[id] == 4) symbols.push_back(parts.pieces[id]);
  std::sort(symbols.begin(), symbols.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });  // the longest match wins
  std::string pattern;
  for (const auto& symbol : symbols) pattern += (pattern.empty() ? "" : "|") + escaped(symbol);
  if (!symbols.empty())
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  if (parts.by_words)
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"String", space_mark}}}, {"behavior", "MergedWithNext"}, {"invert", false}});
  if (steps.empty()) return nullptr;
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

Json decoder_json(const SentencePieceFacts& about) {
  Json steps = Json::array({replace_text(space_mark, " ")});
  if (about.byte_fallback) steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  const bool leads = about.dummy_prefix && !about.space_after_words;  // a space after words is kept, as in the library
  if (leads) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

Json bpe_json(const SentencePieceParts& parts) {
  Json vocabulary = Json::object();
  for (size_t id = 0; id < parts.pieces.size(); ++id) vocabulary[parts.pieces[id]] = id;
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", parts.pieces[static_cast<size_t>(parts.unknown)]},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", parts.about.byte_fallback},
          {"ignore_merges", parts.about.user_defined},
          {"vocab", vocabulary},
          {"merges", merges_of(parts.pieces, parts.scores, parts.about.types)}};
}

Json unigram_json(const SentencePieceParts& parts) {
  const auto& about = parts.about;
  // Pieces that must not result from text, and `9,` if the rules split it, score worse than any alternative.
  constexpr double penalty = 100;
  Json vocabulary = Json::array();
  for (size_t id = 0; id < parts.pieces.size(); ++id) {
    const bool avoided = about.types[id] == 5 || about.types[id] == 6 ||
                         (parts.rules.split_digit_commas && ends_with_digit_comma(parts.pieces[id]));
    const double score = about.types[id] == 4 ? 0 : parts.scores[id];
    vocabulary.push_back({parts.pieces[id], avoided ? score - penalty : score});
  }
  return {
      {"type", "Unigram"}, {"unk_id", parts.unknown}, {"vocab", vocabulary}, {"byte_fallback", about.byte_fallback}};
}

}  // namespace

std::string sentencepiece_json(const SentencePieceParts& parts) {
  return json_text(Json{{"normalizer", normalizer_json(parts.about, parts.rules)},
                        {"pre_tokenizer", pre_tokenizer_json(parts)},
                        {"decoder", decoder_json(parts.about)},
                        {"model", parts.about.bpe ? bpe_json(parts) : unigram_json(parts)}});
}

}  // namespace cloze

// WordPiece as in BERT: basic tokenization, then greedy longest-match-first.
// Source: google-research/bert, tokenization.py (BasicTokenizer, WordpieceTokenizer).
#include "data/tokenizers/wordpiece.h"

#include <utf8proc.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"
#include "core/spelling.h"
#include "data/tokenizers/characters.h"
#include "data/tokenizers/tokenizer_model.h"
#include "data/tokenizers/utf8.h"
#include "data/tokenizers/word_cache.h"

namespace cloze {

namespace {

enum class Kind : uint8_t { letter, space, control, punctuation, cjk };

bool is_cjk(int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

Kind kind_of(int32_t c) {
  if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return Kind::space;
  if (c == 0 || c == 0xFFFD) return Kind::control;
  if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126))
    return Kind::punctuation;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_ZS:
      return Kind::space;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
      return Kind::control;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return Kind::punctuation;
    default:
      return is_cjk(c) ? Kind::cjk : Kind::letter;
  }
}

/// The same, as classified by Hugging Face's tokenizers.
Kind kind_in_tokenizers(int32_t c) {
  if (c == 0 || c == 0xFFFD || is_control(c)) return Kind::control;
  if (is_white_space(c)) return Kind::space;
  if (is_punctuation(c)) return Kind::punctuation;
  return is_ideograph(c) ? Kind::cjk : Kind::letter;
}

const std::array<Kind, 128>& ascii_kinds() {
  static const auto table = [] {
    std::array<Kind, 128> kinds{};
    for (int32_t c = 0; c < 128; ++c) kinds[static_cast<size_t>(c)] = kind_of(c);
    return kinds;
  }();
  return table;
}

bool is_cased_letter(int32_t c) { return c >= 0 && (utf8proc_tolower(c) != c || utf8proc_toupper(c) != c); }

/// Appends a non-ASCII code point, changed by the rules: decomposed, without nonspacing marks, in lower case.
void append_folded(std::string& out, int32_t c, const WordPieceRules& rules) {
  const auto append = [&](int32_t code) {
    int32_t second = 0;
    append_code_point(out, rules.lowercase ? lower(code, second) : code);
    if (rules.lowercase && second != 0) append_code_point(out, second);
  };
  if (!rules.strip_accents) return append(c);
  utf8proc_int32_t parts[32];
  const auto n = utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, nullptr);
  for (utf8proc_ssize_t i = 0; i < n && i < 32; ++i)
    if (!is_nonspacing_mark(parts[i])) append(parts[i]);
}

/// The words of a text, without the spaces before them.
template <class F>
void each_word(std::string_view spaced, const F& f) {
  for (size_t begin = 1; begin < spaced.size();) {
    const size_t end = std::min(spaced.find(' ', begin), spaced.size());
    if (end > begin) f(spaced.substr(begin, end - begin));
    begin = end + 1;
  }
}

struct WordPiece final : TokenizerModel {
  WordPiece(std::string vocabulary, const std::string& name, const WordPieceRules& all_rules)
      : file(std::move(vocabulary)), rules(all_rules) {
    lowercase = rules.lowercase;
    for (size_t begin = 0; begin < file.size();) {
      const size_t end = std::min(file.find('\n', begin), file.size());
      std::string piece = file.substr(begin, end - begin);
      if (!piece.empty() && piece.back() == '\r') piece.pop_back();
      pieces.push_back(std::move(piece));
      begin = end + 1;
    }
    require<DataError>(!pieces.empty(), name, ": the vocabulary is empty");
    require<DataError>(pieces.size() < (1u << 24), name,
                       ": the vocabulary has more than 16 million lines; it is not a vocabulary");
    for (size_t id = 0; id < pieces.size(); ++id) {
      std::string_view piece = pieces[id];
      const size_t bad = find_invalid_utf8(piece);
      require<DataError>(bad == std::string_view::npos, name, ":", id + 1, ": byte ", bad + 1,
                         " of the line is not UTF-8; convert the vocabulary (iconv -t utf-8), or get it again");
      const bool continues = !starts_word(static_cast<int64_t>(id));
      if (continues) piece.remove_prefix(2);
      const bool fresh = (continues ? continuing : starting).emplace(piece, static_cast<int32_t>(id)).second;
      require<DataError>(fresh || piece.empty(), name, ":", id + 1, ": the token '", shortened(pieces[id]),
                         "' is a duplicate; every line of a vocabulary must differ");
      longest = std::max(longest, piece.size());
    }
    const auto found = starting.find("[UNK]");
    require<DataError>(found != starting.end(), name,
                       ": the vocabulary has no token [UNK]; a WordPiece vocabulary needs one");
    unknown = found->second;
    static std::atomic<uint64_t> made{0};
    serial = (uint64_t{1} << 62) | ++made;
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    thread_local WordCache cache;
    each_word(basic_tokenize(text, rules), [&](std::string_view word) {
      if (!cache.append(serial, word, out,
                        [&](std::string_view w, std::vector<int32_t>& o) { return encode_word(w, o), true; }))
        encode_word(word, out);
    });
  }

  std::vector<TokenSpan> encode_with_offsets(std::string_view text) const override {
    std::vector<uint32_t> offsets;
    const std::string spaced = basic_tokenize(text, rules, &offsets);
    std::vector<TokenSpan> tokens;
    int64_t number = 0;
    each_word(spaced, [&](std::string_view word) {
      std::vector<int32_t> ids;
      encode_word(word, ids);
      auto at = static_cast<size_t>(word.data() - spaced.data());
      const auto past = [&](size_t end) {  // the offset in `text` after byte end - 1 of `spaced`
        size_t source = offsets[end - 1];
        next_code_point(text, source);
        return source;
      };
      for (const auto id : ids) {
        const auto& piece = pieces[static_cast<size_t>(id)];
        const size_t n = ids.size() == 1 ? word.size() : piece.size() - (starts_word(id) ? 0 : 2);
        tokens.push_back({id, offsets[at], past(at + n), number});
        at += n;
      }
      ++number;
    });
    return tokens;
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    for (const auto id : ids) {
      const auto& piece = pieces[static_cast<size_t>(id)];
      if (starts_word(id))
        text += (text.empty() ? "" : " ") + piece;
      else
        text += piece.substr(2);
    }
    return text;
  }
  std::string kind() const override { return "wordpiece"; }
  std::map<std::string, std::string> files() const override { return {{"vocab.txt", file}}; }
  bool starts_word(int64_t id) const override {
    const auto& piece = pieces[static_cast<size_t>(id)];
    return piece.size() <= 2 || piece.compare(0, 2, "##") != 0;
  }

  std::string facts() const override {
    return json_text(nlohmann::json{{"strip_accents", rules.strip_accents},
                                    {"tokenize_chinese_chars", rules.split_ideographs},
                                    {"max_input_chars_per_word", rules.max_word_length},
                                    {"as_tokenizers", rules.as_tokenizers}});
  }

  std::string huggingface_json() const override {
    using SortedJson = nlohmann::json;  // ordered_json has linear lookup
    SortedJson vocabulary = SortedJson::object();
    for (size_t id = 0; id < pieces.size(); ++id) vocabulary[pieces[id]] = id;
    return json_text(SortedJson{{"normalizer",
                                 {{"type", "BertNormalizer"},
                                  {"clean_text", true},
                                  {"handle_chinese_chars", rules.split_ideographs},
                                  {"strip_accents", rules.strip_accents},
                                  {"lowercase", lowercase}}},
                                {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                                {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                                {"model",
                                 {{"type", "WordPiece"},
                                  {"unk_token", "[UNK]"},
                                  {"continuing_subword_prefix", "##"},
                                  {"max_input_chars_per_word", rules.max_word_length},
                                  {"vocab", vocabulary}}}});
  }

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& out) const {
    size_t characters = 0;
    for (const char c : word) characters += (c & 0xC0) != 0x80;
    const size_t kept = out.size();
    for (size_t begin = 0; begin < word.size();) {
      const auto& table = begin == 0 ? starting : continuing;
      size_t length = std::min(word.size() - begin, longest);
      auto piece = table.end();
      for (; length > 0; --length) {
        if (begin + length < word.size() && (word[begin + length] & 0xC0) == 0x80) continue;  // not inside a character
        piece = table.find(word.substr(begin, length));
        if (piece != table.end()) break;
      }
      if (piece == table.end() || characters > rules.max_word_length) {
        out.resize(kept);
        out.push_back(unknown);
        return;
      }
      out.push_back(piece->second);
      begin += length;
    }
  }

  std::string file;
  WordPieceRules rules;
  std::unordered_map<std::string_view, int32_t> starting, continuing;
  size_t longest = 0;
  int32_t unknown = 0;
  uint64_t serial = 0;
};

}  // namespace

std::string basic_tokenize(std::string_view text, const WordPieceRules& rules, std::vector<uint32_t>* offsets) {
  const auto& ascii = ascii_kinds();
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  bool in_word = false;
  int32_t before = -1;
  for (size_t at = 0; at < text.size();) {
    const auto offset = static_cast<uint32_t>(at);
    const int32_t c = next_code_point(text, at);
    Kind kind = Kind::control;
    if (c >= 0 && c < 128)
      kind = ascii[static_cast<size_t>(c)];
    else if (c >= 0)
      kind = rules.as_tokenizers ? kind_in_tokenizers(c) : kind_of(c);
    if (kind == Kind::control) continue;
    if (kind == Kind::space) {
      in_word = false;
      before = -1;
      continue;
    }
    const bool alone = kind == Kind::punctuation || (kind == Kind::cjk && rules.split_ideographs);
    if (!in_word || alone) out += ' ';
    in_word = !alone;
    if (c < 128) {
      out += static_cast<char>(rules.lowercase && c >= 'A' && c <= 'Z' ? c + 32 : c);
    } else if (c == 0x3A3 && rules.lowercase && !rules.as_tokenizers) {
      // A capital sigma at the end of a word becomes a final sigma (SpecialCasing.txt, Final_Sigma).
      size_t ahead = at;
      const bool last = ahead >= text.size() || !is_cased_letter(next_code_point(text, ahead));
      append_code_point(out, last && is_cased_letter(before) ? 0x3C2 : 0x3C3);
    } else {
      append_folded(out, c, rules);
    }
    before = c;
    if (offsets) offsets->resize(out.size(), offset);
  }
  return out;
}

std::unique_ptr<TokenizerModel> make_wordpiece(std::string vocabulary, const std::string& path,
                                               const WordPieceRules& rules) {
  return std::make_unique<WordPiece>(std::move(vocabulary), path, rules);
}

}  // namespace cloze

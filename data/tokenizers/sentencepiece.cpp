// SentencePiece's unigram and BPE models, on the library; the ids of recent words are cached.
#include <sentencepiece_processor.h>
#include <utf8proc.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/tokenizers/tokenizer_model.h"
#include "data/tokenizers/piece_trie.h"
#include "data/tokenizers/utf8.h"
#include "data/tokenizers/word_cache.h"

namespace cloze {

namespace {

constexpr std::string_view space_mark = "\u2581";

/// SentencePiece adds scores in fp32 from the start of the text. In `max_bytes_by_words` bytes of single letters they
/// reach about -7e3, where an addition has an error of up to 2.4e-4: rounding changes the difference of two
/// segmentations of a word of 46 pieces by less than this.
constexpr size_t max_bytes_by_words = 512;
constexpr double rounding_of_scores = 0.025;

/// Facts of a SentencePiece file that the library does not expose (sentencepiece_model.proto: ModelProto).
struct ModelFacts {
  std::string normalizer, charsmap;  ///< name and table of its normalisation rules
  bool user_defined = false;         ///< has pieces that are matched wherever they occur
  bool bpe = false, unigram = true, byte_fallback = false;
  bool space_after_words = false;  ///< a space belongs to the preceding word
  bool dummy_prefix = true;        ///< a space is inserted at the start of a text (with the above: at its end)
  bool joins_spaces = true;        ///< spaces at the ends are removed, runs of spaces are collapsed
  std::vector<uint64_t> types;     ///< of the pieces: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
};

/// Calls `f(field, number, bytes)` for each field of a protocol buffer message; stops at damaged data.
template <class F>
void each_field(std::string_view message, const F& f) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < message.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(message[at++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.size()) {
    const uint64_t tag = varint(), wire = tag & 7;
    const uint64_t number = wire == 0 || wire == 2 ? varint() : 0;
    const uint64_t size = wire == 2 ? number : wire == 5 ? 4 : wire == 1 ? 8 : 0;
    if (size > message.size() - at || wire == 3 || wire == 4 || wire > 5) return;
    f(tag >> 3, number, message.substr(at, size));
    at += size;
  }
}

ModelFacts model_facts(std::string_view model) {
  ModelFacts facts;
  each_field(model, [&](uint64_t part, uint64_t, std::string_view content) {
    if (part < 1 || part > 3) return;  // 1: a piece, 2: the trainer spec, 3: the normalizer spec
    if (part == 1) facts.types.push_back(1);
    each_field(content, [&](uint64_t field, uint64_t number, std::string_view text) {
      if (part == 1 && field == 3) facts.types.back() = number;
      if (part == 1 && field == 3 && number == 4) facts.user_defined = true;
      if (part == 2 && field == 24) facts.space_after_words = number != 0;
      if (part == 3 && field == 3) facts.dummy_prefix = number != 0;
      if (part == 3 && field == 4) facts.joins_spaces = number != 0;
      if (part == 2 && field == 3) facts.bpe = number == 2, facts.unigram = number == 1;
      if (part == 2 && field == 35) facts.byte_fallback = number != 0;
      if (part == 3 && field == 1) facts.normalizer = text;
      if (part == 3 && field == 2) facts.charsmap = text;
    });
  });
  return facts;
}

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

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// White space by Python's str.split().
bool is_python_space(int32_t c) {
  if ((c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85) return true;
  if (c < 0x80) return false;
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/// Appends the lower case of a code point, as Python's str.lower(), between `before` and `after`.
void append_lower(std::string& out, int32_t c, std::string_view before, std::string_view after) {
  if (c == 0x130) {  // the only letter whose lower case has two code points
    out += "i\u0307";
  } else if (c == 0x3A3) {
    // A capital sigma at the end of a word becomes a final sigma (SpecialCasing.txt, Final_Sigma); marks between
    // letters are ignored.
    const auto letter = [](int32_t l) { return l >= 0 && (utf8proc_tolower(l) != l || utf8proc_toupper(l) != l); };
    const auto mark = [](int32_t l) {
      return l == '\'' || l == 0xB7 || (l >= 0 && utf8proc_category(l) == UTF8PROC_CATEGORY_MN);
    };
    int32_t last = -1, next = -1;
    for (size_t at = before.size(); at > 0;) {
      do --at;
      while (at > 0 && (before[at] & 0xC0) == 0x80);
      size_t end = at;
      last = next_code_point(before, end);
      if (!mark(last)) break;
    }
    for (size_t at = 0; at < after.size();) {
      next = next_code_point(after, at);
      if (!mark(next)) break;
    }
    append_code_point(out, letter(last) && !letter(next) ? 0x3C2 : 0x3C3);
  } else {
    append_code_point(out, utf8proc_tolower(c));
  }
}

struct SentencePiece final : TokenizerModel {
  SentencePiece(std::string model_file, const std::string& path, const SentencePieceRules& given)
      : model(std::move(model_file)), about(model_facts(model)), rules(given) {
    const auto status = library.LoadFromSerializedProto(model);
    require<DataError>(status.ok() && library.GetPieceSize() > 0, path,
                       ": is not a SentencePiece model, or it is damaged; get or train it again");
    for (int id = 0; id < library.GetPieceSize(); ++id) {
      pieces.push_back(library.IdToPiece(id));
      scores.push_back(static_cast<double>(library.GetScore(id)));
      if (!is_control(id) && !library.IsByte(id) && !library.IsUnused(id)) trie.add(pieces.back(), id);
    }
    folds = about.normalizer == "nmt_nfkc_cf" || about.normalizer == "nfkc_cf";
    lowercase = folds || rules.lowercase;
    plain_ascii =
        about.unigram && !about.user_defined &&
        (folds || about.normalizer == "nmt_nfkc" || about.normalizer == "nfkc" || about.normalizer == "identity");
    static std::atomic<uint64_t> made{0};
    serial = ++made;
    by_words = words_are_independent();
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (!rules.any()) return encode_text(text, out);
    const size_t before = out.size();
    encode_text(prepared(text), out);
    if (rules.split_digit_commas) split_digit_commas(out, before);
  }

  void encode_after(std::string_view text, std::vector<int32_t>& out) const override {
    std::vector<int32_t> ids;
    encode(text, ids);
    size_t at = 0;
    const auto first = text.empty() ? ' ' : next_code_point(text, at);
    if (first > ' ' && utf8proc_category(first) != UTF8PROC_CATEGORY_ZS) continue_word(ids);
    out.insert(out.end(), ids.begin(), ids.end());
  }

  std::vector<TokenSpan> encode_with_offsets(std::string_view text) const override {
    std::vector<uint32_t> sources;
    const auto found = library.EncodeAsImmutableProto(rules.any() ? prepared(text, &sources) : std::string(text));
    const auto source = [&](size_t at) {
      return !rules.any() ? std::min(at, text.size()) : at < sources.size() ? sources[at] : text.size();
    };
    std::vector<TokenSpan> tokens;
    for (const auto& piece : found.pieces()) {
      const TokenSpan one{static_cast<int32_t>(piece.id()), source(piece.begin()), source(piece.end())};
      std::vector<int32_t> parts{one.id};
      if (rules.split_digit_commas) split_digit_commas(parts, 0);
      size_t at = one.begin;
      for (size_t i = 0; i < parts.size(); ++i) {  // a part covers the bytes of its spelling, the last one the rest
        const auto& spelled = pieces[static_cast<size_t>(parts[i])];
        const bool marked = spelled.starts_with(space_mark), space = marked && at < text.size() && text[at] == ' ';
        const size_t bytes = spelled.size() - (marked ? space_mark.size() : 0) + (space ? 1 : 0);
        const size_t end = i + 1 == parts.size() ? one.end : std::min(at + bytes, one.end);
        tokens.push_back({parts[i], at, end});
        at = end;
      }
    }
    return tokens;
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    library.Decode(std::vector<int>(ids.begin(), ids.end()), &text).IgnoreError();
    return text;
  }
  std::string kind() const override { return about.bpe ? "bpe" : "unigram"; }
  std::map<std::string, std::string> files() const override { return {{"spiece.model", model}}; }
  bool is_control(int64_t id) const override {
    return library.IsControl(static_cast<int>(id)) || library.IsUnknown(static_cast<int>(id));
  }
  int64_t role(std::string_view name) const override {
    return name == "pad"   ? library.pad_id()
           : name == "unk" ? library.unk_id()
           : name == "bos" ? library.bos_id()
           : name == "eos" ? library.eos_id()
                           : -1;
  }
  bool starts_word(int64_t id) const override {
    return pieces[static_cast<size_t>(id)].compare(0, space_mark.size(), space_mark) == 0 || is_control(id);
  }
  std::string huggingface_json() const override;
  std::string facts() const override {
    auto all = nlohmann::json::object();
    if (rules.split_digit_commas) all["split_digit_commas"] = true;
    if (rules.strip_accents) all["keep_accents"] = false;
    if (rules.join_spaces) all["join_spaces"] = true;
    return all.dump();
  }

 private:
  nlohmann::json normalizer_json() const;
  nlohmann::json pre_tokenizer_json() const;
  nlohmann::json decoder_json() const;
  nlohmann::json model_json() const;

  /// The text after the preprocessing of the family, and the source offset in `text` of each of its bytes.
  /// Source: zihangdai/xlnet, prepro_utils.py, preprocess_text; google-research/albert, tokenization.py,
  /// preprocess_text.
  std::string prepared(std::string_view text, std::vector<uint32_t>* sources = nullptr) const {
    std::string out;
    bool spaced = false;
    uint32_t space_at = 0;
    for (size_t at = 0; at < text.size();) {
      const auto from = static_cast<uint32_t>(at);
      int32_t c = next_code_point(text, at);
      if (rules.join_spaces && c >= 0 && is_python_space(c)) {
        if (!spaced) space_at = from;
        spaced = !out.empty();
        continue;
      }
      if (spaced) out += ' ';
      if (spaced && sources) sources->resize(out.size(), space_at);
      spaced = false;
      if (rules.split_digit_commas && (c == '`' || c == '\'') && at < text.size() && text[at] == static_cast<char>(c)) {
        ++at;
        c = '"';
      }
      utf8proc_int32_t parts[32] = {c < 0 ? 0xFFFD : c};
      const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
      const auto count = rules.strip_accents ? std::min<utf8proc_ssize_t>(
                                                   utf8proc_decompose_char(parts[0], parts, 32, options, nullptr), 32)
                                             : 1;
      for (utf8proc_ssize_t i = 0; i < count; ++i) {
        if (rules.strip_accents && utf8proc_get_property(parts[i])->combining_class != 0) continue;
        if (rules.lowercase)
          append_lower(out, parts[i], out, text.substr(at));
        else
          append_code_point(out, parts[i]);
      }
      if (sources) sources->resize(out.size(), from);
    }
    return out;
  }

  /// Changes the ids of a text to those of the continuation of a word. Differs from XLNet's code: a piece that exists
  /// only at the start of words is kept, there it becomes unknown.
  void continue_word(std::vector<int32_t>& ids) const {
    if (ids.empty() || is_control(ids[0])) return;
    const auto& start = pieces[static_cast<size_t>(ids[0])];
    if (start == space_mark)
      ids.erase(ids.begin());
    else if (starts_word(ids[0]))
      if (const auto same = library.PieceToId(start.substr(space_mark.size())); !is_control(same)) ids[0] = same;
  }

  /// `9,` becomes `9` and `,`. Source: zihangdai/xlnet, prepro_utils.py, encode_pieces.
  void split_digit_commas(std::vector<int32_t>& ids, size_t first) const {
    std::vector<int32_t> out(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(first));
    for (size_t i = first; i < ids.size(); ++i) {
      const auto& piece = pieces[static_cast<size_t>(ids[i])];
      if (!ends_with_digit_comma(piece)) {
        out.push_back(ids[i]);
        continue;
      }
      std::string head = piece.substr(0, piece.size() - 1);
      replace_all(head, space_mark, "");
      std::vector<int32_t> again;
      encode_text(head, again);
      if (!again.empty() && !piece.starts_with(space_mark)) {
        const std::string_view start = pieces[static_cast<size_t>(again[0])];
        if (start == space_mark)
          again.erase(again.begin());
        else if (start.starts_with(space_mark))
          again[0] =
              library.PieceToId(absl::string_view(start.data() + space_mark.size(), start.size() - space_mark.size()));
      }
      out.insert(out.end(), again.begin(), again.end());
      out.push_back(library.PieceToId(","));
    }
    ids = std::move(out);
  }

  static bool ends_with_digit_comma(std::string_view piece) {
    if (piece.size() < 2 || piece.back() != ',') return false;
    size_t at = piece.size() - 2;
    while (at > 0 && (piece[at] & 0xC0) == 0x80) --at;
    return utf8proc_category(next_code_point(piece, at)) == UTF8PROC_CATEGORY_ND;
  }

  void encode_text(std::string_view text, std::vector<int32_t>& out) const {
    if (!by_words || text.size() > max_bytes_by_words || text.find(space_mark) != std::string_view::npos)
      return encode_by_library(text, out);
    thread_local WordCache cache;
    const size_t before = out.size();
    const auto encode_one = [&](std::string_view word, std::vector<int32_t>& o) { return encode_word(word, o); };
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      if (end > begin && !cache.append(serial, text.substr(begin, end - begin), out, encode_one)) {
        out.resize(before);
        return encode_by_library(text, out);
      }
      begin = end + 1;
    }
  }

  void encode_by_library(std::string_view text, std::vector<int32_t>& out) const {
    thread_local std::vector<int> found;
    found.clear();
    library.Encode(absl::string_view(text.data(), text.size()), &found).IgnoreError();
    out.insert(out.end(), found.begin(), found.end());
  }
  std::vector<int32_t> encode_whole(std::string_view text) const {
    std::vector<int32_t> out;
    encode_by_library(text, out);
    return out;
  }

  /// Appends the ids of a word; false if its two best segmentations are so close that rounding of the preceding scores
  /// decides between them.
  bool encode_word(std::string_view word, std::vector<int32_t>& out) const {
    thread_local std::string normal;
    if (plain_ascii && std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 0x7F; })) {
      normal.assign(space_mark);
      for (const char c : word) normal += folds && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      const size_t before = out.size();
      const double gap = cut(normal, out);
      if (gap >= 0) return gap > rounding_of_scores;
      out.resize(before);
    }
    const size_t before = out.size();
    encode_by_library(word, out);
    if (!about.unigram || out.size() - before < 2) return true;
    normal.clear();
    for (size_t i = before; i < out.size(); ++i) {
      if (is_control(out[i])) return false;  // an unknown character hides its spelling
      normal += pieces[static_cast<size_t>(out[i])];
    }
    std::vector<int32_t> same;
    return cut(normal, same) > rounding_of_scores;
  }

  /// Appends the most probable segmentation of a normalised word; returns the score difference to the second best one,
  /// or -1 if there is none. Source: Kudo 2018, section 3.2 (arXiv 1804.10959).
  double cut(std::string_view word, std::vector<int32_t>& out) const {
    constexpr double unreached = -1e30;
    struct Node {
      double best = unreached, second = unreached;
      int32_t id = -1;
      uint32_t from = 0;
    };
    thread_local std::vector<Node> nodes;
    nodes.assign(word.size() + 1, Node{});
    nodes[0].best = 0;
    for (uint32_t begin = 0; begin < word.size(); ++begin) {
      const double best = nodes[begin].best, second = nodes[begin].second;
      if (best == unreached) continue;
      trie.each_prefix(word.substr(begin), [&](size_t count, int32_t id) {
        const double score = scores[static_cast<size_t>(id)];
        auto& node = nodes[begin + count];
        if (best + score > node.best) {
          node.second = std::max(node.best, second + score);
          node.best = best + score, node.id = id, node.from = begin;
        } else {
          node.second = std::max(node.second, best + score);
        }
      });
    }
    if (nodes.back().best == unreached) return -1;
    const auto before = static_cast<std::ptrdiff_t>(out.size());
    for (size_t at = word.size(); at > 0; at = nodes[at].from) out.push_back(nodes[at].id);
    std::reverse(out.begin() + before, out.end());
    return nodes.back().best - nodes.back().second;
  }

  /// True if no piece crosses a space and spaces are marks before words, so that words are tokenized independently.
  bool words_are_independent() const {
    for (const auto& piece : pieces)
      if (piece.find(space_mark, 1) != std::string::npos || piece.find(' ') != std::string::npos) return false;
    const auto mark = std::find(pieces.begin(), pieces.end(), space_mark);
    const auto one = encode_whole("x"), two = encode_whole("x  x");
    if (mark == pieces.end() || is_control(mark - pieces.begin()) || one.empty() || !starts_word(one[0])) return false;
    auto twice = one;
    twice.insert(twice.end(), one.begin(), one.end());
    return twice == two && encode_whole(" x ") == one && encode_whole(" ").empty();
  }

  std::string model;
  ModelFacts about;
  SentencePieceRules rules;
  sentencepiece::SentencePieceProcessor library;
  PieceTrie trie;  // of pieces that may result from text
  std::vector<double> scores;
  bool folds = false;        // the model's normalisation lower-cases
  bool plain_ascii = false;  // a unigram model that changes nothing in ASCII except case
  bool by_words = false;     // the ids of a text are the concatenated ids of its words
  uint64_t serial = 0;       // unique among all opened models
};

using Json = nlohmann::json;

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
    if (last > c) list += '-', append_code_point(list, last);
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

Json SentencePiece::normalizer_json() const {
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

Json SentencePiece::pre_tokenizer_json() const {
  Json steps = Json::array();
  std::vector<std::string> symbols;
  for (size_t id = 0; id < pieces.size(); ++id)
    if (about.types[id] == 4) symbols.push_back(pieces[id]);
  std::sort(symbols.begin(), symbols.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });  // the longest match wins
  std::string pattern;
  for (const auto& symbol : symbols) pattern += (pattern.empty() ? "" : "|") + escaped(symbol);
  if (!symbols.empty())
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  if (by_words)
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"String", space_mark}}}, {"behavior", "MergedWithNext"}, {"invert", false}});
  if (steps.empty()) return nullptr;
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

Json SentencePiece::decoder_json() const {
  Json steps = Json::array({replace_text(space_mark, " ")});
  if (about.byte_fallback) steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  const bool leads = about.dummy_prefix && !about.space_after_words;  // a space after words is kept, as in the library
  if (leads) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

Json SentencePiece::model_json() const {
  const auto unknown = library.unk_id();
  if (about.bpe) {
    Json vocabulary = Json::object();
    for (size_t id = 0; id < pieces.size(); ++id) vocabulary[pieces[id]] = id;
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", pieces[static_cast<size_t>(unknown)]},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", true},
            {"byte_fallback", about.byte_fallback},
            {"ignore_merges", about.user_defined},
            {"vocab", vocabulary},
            {"merges", merges_of(pieces, scores, about.types)}};
  }
  // Pieces that must not result from text, and `9,` if the rules split it, score worse than any alternative.
  constexpr double penalty = 100;
  Json vocabulary = Json::array();
  for (size_t id = 0; id < pieces.size(); ++id) {
    const bool avoided =
        about.types[id] == 5 || about.types[id] == 6 || (rules.split_digit_commas && ends_with_digit_comma(pieces[id]));
    const double score = about.types[id] == 4 ? 0 : scores[id];
    vocabulary.push_back({pieces[id], avoided ? score - penalty : score});
  }
  return {{"type", "Unigram"}, {"unk_id", unknown}, {"vocab", vocabulary}, {"byte_fallback", about.byte_fallback}};
}

/// This model as a tokenizer.json. Differs: its `Precompiled` looks up whole grapheme clusters where SentencePiece uses
/// the longest match, so texts with rare sequences of marks may have other ids.
std::string SentencePiece::huggingface_json() const {
  return Json{{"normalizer", normalizer_json()},
              {"pre_tokenizer", pre_tokenizer_json()},
              {"decoder", decoder_json()},
              {"model", model_json()}}
      .dump();
}

}  // namespace

std::unique_ptr<TokenizerModel> make_sentencepiece(std::string model, const std::string& path,
                                                   const SentencePieceRules& rules) {
  return std::make_unique<SentencePiece>(std::move(model), path, rules);
}

}  // namespace cloze

// SentencePiece's unigram and BPE models. The library does the work; words that were seen are not cut again.
#include <sentencepiece_processor.h>
#include <utf8proc.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/tokenizers/encoder.h"
#include "data/tokenizers/piece_trie.h"
#include "data/tokenizers/utf8.h"
#include "data/tokenizers/word_cache.h"

namespace cloze {

namespace {

constexpr std::string_view space_mark = "\u2581";

/// SentencePiece adds scores in fp32 from the start of the text. In `longest_by_words` bytes of single letters they reach some
/// -7e3, where an addition is off by up to 2.4e-4: two ways to cut a word of 46 pieces differ by less than this for that reason.
constexpr size_t longest_by_words = 512;
constexpr double rounding_of_scores = 0.025;

/// What a SentencePiece file says that the library does not tell (sentencepiece_model.proto: ModelProto).
struct ModelFacts {
  std::string normalizer, charsmap;   ///< name of its rules, and the rules
  bool user_defined = false;          ///< has pieces that are taken wherever they occur
  bool bpe = false, unigram = true, byte_fallback = false;
};

/// Calls `f(field, number, bytes)` for each field of a protocol buffer message; stops where it is damaged.
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
    if (part < 1 || part > 3) return;   // 1: a piece, 2: how it was trained, 3: how text is normalised
    each_field(content, [&](uint64_t field, uint64_t number, std::string_view text) {
      if (part == 1 && field == 3 && number == 4) facts.user_defined = true;
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
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
}

struct SentencePiece final : Encoder {
  SentencePiece(std::string model_file, const std::string& path, const SentencePieceRules& given) : model(std::move(model_file)), about(model_facts(model)), rules(given) {
    const auto status = library.LoadFromSerializedProto(model);
    require<DataError>(status.ok() && library.GetPieceSize() > 0, path, ": is not a SentencePiece model, or it is damaged; get or train it again");
    for (int id = 0; id < library.GetPieceSize(); ++id) {
      pieces.push_back(library.IdToPiece(id));
      scores.push_back(static_cast<double>(library.GetScore(id)));
      if (!is_control(id) && !library.IsByte(id) && !library.IsUnused(id)) trie.add(pieces.back(), id);
    }
    folds = about.normalizer == "nmt_nfkc_cf" || about.normalizer == "nfkc_cf";
    lowercase = folds || rules.lowercase;
    plain_ascii = about.unigram && !about.user_defined && (folds || about.normalizer == "nmt_nfkc" || about.normalizer == "nfkc" || about.normalizer == "identity");
    static std::atomic<uint64_t> made{0};
    serial = ++made;
    by_words = words_are_apart();
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (!rules.any()) return encode_text(text, out);
    const size_t before = out.size();
    encode_text(prepared(text), out);
    if (rules.split_digit_commas) split_digit_commas(out, before);
  }

  void encode_behind(std::string_view text, std::vector<int32_t>& out) const override {
    std::vector<int32_t> ids;
    encode(text, ids);
    size_t at = 0;
    const auto first = text.empty() ? ' ' : next_code_point(text, at);
    if (first > ' ' && utf8proc_category(first) != UTF8PROC_CATEGORY_ZS) continue_word(ids);
    out.insert(out.end(), ids.begin(), ids.end());
  }

  std::vector<TextPiece> encode_with_places(std::string_view text) const override {
    const auto found = library.EncodeAsImmutableProto(rules.any() ? prepared(text) : std::string(text));
    std::vector<TextPiece> placed;
    for (const auto& piece : found.pieces())
      placed.push_back({static_cast<int32_t>(piece.id()), std::min<size_t>(piece.begin(), text.size()), std::min<size_t>(piece.end(), text.size())});
    return placed;
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    library.Decode(std::vector<int>(ids.begin(), ids.end()), &text).IgnoreError();
    return text;
  }
  std::string kind() const override { return about.bpe ? "bpe" : "unigram"; }
  std::map<std::string, std::string> files() const override { return {{"spiece.model", model}}; }
  bool is_control(int64_t id) const override { return library.IsControl(static_cast<int>(id)) || library.IsUnknown(static_cast<int>(id)); }
  int64_t role(std::string_view name) const override {
    return name == "pad" ? library.pad_id() : name == "unk" ? library.unk_id() : name == "bos" ? library.bos_id() : name == "eos" ? library.eos_id() : -1;
  }
  bool starts_word(int64_t id) const override { return pieces[static_cast<size_t>(id)].compare(0, space_mark.size(), space_mark) == 0 || is_control(id); }
  std::string huggingface_json() const override;
  std::string facts() const override {
    return nlohmann::json{{"split_digit_commas", rules.split_digit_commas}, {"keep_accents", !rules.strip_accents}}.dump();
  }

 private:
  /// Text as the family's own code hands it to the model.
  std::string prepared(std::string_view text) const {
    std::string out(text);
    if (rules.split_digit_commas) {
      replace_all(out, "``", "\"");
      replace_all(out, "''", "\"");
    }
    if (!rules.lowercase && !rules.strip_accents) return out;
    std::string folded;
    for (size_t at = 0; at < out.size();) {
      const int32_t c = next_code_point(out, at);
      if (c < 0) continue;
      utf8proc_int32_t parts[32] = {c};
      const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
      const auto n = rules.strip_accents ? std::min<utf8proc_ssize_t>(utf8proc_decompose_char(c, parts, 32, options, nullptr), 32) : 1;
      for (utf8proc_ssize_t i = 0; i < n; ++i)
        if (!rules.strip_accents || utf8proc_get_property(parts[i])->combining_class == 0) append_code_point(folded, rules.lowercase ? utf8proc_tolower(parts[i]) : parts[i]);
    }
    return folded;
  }

  /// Ids of a text that goes on with a word, where the model saw the start of one. Differs from XLNet's code: a piece that is known at a
  /// start alone stays as it is, there it becomes the unknown one.
  void continue_word(std::vector<int32_t>& ids) const {
    if (ids.empty() || is_control(ids[0])) return;
    const auto& start = pieces[static_cast<size_t>(ids[0])];
    if (start == space_mark) ids.erase(ids.begin());
    else if (starts_word(ids[0]))
      if (const auto same = library.PieceToId(start.substr(space_mark.size())); !is_control(same)) ids[0] = same;
  }

  /// `9,` becomes `9` and `,`. Source: zihangdai/xlnet, prepro_utils.py, encode_pieces.
  void split_digit_commas(std::vector<int32_t>& ids, size_t first) const {
    std::vector<int32_t> out(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(first));
    for (size_t i = first; i < ids.size(); ++i) {
      const auto& piece = pieces[static_cast<size_t>(ids[i])];
      if (piece.size() < 2 || piece.back() != ',' || !std::isdigit(static_cast<unsigned char>(piece[piece.size() - 2]))) {
        out.push_back(ids[i]);
        continue;
      }
      std::string head = piece.substr(0, piece.size() - 1);
      replace_all(head, space_mark, "");
      std::vector<int32_t> again;
      encode_text(head, again);
      if (!starts_word(ids[i])) continue_word(again);
      out.insert(out.end(), again.begin(), again.end());
      out.push_back(library.PieceToId(","));
    }
    ids = std::move(out);
  }

  void encode_text(std::string_view text, std::vector<int32_t>& out) const {
    if (!by_words || text.size() > longest_by_words || text.find(space_mark) != std::string_view::npos) return encode_by_library(text, out);
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

  /// Appends the ids of a word; false when its best two ways to be cut are so close that the rounding of the scores
  /// before it decides between them.
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
      if (is_control(out[i])) return false;   // an unknown character hides its spelling
      normal += pieces[static_cast<size_t>(out[i])];
    }
    std::vector<int32_t> same;
    return cut(normal, same) > rounding_of_scores;
  }

  /// Appends the likeliest pieces of a normalised word; returns by how much the second best way is worse, or -1 when no
  /// way is known. Source: Kudo 2018, section 3.2 (arXiv 1804.10959).
  double cut(std::string_view word, std::vector<int32_t>& out) const {
    constexpr double unreached = -1e30;
    struct Place {
      double best = unreached, second = unreached;
      int32_t id = -1;
      uint32_t from = 0;
    };
    thread_local std::vector<Place> places;
    places.assign(word.size() + 1, Place{});
    places[0].best = 0;
    for (uint32_t begin = 0; begin < word.size(); ++begin) {
      const double best = places[begin].best, second = places[begin].second;
      if (best == unreached) continue;
      trie.each_prefix(word.substr(begin), [&](size_t count, int32_t id) {
        const double score = scores[static_cast<size_t>(id)];
        auto& place = places[begin + count];
        if (best + score > place.best) {
          place.second = std::max(place.best, second + score);
          place.best = best + score, place.id = id, place.from = begin;
        } else {
          place.second = std::max(place.second, best + score);
        }
      });
    }
    if (places.back().best == unreached) return -1;
    const auto before = static_cast<std::ptrdiff_t>(out.size());
    for (size_t at = word.size(); at > 0; at = places[at].from) out.push_back(places[at].id);
    std::reverse(out.begin() + before, out.end());
    return places.back().best - places.back().second;
  }

  /// True when no piece reaches over a space and spaces are a mark before a word, so that words do not see each other.
  bool words_are_apart() const {
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
  PieceTrie trie;             // of pieces that text can have
  std::vector<double> scores;
  bool folds = false;         // the model's own rules lower-case
  bool plain_ascii = false;   // a unigram model that leaves ASCII as it is, but for capitals
  bool by_words = false;      // a text's ids are those of its words, one after the other
  uint64_t serial = 0;        // of this model among all that were opened
};

/// The order in which BPE pieces were joined, told from their scores.
nlohmann::ordered_json merges_of(const std::vector<std::string>& pieces, const std::vector<double>& scores) {
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id], id);
  struct Join {
    double score;
    size_t left, right;
  };
  std::vector<Join> joins;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view piece = pieces[id];
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if ((piece[cut] & 0xC0) == 0x80) continue;
      const auto left = ids.find(piece.substr(0, cut)), right = ids.find(piece.substr(cut));
      if (left != ids.end() && right != ids.end()) joins.push_back({scores[id], left->second, right->second});
    }
  }
  std::sort(joins.begin(), joins.end(), [](const Join& a, const Join& b) { return std::tuple(-a.score, a.left, a.right) < std::tuple(-b.score, b.left, b.right); });
  auto list = nlohmann::ordered_json::array();
  for (const auto& join : joins) list.push_back({pieces[join.left], pieces[join.right]});
  return list;
}

std::string SentencePiece::huggingface_json() const {
  using Json = nlohmann::ordered_json;
  Json steps = Json::array();
  if (rules.split_digit_commas)
    for (const auto* quotes : {"``", "''"}) steps.push_back({{"type", "Replace"}, {"pattern", {{"String", quotes}}}, {"content", "\""}});
  if (rules.strip_accents) {
    steps.push_back({{"type", "NFKD"}});
    steps.push_back({{"type", "StripAccents"}});
  }
  if (rules.lowercase) steps.push_back({{"type", "Lowercase"}});
  if (!about.charsmap.empty()) steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(about.charsmap)}});
  steps.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  const Json mark{{"type", "Metaspace"}, {"replacement", space_mark}, {"prepend_scheme", "always"}, {"split", true}};
  Json vocabulary = about.bpe ? Json::object() : Json::array();
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (about.bpe) vocabulary[pieces[id]] = id;
    else vocabulary.push_back({pieces[id], scores[id]});
  }
  Json net{{"type", about.bpe ? "BPE" : "Unigram"}};
  if (about.bpe) {
    net["dropout"] = nullptr, net["unk_token"] = pieces[static_cast<size_t>(library.unk_id())], net["continuing_subword_prefix"] = nullptr, net["end_of_word_suffix"] = nullptr;
    net["fuse_unk"] = true, net["byte_fallback"] = about.byte_fallback, net["vocab"] = vocabulary, net["merges"] = merges_of(pieces, scores);
  } else {
    net["unk_id"] = library.unk_id(), net["vocab"] = vocabulary, net["byte_fallback"] = about.byte_fallback;
  }
  return Json{{"normalizer", {{"type", "Sequence"}, {"normalizers", steps}}}, {"pre_tokenizer", mark}, {"decoder", mark}, {"model", net}}.dump();
}

}  // namespace

std::unique_ptr<Encoder> make_sentencepiece(std::string model, const std::string& path, const SentencePieceRules& rules) {
  return std::make_unique<SentencePiece>(std::move(model), path, rules);
}

}  // namespace cloze

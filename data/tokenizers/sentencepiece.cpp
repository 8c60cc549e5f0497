// SentencePiece's unigram and BPE models, on the library; the ids of recent words are cached.
#include <sentencepiece_processor.h>
#include <utf8proc.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "data/tokenizers/characters.h"
#include "data/tokenizers/charsmap.h"
#include "data/tokenizers/piece_trie.h"
#include "data/tokenizers/sentencepiece.h"
#include "data/tokenizers/tokenizer_model.h"
#include "data/tokenizers/utf8.h"
#include "data/tokenizers/word_cache.h"

namespace cloze {

namespace {

/// SentencePiece adds scores in fp32 from the start of the text. In `max_bytes_by_words` bytes of single letters they
/// reach about -7e3, where an addition has an error of up to 2.4e-4: rounding changes the difference of two
/// segmentations of a word of 46 pieces by less than this.
constexpr size_t max_bytes_by_words = 512;
constexpr double rounding_of_scores = 0.025;

struct SentencePiece final : TokenizerModel {
  SentencePiece(std::string model_file, const std::string& path, const SentencePieceRules& all_rules)
      : model(std::move(model_file)), about(sentencepiece_facts(model)), rules(all_rules) {
    load(path);
    for (int id = 0; id < library.GetPieceSize(); ++id) {
      pieces.push_back(library.IdToPiece(id));
      require<DataError>(find_invalid_utf8(pieces.back()) == std::string_view::npos, path, ": piece ", id,
                         " is not UTF-8; the model is damaged, get or train it again");
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
    encode_text(prepared(rules, text), out);
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
    const auto encoded =
        library.EncodeAsImmutableProto(rules.any() ? prepared(rules, text, &sources) : std::string(text));
    const auto source = [&](size_t at) {
      return !rules.any() ? std::min(at, text.size()) : at < sources.size() ? sources[at] : text.size();
    };
    // A piece that ends inside what the rules make of a character has all of it: of 1 and 2 that come of a half, both.
    const auto source_end = [&](size_t begin, size_t end) {
      size_t past = source(end);
      const bool is_inside = rules.any() && end > begin && end < sources.size() && sources[end] == sources[end - 1];
      if (is_inside && past < text.size()) next_code_point(text, past);
      return past;
    };
    std::vector<TokenSpan> tokens;
    int64_t word = 0;
    for (const auto& piece : encoded.pieces()) {
      // The piece of an unknown token is its text.
      word += !tokens.empty() && std::string_view(piece.piece()).starts_with(space_mark);
      const TokenSpan one{static_cast<int32_t>(piece.id()), source(piece.begin()),
                          source_end(piece.begin(), piece.end()), word};
      std::vector<int32_t> parts{one.id};
      if (rules.split_digit_commas) split_digit_commas(parts, 0);
      size_t at = one.begin;
      for (size_t i = 0; i < parts.size(); ++i) {  // a part covers the bytes of its spelling, the last one the rest
        const auto& spelled = pieces[static_cast<size_t>(parts[i])];
        const bool marked = spelled.starts_with(space_mark), space = marked && at < text.size() && text[at] == ' ';
        const size_t bytes = spelled.size() - (marked ? space_mark.size() : 0) + (space ? 1 : 0);
        const size_t end = i + 1 == parts.size() ? one.end : std::min(at + bytes, one.end);
        tokens.push_back({parts[i], at, end, word});
        at = end;
      }
    }
    if (!rules.any()) widen_over_expansions(text, encoded, tokens);
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
  std::string huggingface_json() const override {
    return sentencepiece_json({about, rules, pieces, scores, by_words, library.unk_id()});
  }
  std::string facts() const override {
    auto all = nlohmann::json::object();
    if (rules.split_digit_commas) all["split_digit_commas"] = true;
    if (rules.strip_accents) all["keep_accents"] = false;
    if (rules.join_spaces) all["join_spaces"] = true;
    return json_text(all);
  }

 private:
  /// Gives the model to the library, when everything that the library reads without checks has been checked.
  void load(const std::string& path) {
    const auto tables = sentencepiece_charsmaps(model);
    for (const auto table : tables.value_or(std::vector<std::string_view>{}))
      require_readable_charsmap(table, path + ": its normalisation table");
    const auto fault = fault_of_pieces(model);
    require<DataError>(fault.empty(), path, ": ", fault, "; the model is damaged, get or train it again");
    require<DataError>(tables && is_loaded() && library.GetPieceSize() > 0, path,
                       ": is not a SentencePiece model, or it is damaged; get or train it again");
  }

  /// Whether the library takes the model; its tree of pieces throws for some that it does not.
  bool is_loaded() try { return library.LoadFromSerializedProto(model).ok(); } catch (const std::exception&) {
    return false;
  }

  /// The library gives what its table makes of one character (1, a slash and 2 of a half), and the bytes that stand for
  /// an unknown one, to the last piece of it: the others get the character, too.
  void widen_over_expansions(std::string_view text, const sentencepiece::ImmutableSentencePieceText& encoded,
                             std::vector<TokenSpan>& tokens) const {
    if (is_ascii(text)) return;
    std::string normal;
    std::vector<size_t> ends;
    for (const auto& piece : encoded.pieces()) ends.push_back((normal += piece.piece()).size());
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      size_t past = tokens[i].end;
      if (past >= text.size() || tokens[i + 1].begin != past) continue;
      const auto code = next_code_point(text, past);
      if (code < 0x80) continue;
      const auto written = written_for(text.substr(tokens[i].end, past - tokens[i].end));
      bool is_inside =
          library.IsByte(tokens[i].id) && library.IsByte(tokens[i + 1].id) && tokens[i].begin == tokens[i].end;
      for (size_t k = 1; k < written.size() && k <= ends[i] && !is_inside; ++k)
        is_inside = normal.compare(ends[i] - k, written.size(), written) == 0;
      if (is_inside) tokens[i].end = past;
    }
  }

  /// What the model's table makes of a character, without the mark of a word; empty for one that it keeps.
  std::string written_for(std::string_view character) const {
    const auto encoded = library.EncodeAsImmutableProto(absl::string_view(character.data(), character.size()));
    std::string written;
    for (const auto& piece : encoded.pieces())
      if (!library.IsByte(static_cast<int>(piece.id()))) written += piece.piece();
    if (written.starts_with(space_mark)) written.erase(0, space_mark.size());
    return written == character ? "" : written;
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

  void encode_text(std::string_view text, std::vector<int32_t>& out) const {
    const bool adds_scores = about.unigram && text.size() > max_bytes_by_words;  // BPE compares pairs of one word
    if (!by_words || adds_scores || text.find(space_mark) != std::string_view::npos)
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
    thread_local std::vector<int> ids;
    ids.clear();
    library.Encode(absl::string_view(text.data(), text.size()), &ids).IgnoreError();
    out.insert(out.end(), ids.begin(), ids.end());
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
          node.best = best + score;
          node.id = id;
          node.from = begin;
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
  SentencePieceFacts about;
  SentencePieceRules rules;
  sentencepiece::SentencePieceProcessor library;
  PieceTrie trie;  // of pieces that may result from text
  std::vector<double> scores;
  bool folds = false;        // the model's normalisation lower-cases
  bool plain_ascii = false;  // a unigram model that changes nothing in ASCII except case
  bool by_words = false;     // the ids of a text are the concatenated ids of its words
  uint64_t serial = 0;       // unique among all opened models
};

}  // namespace

std::unique_ptr<TokenizerModel> make_sentencepiece(std::string model, const std::string& path,
                                                   const SentencePieceRules& rules) {
  return std::make_unique<SentencePiece>(std::move(model), path, rules);
}

}  // namespace cloze

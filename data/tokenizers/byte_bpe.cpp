// Byte-level BPE as in GPT-2 and RoBERTa.
// Source: Radford et al. 2019, section 2.2; openai/gpt-2, encoder.py.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"
#include "data/tokenizers/bpe_join.h"
#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/tokenizer_model.h"
#include "data/tokenizers/utf8.h"
#include "data/tokenizers/word_cache.h"

namespace cloze {

namespace {

enum class LetterClass { letter, number, space, other };

LetterClass letter_class(int32_t c) {
  if (c < 0) return LetterClass::other;
  if (c < 128) {
    const auto b = static_cast<char>(c);
    if ((b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')) return LetterClass::letter;
    if (b >= '0' && b <= '9') return LetterClass::number;
    return b == ' ' || (b >= '\t' && b <= '\r') ? LetterClass::space : LetterClass::other;
  }
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return LetterClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return LetterClass::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return LetterClass::space;
    default:
      return c == 0x85 ? LetterClass::space : LetterClass::other;
  }
}

/// The code point that represents each byte: printable bytes themselves, the others from U+0100 on.
const std::array<int32_t, 256>& byte_symbols() {
  static const auto table = [] {
    std::array<int32_t, 256> symbols{};
    int32_t next = 256;
    for (int32_t b = 0; b < 256; ++b)
      symbols[static_cast<size_t>(b)] = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE ? b : next++;
    return symbols;
  }();
  return table;
}

struct ByteBpe final : TokenizerModel {
  ByteBpe(std::string vocabulary_file, std::string merges_file, const std::string& path, bool add_prefix_space)
      : vocabulary(std::move(vocabulary_file)), merges(std::move(merges_file)), prefix_space(add_prefix_space) {
    read_vocabulary(path);
    find_bytes(path);
    read_merges(path);
    for (const auto& piece : pieces) starts.push_back(piece.compare(0, 2, "\u0120") == 0);
    static std::atomic<uint64_t> made{0};
    serial = (uint64_t{1} << 63) | ++made;
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (!prefix_space || text.empty() || text[0] == ' ') return encode_after(text, out);
    encode_after(" " + std::string(text), out);
  }

  void encode_after(std::string_view text, std::vector<int32_t>& out) const override {
    thread_local WordCache cache;
    each_pretoken(text, [&](std::string_view token) {
      if (!cache.append(serial, token, out,
                        [&](std::string_view t, std::vector<int32_t>& o) { return encode_token(t, o), true; }))
        encode_token(token, out);
    });
  }

  std::vector<TokenSpan> encode_with_offsets(std::string_view text) const override {
    std::vector<TokenSpan> tokens;
    const size_t added = prefix_space && !text.empty() && text[0] != ' ' ? 1 : 0;
    const std::string read = std::string(added, ' ') + std::string(text);
    std::vector<int32_t> merged;
    size_t at = 0;
    int64_t word = 0;
    each_pretoken(read, [&](std::string_view pretoken) {
      merged.clear();
      encode_token(pretoken, merged);
      for (const auto id : merged) {
        const size_t begin = at;
        at += decoded(pieces[static_cast<size_t>(id)]).size();
        tokens.push_back({id, begin - std::min(begin, added), at - std::min(at, added), word});
      }
      ++word;
    });
    return tokens;
  }

  std::string decode(std::span<const int64_t> list) const override {
    std::string text;
    for (const auto id : list) text += decoded(pieces[static_cast<size_t>(id)]);
    return text;
  }
  std::string kind() const override { return "byte_bpe"; }
  std::map<std::string, std::string> files() const override {
    return {{"vocab.json", vocabulary}, {"merges.txt", merges}};
  }
  bool starts_word(int64_t id) const override { return starts[static_cast<size_t>(id)] != 0; }
  bool keeps_spaces() const override { return !prefix_space; }
  std::string facts() const override { return json_text(nlohmann::json{{"add_prefix_space", prefix_space}}); }

  std::string huggingface_json() const override {
    using SortedJson = nlohmann::json;  // ordered_json has linear lookup
    SortedJson vocab = SortedJson::object(), list = SortedJson::array();
    for (size_t id = 0; id < pieces.size(); ++id) vocab[pieces[id]] = id;
    for (size_t begin = 0; begin < merges.size();) {
      const size_t end = std::min(merges.find('\n', begin), merges.size());
      const std::string line = merges.substr(begin, end - begin);
      begin = end + 1;
      if (line.empty() || line.rfind("#version", 0) == 0) continue;
      list.push_back({line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1)});
    }
    const SortedJson level{
        {"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", true}};
    return json_text(SortedJson{{"normalizer", nullptr},
                                {"pre_tokenizer", level},
                                {"decoder", level},
                                {"model",
                                 {{"type", "BPE"},
                                  {"dropout", nullptr},
                                  {"unk_token", nullptr},
                                  {"continuing_subword_prefix", nullptr},
                                  {"end_of_word_suffix", nullptr},
                                  {"fuse_unk", false},
                                  {"byte_fallback", false},
                                  {"vocab", vocab},
                                  {"merges", list}}}});
  }

 private:
  void read_vocabulary(const std::string& path) {
    const auto json = parse_json(vocabulary);
    if (!json.is_object() || json.empty())
      fail<DataError>(path, ": is not a JSON object of tokens and ids", json_fault(vocabulary), "; it is damaged");
    pieces.resize(json.size());
    std::vector<bool> taken(json.size());  // a token may be empty
    for (const auto& [piece, id] : json.items()) {
      require<DataError>(id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<size_t>() < pieces.size() &&
                             !taken[id.get<size_t>()],
                         path, ": token '", piece, "' has id ", json_text(id), ", which is taken or beyond the ",
                         pieces.size(), " tokens; ids must be 0, 1, 2, ...");
      pieces[id.get<size_t>()] = piece;
      taken[id.get<size_t>()] = true;
      ids.emplace(piece, id.get<int32_t>());
    }
  }

  /// Finds the token of each byte.
  void find_bytes(const std::string& path) {
    for (size_t b = 0; b < 256; ++b) {
      std::string symbol;
      append_code_point(symbol, byte_symbols()[b]);
      const auto found = ids.find(symbol);
      require<DataError>(found != ids.end(), path, ": has no token for byte ", b,
                         "; a byte-level vocabulary needs all 256");
      bytes[b] = found->second;
      value_of[byte_symbols()[b]] = static_cast<char>(b);
    }
  }

  void read_merges(const std::string& path) {
    size_t line = 0;
    for (size_t begin = 0; begin < merges.size();) {
      const size_t end = std::min(merges.find('\n', begin), merges.size());
      std::string_view text(merges.data() + begin, end - begin);
      begin = end + 1;
      ++line;
      if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
      if (text.empty() || (line == 1 && text.substr(0, 8) == "#version")) continue;
      read_merge(text, path, line);
    }
  }

  void read_merge(std::string_view text, const std::string& path, size_t line) {
    const size_t space = text.find(' ');
    require<DataError>(space != std::string_view::npos, path, " merges:", line, ": '", text,
                       "' is not two tokens with a space between them");
    // Text is split at punctuation first, so that no merge of a byte-level vocabulary results in this.
    require<DataError>(!text.ends_with("</w>"), path, " merges:", line, ": '", text,
                       "' ends a word with </w>, which byte-level BPE of GPT-2's kind does not; have transformers "
                       "write tokenizer.json next to it (save_pretrained)");
    const std::string first(text.substr(0, space)), second(text.substr(space + 1));
    const auto left = ids.find(first), right = ids.find(second), joined = ids.find(first + second);
    require<DataError>(left != ids.end() && right != ids.end() && joined != ids.end(), path, " merges:", line, ": '",
                       text, "' names a token that the vocabulary lacks");
    ranks.emplace(bpe_pair(left->second, right->second), BpeMerge{next_rank++, joined->second});
  }

  /// The bytes of a token; a token with other symbols (a special token) is its spelling.
  std::string decoded(const std::string& piece) const {
    std::string text;
    for (size_t at = 0; at < piece.size();) {
      const auto found = value_of.find(next_code_point(piece, at));
      if (found == value_of.end()) return piece;
      text += found->second;
    }
    return text;
  }

  void encode_token(std::string_view token, std::vector<int32_t>& out) const {
    thread_local std::vector<BpeSymbol> symbols;
    symbols.clear();
    for (size_t i = 0; i < token.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      symbols.push_back({.id = bytes[static_cast<uint8_t>(token[i])],
                         .begin = static_cast<uint32_t>(i),
                         .end = static_cast<uint32_t>(i + 1),
                         .before = at - 1,
                         .after = i + 1 < token.size() ? at + 1 : -1});
    }
    join_pairs(ranks, symbols);
    for (const auto& symbol : symbols)
      if (!symbol.joined) out.push_back(symbol.id);
  }

  std::string vocabulary, merges;
  bool prefix_space = false;  // inserted before a text that does not start with one
  std::unordered_map<std::string, int32_t> ids;
  BpeMerges ranks;
  int32_t next_rank = 0;
  std::unordered_map<int32_t, char> value_of;
  std::array<int32_t, 256> bytes{};
  std::vector<uint8_t> starts;
  uint64_t serial = 0;
};

}  // namespace

void each_pretoken(std::string_view text, const std::function<void(std::string_view)>& f) {
  const auto peek = [&](size_t at) {
    return at < text.size() ? letter_class(next_code_point(text, at)) : LetterClass::other;
  };
  for (size_t begin = 0; begin < text.size();) {
    size_t at = begin;
    if (text[at] == '\'') {
      size_t n = 0;
      for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
        if (text.substr(at, ending.size()) == ending) n = ending.size();
      if (n > 0) {
        f(text.substr(begin, n));
        begin += n;
        continue;
      }
    }
    const bool leading_space = text[at] == ' ' && at + 1 < text.size() && peek(at + 1) != LetterClass::space;
    if (leading_space) ++at;
    const LetterClass kind = peek(at);
    size_t last = at;  // where the last character of the run starts
    while (at < text.size() && peek(at) == kind) {
      last = at;
      next_code_point(text, at);
    }
    // The last of several spaces belongs to the following word.
    if (kind == LetterClass::space && at < text.size() && last > begin) at = last;
    f(text.substr(begin, at - begin));
    begin = at;
  }
}

int32_t byte_code(uint8_t byte) { return byte_symbols()[byte]; }

std::string byte_symbol(uint8_t byte) {
  std::string text;
  append_code_point(text, byte_symbols()[byte]);
  return text;
}

std::unique_ptr<TokenizerModel> make_byte_bpe(std::string vocabulary, std::string merges, const std::string& path,
                                              bool add_prefix_space) {
  return std::make_unique<ByteBpe>(std::move(vocabulary), std::move(merges), path, add_prefix_space);
}

}  // namespace cloze

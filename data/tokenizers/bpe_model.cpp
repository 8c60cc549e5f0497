// Byte pair encoding over characters: pairs are merged in the order in which they were learned.
// Source: Sennrich et al. 2016, section 3.2 (arXiv 1508.07909); huggingface/tokenizers, models/bpe.
#include <algorithm>

#include "data/tokenizers/bpe_join.h"
#include "data/tokenizers/models.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

struct Bpe final : PartModel {
  void encode(std::string_view part, std::vector<TokenSpan>& out) const override {
    if (part.empty()) return;
    thread_local std::string spelled;
    if (ignore_merges) {
      spelled = part;
      if (const auto id = vocabulary.find_in_text(spelled); id >= 0) return out.push_back({id, 0, part.size()});
    }
    thread_local std::vector<BpeSymbol> symbols;
    symbols.clear();
    split(part, symbols);
    join_pairs(merges, symbols);
    for (const auto& symbol : symbols)
      if (!symbol.joined) out.push_back({symbol.id, symbol.begin, symbol.end});
  }

  /// Splits a part into characters. Without an unknown token, characters without a vocabulary entry are dropped.
  /// Differs: tokenizers computes the offsets after a dropped character as if it had no bytes.
  void split(std::string_view part, std::vector<BpeSymbol>& symbols) const {
    const auto add = [&](int32_t id, size_t begin, size_t end) { append(symbols, id, begin, end); };
    struct Pending {
      size_t begin = 0, end = 0;
      bool exists = false;
    } pending;  // an unknown span that is not added yet
    const auto add_pending = [&] {
      if (pending.exists) add(unknown, pending.begin, pending.end);
      pending.exists = false;
    };
    thread_local std::string spelled;
    for (size_t at = 0; at < part.size();) {
      const size_t begin = at;
      next_code_point(part, at);
      spelled.clear();
      if (begin > 0) spelled = continuing;
      spelled += part.substr(begin, at - begin);
      if (at == part.size()) spelled += end_of_word;
      if (const auto known = vocabulary.find_in_text(spelled); known >= 0) {
        add_pending();
        add(known, begin, at);
        continue;
      }
      if (has_bytes_of(spelled)) {
        for (const char c : spelled) add(bytes[static_cast<uint8_t>(c)], begin, at);
        continue;
      }
      if (unknown < 0) continue;
      if (pending.exists && fuse_unknown) {
        pending.end = at;
        continue;
      }
      add_pending();
      pending = {begin, at, true};
    }
    add_pending();
    if (!symbols.empty()) symbols.back().after = -1;
  }

  static void append(std::vector<BpeSymbol>& symbols, int32_t id, size_t begin, size_t end) {
    const auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({.id = id,
                       .begin = static_cast<uint32_t>(begin),
                       .end = static_cast<uint32_t>(end),
                       .before = at - 1,
                       .after = at + 1});
  }

  bool has_bytes_of(std::string_view spelled) const {
    return !bytes.empty() &&
           std::all_of(spelled.begin(), spelled.end(), [&](char c) { return bytes[static_cast<uint8_t>(c)] >= 0; });
  }

  BpeMerges merges;
  std::string end_of_word;
  bool fuse_unknown = false, ignore_merges = false;
  std::vector<int32_t> bytes;  // ids of <0x00> ... <0xFF>, -1 for none; empty without byte_fallback
};

/// The two tokens of a merge, written as a list or with a space between.
std::pair<std::string, std::string> tokens_of(const Field& field, const Field::Json& merge, size_t number) {
  const auto refuse = [&] { field.refuse(concat("[", number, "] is not two tokens")); };
  if (merge.is_array()) {
    if (merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) refuse();
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  if (!merge.is_string()) refuse();
  const auto& line = merge.get_ref<const std::string&>();
  const auto space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) refuse();
  return {line.substr(0, space), line.substr(space + 1)};
}

}  // namespace

std::unique_ptr<PartModel> read_bpe(const Field& field, const Spellings& special) {
  auto made = std::make_unique<Bpe>();
  auto& bpe = *made;
  read_vocabulary(field["vocab"], bpe.vocabulary);
  bpe.vocabulary.special = special;
  if (const auto dropout = field["dropout"]; !dropout.is_null() && dropout.number() != 0)
    dropout.refuse(
        concat("is ", dropout.shown(), ": BPE dropout; Cloze tokenizes deterministically, so set it to null"));
  bpe.continuing = field["continuing_subword_prefix"].text_or("");
  bpe.end_of_word = field["end_of_word_suffix"].text_or("");
  bpe.fuse_unknown = field["fuse_unk"].flag(false);
  bpe.ignore_merges = field["ignore_merges"].flag(false);
  if (const auto unknown = field["unk_token"]; !unknown.is_null()) bpe.unknown = bpe.vocabulary.find(unknown.text());
  if (field["byte_fallback"].flag(false))
    for (int byte = 0; byte < 256; ++byte)
      bpe.bytes.push_back(bpe.vocabulary.find(byte_piece(static_cast<uint8_t>(byte))));
  const auto list = field["merges"];
  if (!list.json().is_array()) list.refuse("is not a list of merges");
  list.require_pieces();
  int32_t rank = 0;
  for (size_t i = 0; i < list.json().size(); ++i) {
    const auto& merge = list.json()[i];
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) continue;
    const auto [left, right] = tokens_of(list, merge, i);
    if (!right.starts_with(bpe.continuing))
      list.refuse(concat("[", i, "]: '", right, "' does not start with the prefix '", bpe.continuing, "'"));
    const auto a = bpe.vocabulary.find(left), b = bpe.vocabulary.find(right);
    const auto joined = bpe.vocabulary.find(left + right.substr(bpe.continuing.size()));
    if (a < 0 || b < 0 || joined < 0)
      list.refuse(concat("[", i, "]: '", left, "' and '", right, "' or their concatenation is not in the vocabulary"));
    const bool is_special = special.contains(bpe.vocabulary.pieces[static_cast<size_t>(joined)]);
    if (!is_special) bpe.merges[bpe_pair(a, b)] = {rank, joined};
    ++rank;
  }
  return made;
}

}  // namespace cloze

// Models over whole words: greedy longest-match-first, or the word itself.
// Source: huggingface/tokenizers, models/wordpiece and models/wordlevel.
#include <algorithm>

#include "data/tokenizers/models.h"
#include "data/tokenizers/piece_trie.h"

namespace cloze {

namespace {

struct WordPieces final : PartModel {
  void encode(std::string_view part, std::vector<TokenSpan>& out) const override {
    const auto characters =
        static_cast<size_t>(std::count_if(part.begin(), part.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    if (characters > max_word_length) return add_unknown(part, out);
    const size_t kept = out.size();
    for (size_t begin = 0; begin < part.size();) {
      int32_t piece = -1;
      size_t length = 0;
      const auto& trie = begin > 0 ? inside : first;
      trie.each_prefix(part.substr(begin), [&](size_t bytes, int32_t id) {
        piece = id;
        length = bytes;
      });
      if (piece < 0) {
        out.resize(kept);
        return add_unknown(part, out);
      }
      out.push_back({piece, begin, begin + length});
      begin += length;
    }
  }

  void add_unknown(std::string_view part, std::vector<TokenSpan>& out) const {
    require<DataError>(unknown >= 0, "the tokenizer has no tokens for '", part.substr(0, 60),
                       "', and its vocabulary has no unknown token");
    out.push_back({unknown, 0, part.size()});
  }

  PieceTrie first, inside;  // pieces at the start of a word, and those that continue it, without their prefix
  size_t max_word_length = 100;
};

struct WordLevel final : PartModel {
  void encode(std::string_view part, std::vector<TokenSpan>& out) const override {
    auto id = vocabulary.find_in_text(std::string(part));
    if (id < 0) id = unknown;
    require<DataError>(id >= 0, "the tokenizer does not know the word '", part.substr(0, 60),
                       "', and its vocabulary has no unknown token");
    out.push_back({id, 0, part.size()});
  }
};

}  // namespace

std::unique_ptr<PartModel> read_word_piece(const Field& field, const Spellings& special) {
  auto model = std::make_unique<WordPieces>();
  read_vocabulary(field["vocab"], model->vocabulary);
  model->vocabulary.special = special;
  model->unknown = model->vocabulary.find(field["unk_token"].text_or("[UNK]"));
  model->continuing = field["continuing_subword_prefix"].text_or("##");
  model->max_word_length = static_cast<size_t>(field["max_input_chars_per_word"].count(100, INT64_MAX));
  model->vocabulary.require_searchable(field["vocab"]);
  for (size_t i = 0; i < model->vocabulary.pieces.size(); ++i) {
    const auto& piece = model->vocabulary.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (piece.empty() || special.contains(piece)) continue;
    model->first.add(piece, id);
    if (piece.starts_with(model->continuing)) model->inside.add(piece.substr(model->continuing.size()), id);
  }
  return model;
}

std::unique_ptr<PartModel> read_word_level(const Field& field, const Spellings& special) {
  auto model = std::make_unique<WordLevel>();
  read_vocabulary(field["vocab"], model->vocabulary);
  model->vocabulary.special = special;
  model->unknown = model->vocabulary.find(field["unk_token"].text_or("<unk>"));
  return model;
}

}  // namespace cloze

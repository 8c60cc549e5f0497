#pragma once
// What the tokenizer of a SentencePiece model (sentencepiece.cpp) is made of: what its file says that the library does
// not expose, text before the library sees it, and the model as a tokenizer.json.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/tokenizer_model.h"

namespace cloze {

/// A space within pieces.
inline constexpr std::string_view space_mark = "\u2581";

/// Facts of a SentencePiece file that the library does not expose (sentencepiece_model.proto: ModelProto).
struct SentencePieceFacts {
  std::string normalizer, charsmap;  ///< name and table of its normalisation rules
  bool user_defined = false;         ///< has pieces that are matched wherever they occur
  bool bpe = false, unigram = true;
  bool byte_fallback = false;      ///< characters without a piece become bytes
  bool space_after_words = false;  ///< a space belongs to the preceding word
  bool dummy_prefix = true;        ///< a space is inserted at the start of a text (with the above: at its end)
  bool joins_spaces = true;        ///< spaces at the ends are removed, runs of spaces are collapsed
  std::vector<uint64_t> types;     ///< of the pieces: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
};

/// The normalisation tables of a file's content, also those that a later one replaces: the library reads some of them
/// without checks. None if the content is not made of whole fields.
std::optional<std::vector<std::string_view>> sentencepiece_charsmaps(std::string_view model);

/// What is wrong with a piece of a file's content that the library would read without a check: a NUL in it, a length at
/// which its recursion over bytes ends in a crash, a score that is no number. Empty: nothing.
std::string fault_of_pieces(std::string_view model);

/// The facts of a file's content; the defaults where it is damaged.
SentencePieceFacts sentencepiece_facts(std::string_view model);

/// The text after the preprocessing of the family, as the library gets it. `sources` (or null) receives the offset in
/// `text` of each of its bytes. Source: zihangdai/xlnet, prepro_utils.py, preprocess_text; google-research/albert,
/// tokenization.py, preprocess_text.
std::string prepared(const SentencePieceRules& rules, std::string_view text, std::vector<uint32_t>* sources = nullptr);

/// True for a piece that ends in a digit and a comma.
bool ends_with_digit_comma(std::string_view piece);

/// What determines the tokens of a SentencePiece model.
struct SentencePieceParts {
  const SentencePieceFacts& about;
  const SentencePieceRules& rules;
  const std::vector<std::string>& pieces;
  const std::vector<double>& scores;
  bool by_words;  ///< words are tokenized independently
  int unknown;    ///< id of the unknown token
};

/// The members of tokenizer.json that a model determines. Differs: its `Precompiled` looks up whole grapheme clusters
/// where SentencePiece uses the longest match, so texts with rare sequences of marks may have other ids.
std::string sentencepiece_json(const SentencePieceParts& parts);

}  // namespace cloze

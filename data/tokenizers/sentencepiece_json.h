#pragma once
// A SentencePiece model as a tokenizer.json.
#include <string>
#include <vector>

#include "data/tokenizers/sentencepiece_file.h"
#include "data/tokenizers/tokenizer_model.h"

namespace cloze {

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

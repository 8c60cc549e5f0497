#pragma once
// The `data` section of a config: the prepared text, and how sequences are cut from it.
#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

/// How sequences are cut from the text.
enum class RowPacking { document, full, doc_sentences, full_sentences, segment_pair, sentence_pair };
constexpr auto choices(RowPacking) {
  using enum RowPacking;
  return std::array{
      Choice{document, "document", "from one document, its end padded"},
      Choice{full, "full", "cut from the whole text, a separator between documents"},
      Choice{doc_sentences, "doc_sentences", "whole sentences of one document (RoBERTa's DOC-SENTENCES)"},
      Choice{full_sentences, "full_sentences", "whole sentences of the whole text (RoBERTa's FULL-SENTENCES)"},
      Choice{segment_pair, "segment_pair", "two segments of sentences"},
      Choice{sentence_pair, "sentence_pair", "two sentences"}};
}
inline bool is_pair(RowPacking packing) {
  return packing == RowPacking::segment_pair || packing == RowPacking::sentence_pair;
}

/// A text of a mixture.
struct MixturePart {
  std::string tokens;
  double weight = 0;
};

template <class V>
void describe(V& v, MixturePart& c) {
  v("tokens", c.tokens, "folder made by `cloze prepare` with the tokenizer of data.tokens");
  v("weight", c.weight, "share of the tokens that are read, relative to the weights of the others");
}

/// Prepared tokens, and how sequences are cut from them.
struct DataConfig {
  std::string tokens;
  std::vector<MixturePart> mixture{};
  int64_t max_seq_length = 128;
  RowPacking packing = RowPacking::document;
  double short_seq_prob = 0.1;
  bool drop_last = false;
};

template <class V>
void describe(V& v, DataConfig& c) {
  v("tokens", c.tokens, "folder made by `cloze prepare`");
  v("mixture", c.mixture,
    "texts to train on instead of that of data.tokens, whose held-out text and tokenizer remain: a list of `tokens`, a "
    "folder, and `weight`, its share of the tokens that are read");
  v("max_seq_length", c.max_seq_length, "tokens in a sequence, special ones included", in_range(4, 1 << 28));
  v("packing", c.packing,
    "how sequences are cut from the text; nsp and sop always use pairs, of segments by default; plm takes segment_pair "
    "from the whole text, with half of the second segments from elsewhere in it");
  v("short_seq_prob", c.short_seq_prob,
    "share of the sequences that are cut to a random shorter length; ignored by generative models", in_range(0, 1));
  v("drop_last", c.drop_last,
    "of a task: the last batch of an epoch is left out where it is smaller than the others, as BabyLM's program does");
}

}  // namespace cloze

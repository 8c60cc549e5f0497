#pragma once
// Where text comes from and how sequences are cut from it, as it stands in YAML.
#include <cstdint>
#include <string>

#include "core/config.h"

namespace cloze {

/// Prepared tokens and how sequences are cut from them.
struct DataConfig {
  std::string tokens;
  int64_t max_seq_length = 128;
  std::string packing = "document";
  double short_seq_prob = 0.1;
};

template <class V>
void describe(V& v, DataConfig& c) {
  v("tokens", c.tokens, "folder that `cloze prepare` made");
  v("max_seq_length", c.max_seq_length, "tokens in a sequence, special ones included", in_range(4, 1 << 28));
  v("packing", c.packing,
    "document = from one document, its end padded; full = cut from the whole text, a separator between documents; "
    "doc_sentences, full_sentences = the same "
    "in whole sentences (RoBERTa's formats); segment_pair = two segments of sentences, sentence_pair = two sentences; "
    "nsp and sop always take pairs, of segments if not told otherwise; "
    "plm takes segment_pair from the whole text, and half of its second segments from elsewhere in it",
    one_of({"document", "full", "doc_sentences", "full_sentences", "segment_pair", "sentence_pair"}));
  v("short_seq_prob", c.short_seq_prob,
    "share of the sequences that is cut to a random shorter length; none is where a decoder writes", in_range(0, 1));
}

}  // namespace cloze

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
  v("max_seq_length", c.max_seq_length, "tokens in a sequence, special ones included", at_least(4));
  v("packing", c.packing,
    "sequences without a pair objective: document = from one document, its end padded; full = cut from the whole text, "
    "a separator between documents",
    one_of({"document", "full"}));
  v("short_seq_prob", c.short_seq_prob, "share of the sequences that is cut to a random shorter length", in_range(0, 1));
}

}  // namespace cloze

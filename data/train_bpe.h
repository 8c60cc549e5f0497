#pragma once
// Byte-pair encoding learnt from counts of words: the trainer of byte-level BPE and of WordPiece vocabularies.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// A word as symbols, and how often it occurs.
struct CountedWord {
  std::vector<int32_t> symbols;
  uint64_t count = 0;
};

/// Merges the most frequent pair of symbols until `merged` gives no id or every pair is rarer than `least`; of pairs
/// that are equally frequent the one with the smaller ids goes first. `merged(left, right)` returns the id of both
/// together. Source: Sennrich et al. 2016, algorithm 1 (arXiv 1508.07909).
void learn_merges(std::vector<CountedWord> words, const std::function<std::optional<int32_t>(int32_t, int32_t)>& merged,
                  uint64_t least = 2);

/// vocab.json and merges.txt of a byte-level BPE vocabulary of `size` pieces, RoBERTa's special tokens included.
struct ByteBpeFiles {
  std::string vocabulary, merges;
};
ByteBpeFiles train_byte_bpe(const std::vector<std::string>& sentences, int64_t size);

/// vocab.txt of a WordPiece vocabulary of `size` pieces, BERT's special tokens included; of the characters, the 1,000
/// most frequent. Pairs are chosen by frequency, as the `tokenizers` package does.
std::string train_wordpiece(const std::vector<std::string>& sentences, int64_t size, bool lowercase);

}  // namespace cloze

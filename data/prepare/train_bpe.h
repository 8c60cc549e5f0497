#pragma once
// Byte-pair encoding learned from word counts: the trainer of byte-level BPE and WordPiece vocabularies.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// A word as symbols, and its frequency.
struct CountedWord {
  std::vector<int32_t> symbols;
  uint64_t count = 0;
};

// Each of these throws Interrupted soon after a signal.

/// Merges the most frequent pair of symbols until `merged` returns no id or every pair is rarer than `min_count`; of
/// equally frequent pairs the one with the smaller ids comes first. `merged(left, right)` returns the id of the merged
/// symbol. Source: Sennrich et al. 2016, algorithm 1 (arXiv 1508.07909).
void learn_merges(std::vector<CountedWord> words, const std::function<std::optional<int32_t>(int32_t, int32_t)>& merged,
                  uint64_t min_count = 2);

/// vocab.json and merges.txt of a byte-level BPE vocabulary of `size` tokens, RoBERTa's special tokens included.
struct ByteBpeFiles {
  std::string vocabulary, merges;
};
ByteBpeFiles train_byte_bpe(const std::vector<std::string>& sentences, int64_t size);

/// Which characters of a text a vocabulary has: the most frequent ones that cover a share of it, and at least so many.
struct Alphabet {
  double coverage = 1;
  size_t least = 0;
};

/// vocab.txt of a WordPiece vocabulary of `size` tokens, BERT's special tokens included. Pairs are chosen by frequency,
/// as the `tokenizers` package does; characters that are left out are logged. Throws ConfigError where `size` is
/// below the number of special tokens and characters.
std::string train_wordpiece(const std::vector<std::string>& sentences, int64_t size, bool lowercase,
                            const Alphabet& alphabet = {});

}  // namespace cloze

#pragma once
// The merge loop shared by all BPE models.
// Source: Sennrich et al. 2016, section 3.2 (arXiv 1508.07909); huggingface/tokenizers, models/bpe/word.rs.
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cloze {

/// The merge of a pair of tokens: its rank (lower ranks first) and the id of the result.
struct BpeMerge {
  int32_t rank, id;
};
/// By `bpe_pair` of the token ids.
using BpeMerges = std::unordered_map<uint64_t, BpeMerge>;

inline uint64_t bpe_pair(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

/// A symbol of a word during merging.
struct BpeSymbol {
  int32_t id;
  uint32_t begin, end;    ///< bytes of the word
  int32_t before, after;  ///< neighbours, -1 for none
  bool joined = false;    ///< merged into the previous symbol
};

/// Merges the pair of the lowest rank, leftmost first, until none is left; in O(n log n).
void join_pairs(const BpeMerges& merges, std::vector<BpeSymbol>& symbols);

}  // namespace cloze

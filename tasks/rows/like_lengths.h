#pragma once
// Batches of rows of like length, so that little of what is computed is padding.
#include <cstdint>
#include <span>
#include <vector>

namespace cloze {

/// Rows that stay together, padded to the longest of them.
struct RowsSize {
  int64_t length = 0;  ///< tokens of the longest
  int64_t rows = 1;
};

/// What the forward and the backward pass of a batch cost besides its positions, in positions: reading the weights,
/// adding to their gradients, starting operators. An estimate, which was not tuned on a machine.
inline constexpr int64_t pass_positions = 96;

/// The batches of rows that are sorted by length, ascending, which cost the least: the positions of each, with padding
/// rows times length, and `pass_positions`. Each batch is [the end of the one before, its end); the ends are returned.
std::vector<size_t> ends_of_batches(std::span<const RowsSize> sorted);

/// The tokens of a batch of unpadded rows: more of them are not computed faster, and take more memory.
inline constexpr int64_t unpadded_tokens = 4096;

/// The ends of batches of at most `unpadded_tokens` tokens, or of one entry with more. With padding, as heads see them,
/// a batch has four times as many positions at most.
std::vector<size_t> ends_of_unpadded_batches(std::span<const RowsSize> sorted);

}  // namespace cloze

#pragma once
// The cost of a forward pass. Every part of a network answers for its own multiply-adds, and the network sums them.
//
// Counted are the matrix multiplications that the model is defined by, for the tokens of a row without its padding:
// each weight once for each token that it is applied to, and for each pair of a query and a key that may attend to each
// other the width of all heads for the score, and again for the value. Not counted are lookups, norms, activations, the
// softmax, and what an implementation computes only to mask it. Source: Korthikanti et al. 2022, appendix A (arXiv
// 2205.05198). Differs: masked pairs are not counted, and a head counts where it is applied. So does the last block,
// which Cloze computes for the tokens alone whose states are read; published networks compute it for all
// (RowSizes::is_whole).
#include <algorithm>
#include <vector>

namespace cloze {

/// The sizes of a row that its cost depends on. Those of an expected row may be fractions.
struct RowSizes {
  double count = 1;               ///< rows of these sizes
  double length = 0;              ///< tokens, without padding; of an encoder-decoder: of the encoder
  double target_length = 0;       ///< tokens of the decoder of an encoder-decoder
  double prefix = 0;              ///< of a causal row: leading tokens that all its tokens attend to
  double read = 0;                ///< tokens whose hidden states are used (single stacks)
  double predicted = 0;           ///< tokens that are predicted; of a two-stream model: queries of its query stream
  double boundary_predicted = 0;  ///< tokens that sbo predicts from the boundaries of their spans
  bool is_whole = false;          ///< the last block counts for every token, also where no state of it is read
};

/// The sum of a size over all rows.
inline double total(const std::vector<RowSizes>& rows, double RowSizes::* size) {
  double sum = 0;
  for (const auto& row : rows) sum += row.count * (row.*size);
  return sum;
}

/// Pairs of a token and one of the `reach` tokens before it.
inline double pairs_within(double length, double reach) {
  const double distances = std::max(0.0, std::min(reach, length - 1));
  return distances * (2 * length - distances - 1) / 2;
}

/// Pairs of a query and a key that it attends to: all, or in a causal row those of each token with itself, the tokens
/// before it and the prefix.
inline double attended_pairs(const RowSizes& row, bool causal) {
  if (!causal) return row.length * row.length;
  return row.length + pairs_within(row.length, row.length) + pairs_within(row.prefix, row.prefix);
}

/// Multiply-adds of a forward pass.
struct Cost {
  double trained = 0;  ///< of parts that have a backward pass
  double frozen = 0;   ///< of parts that only run forward
  /// FLOPs of the forward and the backward pass: two for each multiply-add, and two more multiply-adds backward, for
  /// the gradients of inputs and weights. Recomputation by gradient checkpointing is not counted.
  double training_flops() const { return 6 * trained + 2 * frozen; }
};
inline Cost& operator+=(Cost& all, const Cost& some) {
  all.trained += some.trained;
  all.frozen += some.frozen;
  return all;
}

}  // namespace cloze

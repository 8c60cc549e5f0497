#pragma once
// The batches of a training step, and which of its rows each has.
#include <cstdint>
#include <vector>

namespace cloze {

/// The batches of a training step, and its parts: consecutive batches, of which each process has whole ones
/// (docs/scaling.md).
struct StepBatches {
  uint64_t batch_size = 0;
  uint64_t count = 1;
  uint64_t parts = 1;  ///< at most `count`
  uint64_t rows() const { return batch_size * count; }
};

/// The rows of each batch of a step, as numbers of its rows sorted by length: batches have rows of like length, and
/// parts are like each other. Of every `count` rows of like length each batch of one part or another has one, from the
/// shortest on and back by turns; the rows of a part are then sorted into its batches, which follow in a random order,
/// so that some of them are a fair sample.
///
/// rows  in the step; the last one of an epoch may have fewer than the others, and then empty batches
/// key   of the order of the batches of a part
std::vector<std::vector<uint64_t>> dealt_by_length(uint64_t rows, const StepBatches& step, uint64_t key);

}  // namespace cloze

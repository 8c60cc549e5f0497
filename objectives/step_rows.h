#pragma once
// Where the rows of a training step stand in its run, and the random streams that they are made from.
#include <cstdint>

#include "core/random.h"
#include "data/sampling/step_batches.h"

namespace cloze {

/// The point of a run from which its rows are drawn as they are: its start, or that of a phase.
struct RowsStart {
  int64_t step = 0;       ///< optimizer steps before it
  uint64_t sequence = 0;  ///< its first sequence, in the order of these rows
  double epochs = 0;      ///< passes over the text before it
};

/// The number of rows of a training step. Mems are carried along them, and within a step rows are batched by length.
struct StepRows {
  int64_t batch_size = 0;  ///< 0: no training steps, rows are shuffled
  int64_t accumulation = 1;
  int64_t parts = 1;  ///< of a step, which are like each other in length
  int64_t steps = 0;  ///< of the run; 0: unknown
  double epochs = 0;  ///< of the run, where `steps` is 0; 0: unknown too
  RowsStart start{};
  StepBatches batches() const {
    return {static_cast<uint64_t>(batch_size), static_cast<uint64_t>(accumulation), static_cast<uint64_t>(parts)};
  }
};

/// The random streams of rows.
struct RowStreams {
  RowStreams(const Rng& all) : order(all), masking(all) {}
  RowStreams(const Rng& of_order, const Rng& of_masking) : order(of_order), masking(of_masking) {}
  Rng order;    ///< the order of the text, how it is cut and paired
  Rng masking;  ///< which tokens are masked or corrupted, and how
};

}  // namespace cloze

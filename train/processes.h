#pragma once
// The processes that train a run together.
#include <cstdint>

namespace cloze {

/// Which of the processes that train a run together this one is. A step has one batch of each, in the order of their
/// ranks; the files of the run are written by rank 0.
struct Processes {
  int64_t rank = 0;
  int64_t size = 1;
  bool writes() const { return rank == 0; }
};

}  // namespace cloze

#pragma once
// What replaces the masked tokens of replaced token detection.
#include <memory>

#include "analysis/row_inspector.h"
#include "objectives/network.h"

namespace cloze {

/// The replacements of the rows of a run: of a generator that trains, those of the first step, whose weights are known;
/// of all steps the numbers by which it draws. Dropout is that of training.
class Replacements {
 public:
  /// Throws ConfigError for weights of `init.from` that do not fit.
  explicit Replacements(const InspectedRun& run);
  /// Adds them to the rows of a batch, which starts at sequence number `first`.
  void add(const Batch& batch, uint64_t first, std::vector<InspectedExample>& rows);

 private:
  RunConfig config_;
  Rng rng_;
  std::unique_ptr<Network> network_;
};

}  // namespace cloze

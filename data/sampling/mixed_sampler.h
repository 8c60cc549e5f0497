#pragma once
// The sequences of a text that may be a mixture of several.
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "data/sampling/mixture_order.h"
#include "data/sampling/sampler.h"
#include "data/store/token_store.h"

namespace cloze {

/// A shuffled, endless sequence of examples from every text of a store, by its share of the tokens. Each text has the
/// order that it would have alone, and passes through its own epochs; an example has tokens of one text. Of a store
/// that is no mixture, the examples of its Sampler.
class MixedSampler {
 public:
  /// Throws DataError if a text gives no sequence.
  MixedSampler(const TokenStore& store, const SamplerOptions& options, const Rng& rng);
  /// Sequences in an epoch: with as many tokens as all texts together.
  uint64_t size() const { return order_.size(); }
  /// Share of the sequences whose B comes from another document.
  double random_next_rate() const;
  /// Fills `example` (its vectors are reused) with sequence `index`; tokens and documents as the store numbers them,
  /// the epoch that of its text.
  void sample(uint64_t index, Example& example) const;
  /// The sequences at indices [first, first + count) if those of each step (`accumulation` batches of `batch_size`) are
  /// sorted by length before they are split into batches, which then have little padding. A step reads the same
  /// sequences as without sorting.
  std::vector<uint64_t> by_length(uint64_t first, uint64_t count, uint64_t batch_size, uint64_t accumulation) const;

 private:
  struct Part {
    Sampler sampler;
    uint64_t first_document, first_token, first_item;  ///< in the mixture
  };
  std::vector<double> cut(const Rng& rng);
  uint64_t length_of(const Example& example) const;

  TokenStore store_;
  SamplerOptions options_;
  uint64_t order_key_;
  std::vector<Part> parts_{};
  MixtureOrder order_;
};

}  // namespace cloze

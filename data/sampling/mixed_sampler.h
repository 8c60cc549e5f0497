#pragma once
// The sequences of a text that may be a mixture of several, and the order in which these give them: both pure functions
// of a number.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "data/sampling/sampler.h"
#include "data/sampling/step_batches.h"
#include "data/store/token_store.h"

namespace cloze {

/// A row of one text of a mixture.
struct RowOfPart {
  size_t part = 0;
  uint64_t row = 0;  ///< among the rows of this text
};

/// Rows of several texts in fixed shares: after any multiple of 32 rows, each text has given its share of them, to
/// within as many rows as there are texts; which rows of 32 are whose is drawn anew every time. The rows of a text come
/// in their own order, none left out and none twice.
class MixtureOrder {
 public:
  /// rows   of each text in an epoch of the mixture, positive; need not be whole
  /// key    of the random stream
  MixtureOrder(const std::vector<double>& rows, uint64_t key);
  /// Rows of an epoch.
  uint64_t size() const { return size_; }
  /// The fraction of the rows that a text gives.
  double fraction(size_t part) const { return of_all_[part]; }
  /// Row `index` of the endless order.
  RowOfPart at(uint64_t index) const;

 private:
  size_t part_at(uint64_t position) const;
  uint64_t rows_before(uint64_t position, size_t part) const;

  uint64_t key_, size_ = 0;
  std::vector<double> of_all_;
  std::vector<uint64_t> of_rest_;  ///< 2^-32 of the rows that the texts before it leave
};

/// A shuffled, endless sequence of examples from every text of a store, by its fraction of the tokens. Each text has
/// the order that it would have alone, and passes through its own epochs; an example has tokens of one text. Of a store
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
  /// The sequences at indices [first, first + count) if those of each step are sorted by length before they are split
  /// into batches (step_batches.h), which then have little padding. A step reads the same sequences as without sorting.
  std::vector<uint64_t> by_length(uint64_t first, uint64_t count, const StepBatches& step) const;

 private:
  struct Part {
    Sampler sampler;
    uint64_t first_document, first_token, first_item;  ///< in the mixture
  };
  std::vector<double> cut(const Rng& rng);
  uint64_t length_of(const Example& example) const;
  std::vector<uint64_t> step_by_length(uint64_t begin, const StepBatches& step) const;

  TokenStore store_;
  SamplerOptions options_;
  uint64_t order_key_;
  std::vector<Part> parts_{};
  MixtureOrder order_;
};

}  // namespace cloze

#pragma once
// Which tokens make sequence number i: a pure function, so that there is no state to save and any place is reached at once.
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "data/token_store.h"

namespace cloze {

/// Consecutive tokens of a store.
struct Span {
  uint64_t first = 0;
  uint64_t count = 0;
};

/// The raw material of one sequence. `epoch` and `item` name its random streams.
struct Example {
  uint64_t epoch = 0;
  uint64_t item = 0;
  uint64_t document = 0;         ///< of the first token
  std::vector<Span> spans;       ///< one for each document touched
  std::vector<uint64_t> cuts;    ///< packing `sentences`: token offsets inside the span where a sentence starts (not 0)
  uint64_t target_length = 0;    ///< tokens wanted without special ones; at most the sampler's length
};

/// How sequences are cut.
///   document   `length` tokens of one document; its last piece is what remains (pieces under 8 tokens are dropped,
///              unless they are the whole document)
///   full       `length` tokens of the whole text, one place left free between documents for a separator
///   sentences  whole sentences of one document whose first tokens lie within `length` tokens: the material of pairs
///   doc_sentences   as many whole sentences of one document as `length` has room for; a longer sentence stands alone, cut
///   full_sentences  the same across documents, one place left free between them
///   whole      a document, whatever its length: pairs of texts
/// doc_sentences and full_sentences are those of Liu et al. 2019, section 4.2, and fairseq's token_block_dataset (complete_doc, complete).
enum class Packing { document, full, sentences, doc_sentences, full_sentences, whole };

/// A shuffled, endless sequence of examples: every epoch visits every piece once, in another order.
class Sampler {
 public:
  /// `length` counts tokens without special ones. Throws DataError when the store has nothing to give.
  Sampler(const TokenStore& store, Packing packing, uint64_t length, double short_seq_prob, const Rng& rng);
  /// Pieces in an epoch.
  uint64_t size() const;
  /// Fills `example` (its vectors are reused) with sequence `index`; epoch = index / size(). O(log documents).
  void sample(uint64_t index, Example& example) const;
  /// Which sequences take the places [first, first + count), where each `accumulation` batches of `batch_size` make a step: those of a step are sorted
  /// by length before they are cut into batches, which therefore have little padding. A step reads what it would read otherwise.
  std::vector<uint64_t> by_length(uint64_t first, uint64_t count, uint64_t batch_size, uint64_t accumulation) const;

 private:
  TokenStore store_;
  Packing packing_;
  uint64_t length_;
  double short_seq_prob_;
  uint64_t order_key_, short_key_;
  void take_sentences(Example& example) const;
  uint64_t length_of(const Example& example) const;
  std::vector<uint64_t> pieces_before_;   // [documents + 1]; empty when pieces do not follow documents
  std::vector<uint64_t> first_sentence_;  // [pieces + 1], packing in whole sentences only
  uint64_t size_ = 0;
};

}  // namespace cloze

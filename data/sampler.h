#pragma once
// Which tokens make sequence number i: a pure function, so that there is no state to save and any sequence is reached
// at once.
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
  uint64_t document = 0;       ///< of the first token
  std::vector<Span> spans;     ///< one for each document touched
  std::vector<uint64_t> cuts;  ///< packings of pairs: token offsets inside the span where a sentence starts (not 0)
  uint64_t target_length = 0;  ///< tokens wanted without special ones; at most the sampler's length
  bool random_next = false;    ///< packings of pairs: the span is segment A, its B comes from another document
};

/// How the text is cut into pieces. Every token is in one piece. A sentence longer than `length` goes on in the next
/// piece.
///   document        `length` tokens of one document, its last piece what remains, with some from the piece before it
///                   where less than eight remain
///   full            `length` tokens of the whole text, one position left free between documents for a separator
///   sentences       whole sentences of one document until they are `length` tokens or more: the material of pairs
///   two_sentences   two sentences of one document: the same
///   doc_sentences   as many whole sentences of one document as `length` has room for
///   full_sentences  the same across documents, one position left free between them
///   whole           a document, whatever its length: pairs of texts
/// doc_sentences and full_sentences are those of Liu et al. 2019, section 4.2, and fairseq's token_block_dataset
/// (complete_doc, complete).
enum class Packing { document, full, sentences, two_sentences, doc_sentences, full_sentences, whole };

struct SamplerOptions {
  Packing packing = Packing::document;
  uint64_t length = 0;          ///< tokens of a sequence without special ones
  double short_seq_prob = 0;    ///< share of the pieces that are of a random shorter length; what they lack is in the
                                ///< next ones. Not of `whole`
  double random_next_prob = 0;  ///< packings of pairs: share of the sequences whose B comes from another document
};

/// A shuffled, endless sequence of examples: every epoch reads all of the text once, in another order.
///
/// Of the pieces for pairs, some are cut in two between sentences, others in every epoch, and each part is segment A of
/// a sequence of its own. A piece of one sentence is always such an A. So many are cut that random_next_prob of all
/// sequences have a B from elsewhere, or, where single sentences are more than that, none. Source:
/// google-research/bert, create_pretraining_data.py. Differs: there the sentences that a random B displaces begin the
/// next sequence, here they are one by themselves, so that a sequence is a function of its number; there single
/// sentences come on top of the share.
class Sampler {
 public:
  /// Throws DataError when the store has nothing to give.
  Sampler(const TokenStore& store, const SamplerOptions& options, const Rng& rng);
  /// Sequences in an epoch.
  uint64_t size() const { return pieces_.size() + halved_; }
  /// Share of an epoch's sequences whose B comes from another document.
  double random_next_share() const;
  /// Fills `example` (its vectors are reused) with sequence `index`; epoch = index / size(). O(log documents).
  void sample(uint64_t index, Example& example) const;
  /// Which sequences take the positions [first, first + count), where each `accumulation` batches of `batch_size` make
  /// a step: those of a step are sorted by length before they are cut into batches, which therefore have little
  /// padding. A step reads what it would read otherwise.
  std::vector<uint64_t> by_length(uint64_t first, uint64_t count, uint64_t batch_size, uint64_t accumulation) const;

 private:
  struct Piece {
    uint64_t first;           // token
    uint32_t tokens, target;  // of a piece for pairs: tokens wanted of both segments
  };
  std::vector<Piece> cut(uint64_t short_key);
  bool makes_pairs() const {
    return options_.packing == Packing::sentences || options_.packing == Packing::two_sentences;
  }
  uint64_t sentence_end(uint64_t token) const;
  void take_sentences(Example& example, uint64_t half) const;
  uint64_t length_of(const Example& example) const;

  TokenStore store_;
  SamplerOptions options_;
  uint64_t order_key_, half_key_;
  std::vector<Piece> pieces_;  // those of two sentences and more first, where there are pairs
  uint64_t divisible_ = 0;     // so many they are
  uint64_t halved_ = 0;        // so many of them are two sequences
};

}  // namespace cloze

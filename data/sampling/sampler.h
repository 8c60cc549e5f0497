#pragma once
// The tokens of sequence i as a pure function of i, so that there is no state to save and every sequence is directly
// accessible.
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "data/store/token_store.h"

namespace cloze {

/// Consecutive tokens of a store.
struct Span {
  uint64_t first = 0;
  uint64_t count = 0;
};

/// The text of one sequence. `epoch` and `item` identify its random streams.
struct Example {
  uint64_t epoch = 0;  ///< modulo SamplerOptions::versions
  uint64_t item = 0;
  uint64_t document = 0;                       ///< of the first token
  uint64_t first_document = 0, documents = 0;  ///< those of its text, which in a mixture is one of several
  std::vector<Span> spans;                     ///< one for each document touched
  std::vector<uint64_t> cuts;  ///< packings of pairs: token offsets in the span where a sentence starts (not 0)
  uint64_t target_length = 0;  ///< target number of tokens without special ones; at most the sampler's length
  bool random_next = false;    ///< packings of pairs: the span is segment A, its B comes from another document
};

/// How the text is cut into chunks. Every token is in exactly one chunk. A sentence longer than `length` continues in
/// the next chunk.
///   document        `length` tokens of one document; its last chunk is the remainder, with some tokens of the previous
///                   chunk if less than eight remain
///   full            `length` tokens of the whole text, one position reserved between documents for a separator
///   sentences       whole sentences of one document until they have `length` tokens or more: for pairs
///   two_sentences   two sentences of one document: for pairs
///   doc_sentences   as many whole sentences of one document as fit into `length`
///   full_sentences  the same across documents, one position reserved between them
///   whole           a document of any length: pairs of texts
/// doc_sentences and full_sentences follow Liu et al. 2019, section 4.2, and fairseq's token_block_dataset
/// (complete_doc, complete).
enum class Packing { document, full, sentences, two_sentences, doc_sentences, full_sentences, whole };

struct SamplerOptions {
  Packing packing = Packing::document;
  uint64_t length = 0;          ///< tokens of a sequence without special ones
  double short_seq_prob = 0;    ///< share of the chunks that have a random shorter length; the rest is in the next
                                ///< ones. Not with `whole`
  double random_next_prob = 0;  ///< packings of pairs: share of the sequences whose B comes from another document
  uint64_t versions = 0;        ///< epochs after which the random streams of an item return; 0 = never
};

/// A shuffled, endless sequence of examples: every epoch reads the whole text once, in a different order.
///
/// Some chunks for pairs, different ones in every epoch, are split in two between sentences, and each half is segment A
/// of a sequence of its own. A chunk of one sentence is always such an A. The number of splits is chosen so that
/// random_next_prob of all sequences have a B from another document; it is 0 if single sentences exceed that share.
/// Source: google-research/bert, create_pretraining_data.py. Differs: there the sentences that a random B displaces
/// start the next sequence, here they are a sequence of their own, so that a sequence is a function of its index; there
/// single sentences come on top of the share.
class Sampler {
 public:
  /// Throws DataError if the store gives no sequence.
  Sampler(const TokenStore& store, const SamplerOptions& options, const Rng& rng);
  /// Sequences in an epoch.
  uint64_t size() const { return chunks_.size() + halved_; }
  /// Share of the sequences of an epoch whose B comes from another document.
  double random_next_rate() const;
  /// Fills `example` (its vectors are reused) with sequence `index`, of epoch index / size(). O(log documents).
  void sample(uint64_t index, Example& example) const;
  /// A number above every `item`.
  uint64_t items() const { return 2 * chunks_.size(); }

 private:
  struct Chunk {
    uint64_t first;           // token
    uint32_t tokens, target;  // of a chunk for pairs: target number of tokens of both segments
  };
  uint64_t target_length(uint64_t short_key, uint64_t number) const;
  std::vector<Chunk> cut(uint64_t short_key);
  bool makes_pairs() const {
    return options_.packing == Packing::sentences || options_.packing == Packing::two_sentences;
  }
  uint64_t sentence_end(uint64_t token) const;
  void take_sentences(Example& example, uint64_t half) const;

  TokenStore store_;
  SamplerOptions options_;
  uint64_t order_key_, half_key_;
  std::vector<Chunk> chunks_;  // for pairs: those of two sentences or more first
  uint64_t divisible_ = 0;     // number of those
  uint64_t halved_ = 0;        // number of those that are split into two sequences
};

}  // namespace cloze

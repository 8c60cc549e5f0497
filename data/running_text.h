#pragma once
// A whole text without ends: documents one behind the other, read in rows that go on where earlier ones stopped.
#include <cstdint>

#include "data/sampler.h"
#include "data/token_store.h"

namespace cloze {

/// The documents of a store with a separator between two of them, as places 0, 1, ..., forwards or from its end.
/// Source: zihangdai/xlnet, data_utils.py. Differs: the separator is [SEP] (there <eod>, which is predicted like a
/// word).
class RunningText {
 public:
  RunningText(TokenStore store, int64_t separator, bool backward)
      : store_(std::move(store)), separator_(separator), backward_(backward) {}
  /// Tokens and separators.
  uint64_t size() const { return store_.num_tokens() + store_.num_documents() - 1; }
  /// Copies the ids of places [first, first + count) to `out`.
  void read(uint64_t first, uint64_t count, int64_t* out) const;
  /// The sentence that holds a place; a separator is one by itself.
  Span sentence(uint64_t place) const;
  bool backward() const { return backward_; }

 private:
  TokenStore store_;
  int64_t separator_;
  bool backward_;
  /// The document that holds a place of the text read forwards, or that the separator there follows.
  uint64_t document_at(uint64_t place) const;
};

/// Which piece of a running text a sequence is, as a pure function of its number. Without steps, an epoch is all pieces
/// in random order. With steps (rows that carry a memory), the text is cut into one part for each row of a step, and
/// row r of step t + 1 is the piece behind row r of step t; what is left over at the end of the text, or behind the
/// last whole piece, is not read. Source: zihangdai/xlnet, data_utils.py, batchify. Differs: text that is read
/// backwards is reversed before it is cut (there behind); every epoch goes through the text in one order (there files
/// are shuffled between passes).
struct RunningOrder {
  uint64_t pieces = 0;  ///< of the text; with steps, one begins where a memory of the one before it ends
  uint64_t shuffle_key = 0;
  uint64_t batch_size = 0;    ///< rows of a batch; 0 = there are no steps
  uint64_t accumulation = 1;  ///< batches of a step
  bool both_ways = false;     ///< the second half of a batch reads as many parts of the reversed text

  struct Place {
    uint64_t epoch, piece;
    bool continues;  ///< it goes on where the same row of the step before stopped
  };
  Place at(uint64_t sequence) const;
  /// Sequences in an epoch.
  uint64_t size() const { return batch_size == 0 ? pieces : steps() * batch_size * accumulation; }
  /// Parts that the text is cut into, and the pieces of each; 0 for a text that is too short.
  uint64_t parts() const { return batch_size * accumulation / (both_ways ? 2 : 1); }
  uint64_t steps() const { return pieces / parts(); }
};

}  // namespace cloze

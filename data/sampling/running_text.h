#pragma once
// The whole text as one sequence: concatenated documents, read in rows that continue where earlier ones ended.
#include <cstdint>

#include "data/sampling/sampler.h"
#include "data/store/token_store.h"

namespace cloze {

/// The documents of a store with a separator between them, as positions 0, 1, ..., forwards or reversed.
/// Source: zihangdai/xlnet, data_utils.py. Differs: the separator is [SEP] (there <eod>, which is predicted like a
/// word).
class RunningText {
 public:
  RunningText(TokenStore store, int64_t separator, bool backward)
      : store_(std::move(store)), separator_(separator), backward_(backward) {}
  /// Number of tokens and separators.
  uint64_t size() const { return store_.num_tokens() + store_.num_documents() - 1; }
  /// Copies the ids at positions [first, first + count) to `out`.
  void read(uint64_t first, uint64_t count, int64_t* out) const;
  /// The sentence at a position; a separator is a sentence of its own.
  Span sentence(uint64_t position) const;
  bool backward() const { return backward_; }

 private:
  TokenStore store_;
  int64_t separator_;
  bool backward_;
  /// The document at a position of the forward text, or before the separator there.
  uint64_t document_at(uint64_t position) const;
};

/// The chunk of the text that a sequence reads, as a pure function of the sequence index. Without steps, an epoch is
/// all chunks in random order. With steps (rows that carry mems), the text is split into one part for each row of a
/// step, and row r of step t + 1 is the chunk after row r of step t; remainders at the end of the text, or after the
/// last whole chunk, are not read. Source: zihangdai/xlnet, data_utils.py, batchify. Differs: text that is read
/// backwards is reversed before it is split (there after); every epoch reads the text in the same order (there files
/// are shuffled between passes).
struct RunningOrder {
  uint64_t chunks = 0;  ///< of the text; with steps, one starts where the mems of the previous one end
  uint64_t shuffle_key = 0;
  uint64_t batch_size = 0;     ///< rows of a batch; 0 = no steps
  uint64_t accumulation = 1;   ///< batches of a step
  bool bidirectional = false;  ///< the second half of a batch reads the parts of the reversed text

  struct Location {
    uint64_t epoch, chunk;
    bool continues;  ///< it continues the same row of the previous step
  };
  Location at(uint64_t sequence) const;
  /// Sequences in an epoch.
  uint64_t size() const { return batch_size == 0 ? chunks : steps() * batch_size * accumulation; }
  /// Number of parts of the text, and of the chunks of each part; 0 for a text that is too short.
  uint64_t parts() const { return batch_size * accumulation / (bidirectional ? 2 : 1); }
  uint64_t steps() const { return chunks / parts(); }
};

}  // namespace cloze

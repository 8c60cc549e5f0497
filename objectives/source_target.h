#pragma once
// Source and target of a generative objective. The functions that make them from a text are in the *_noise.h of each
// objective; all are deterministic given their arguments and the state of their random stream, which they advance.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/random.h"

namespace cloze {

/// Ids of the encoder's input and of the decoder's target, neither padded nor shifted, without a start token.
struct SourceTarget {
  std::vector<int64_t> source, target;
  std::vector<int64_t> target_offsets{};  ///< of each target id, its offset in the token store, -1 = not from the text;
                                          ///< filled by SourceTargetBuilder
};

/// Appends the end token to source and target.
inline void end_both(SourceTarget& row, int64_t eos) {
  row.source.push_back(eos);
  row.target.push_back(eos);
}

/// The mask token and the range of random ids, which are uniform in [first_random, vocabulary), special ones included.
struct NoiseIds {
  int64_t mask = 0;          ///< [MASK], or the one sentinel of `mass` and `bert_style`
  int64_t vocabulary = 0;    ///< upper bound (exclusive) of random ids
  int64_t first_random = 1;  ///< fairseq 1, T5 3
};

/// Throws ConfigError if random ids have no range.
inline void require_vocabulary(const NoiseIds& ids) {
  require<ConfigError>(ids.vocabulary > 0, "Random ids need a vocabulary, but NoiseIds::vocabulary is ", ids.vocabulary,
                       "; set it to the size of the vocabulary.");
}
inline int64_t random_id(const NoiseIds& ids, Stream& stream) {
  const int64_t first = std::min(ids.first_random, ids.vocabulary - 1);
  return first + static_cast<int64_t>(stream.below(static_cast<uint64_t>(ids.vocabulary - first)));
}

/// Throws ShapeError unless the list `name` has an entry for each token.
inline void require_one_per_token(size_t tokens, size_t entries, const char* name) {
  require<ShapeError>(tokens == entries, "A text of ", tokens, " tokens got ", entries, " entries of `", name,
                      "`; it needs one for each token.");
}

}  // namespace cloze

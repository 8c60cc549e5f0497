#pragma once
// Log-probabilities of single tokens at chosen positions of rows of ids.
#include <vector>

#include "run/run.h"

namespace cloze {

/// One prediction of a network.
struct TokenQuery {
  std::vector<int64_t> ids;      ///< read by the network, or by the encoder of an encoder-decoder
  std::vector<int64_t> decoder;  ///< read by its decoder; else empty
  int64_t position = 0;          ///< of the state that predicts, in `ids` or `decoder`
  int64_t target = 0;            ///< the token whose probability is asked for
};

/// The log-probabilities [N] of queries in nats, in fp64 from fp32 logits. `bidirectional`: a decoder reads its whole
/// row as a prefix, as in masked next-token prediction. Rows of equal length are computed together, equal rows once.
/// Throws ConfigError for a run without a head that predicts tokens, DataError for a row that is too long and for
/// logits that are not finite.
std::vector<double> log_probabilities(const LoadedRun& run, const std::vector<TokenQuery>& queries,
                                      bool bidirectional = false);

}  // namespace cloze

#pragma once
// Log-probabilities of tokens at chosen positions of rows of ids.
#include <vector>

#include "run/run.h"

namespace cloze {

/// What a network reads.
struct TokenIds {
  std::vector<int64_t> ids;      ///< of the network, or of the encoder of an encoder-decoder
  std::vector<int64_t> decoder;  ///< of its decoder; else empty
};

/// A token that a state predicts.
struct PredictedToken {
  int64_t position = 0;  ///< of the state, in `decoder` if there is one, else in `ids`
  int64_t target = 0;    ///< the token whose probability is computed
};

/// A row that a model reads, and the tokens whose log-probabilities are computed.
struct TokenRow {
  TokenIds read;
  std::vector<PredictedToken> predicted;
};

/// The log-probabilities of the predicted tokens of each row in nats, rounded to fp32. `bidirectional`: a decoder reads
/// its whole row as a prefix, as in masked next-token prediction. Rows are read as the Scorer reads them. Throws
/// ConfigError for a run without a head that predicts tokens, DataError for a row that is too long and for logits that
/// are not numbers.
std::vector<std::vector<float>> log_probabilities(const LoadedRun& run, const std::vector<TokenRow>& rows,
                                                  bool bidirectional = false);

/// Throws DataError for a row that is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const std::vector<TokenRow>& rows);

}  // namespace cloze

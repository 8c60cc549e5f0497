#pragma once
// The texts of data.mixture.
#include <cstdint>
#include <string>
#include <vector>

#include "data/config.h"
#include "data/store/token_store.h"

namespace cloze {

/// What the manifest of a text of a mixture says of it.
struct MixtureFacts {
  std::string tokens;   ///< its folder
  double fraction = 0;  ///< of the tokens that are read
  double passes = 0;    ///< over it, in an epoch of the mixture (TokenStore::mixture)
};

/// The texts of data.mixture, by their manifests. Throws DataError for a folder that is no prepared text or has none to
/// train on, for another tokenizer than that of data.tokens, and for one text that is named twice.
std::vector<MixtureFacts> read_mixture(const DataConfig& data);

/// The number of documents of a held-out text that a training text has, too, token for token.
uint64_t shared_documents(const TokenStore& held_out, const TokenStore& train);

/// A sentence about a text that is read more than 40 times, beyond which repeated tokens teach almost nothing; else
/// empty. Source: Muennighoff et al. 2023 (arXiv 2305.16264), figure 1.
std::string repeats_warning(const std::string& tokens, double passes);

}  // namespace cloze

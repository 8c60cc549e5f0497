#pragma once
// Provenance of a run: versions, machine, data.
#include <nlohmann/json.hpp>

#include "data/token_store.h"

namespace cloze {

/// Versions of Cloze, LibTorch and the compiler, the machine, fingerprints of the data and the tokenizer, the
/// command line.
nlohmann::json provenance(const TokenStore& store, const std::string& command_line);

}  // namespace cloze

#pragma once
// Provenance of a run: versions, machine, data.
#include <nlohmann/json.hpp>
#include <string>

#include "data/token_store.h"

namespace cloze {

/// Versions of Cloze, LibTorch and the compiler, the machine, fingerprints of the data and the tokenizer, the
/// command line.
nlohmann::json provenance(const TokenStore& store, const std::string& command_line);

/// The fingerprint of the data in the provenance.json of a run. Throws CheckpointError if the file cannot be read or is
/// damaged.
std::string recorded_data(const std::string& run);

}  // namespace cloze

#pragma once
// Provenance of a run: versions, machine, data.
#include <nlohmann/json.hpp>
#include <string>

#include "data/token_store.h"

namespace cloze {

/// Versions of Cloze (with the git commit, null for a build outside of a checkout), LibTorch and the compiler, the
/// command line and the folder that it ran in, the machine and the threads in use, fingerprints of the data and the
/// tokenizer.
nlohmann::json provenance(const TokenStore& store, const std::string& command_line);

/// The fingerprint of the data in the provenance.json of a run. Throws CheckpointError if the file cannot be read or is
/// damaged.
std::string recorded_data(const std::string& run);

}  // namespace cloze

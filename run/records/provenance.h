#pragma once
// Provenance of a run: versions, machine, data.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "data/store/token_store.h"
#include "run/records/history.h"

namespace cloze {

/// This process: versions of Cloze (with the git commit, null for a build outside of a checkout) and LibTorch, the
/// command line, the machine and the threads in use.
nlohmann::json process_entry(const std::string& command_line);

/// The same with the compiler, the folder that it ran in, and fingerprints of the data, of each text of a mixture, and
/// of the tokenizer.
nlohmann::json provenance(const TokenStore& train, const TokenStore& held_out, const std::string& command_line);

/// The fingerprint of the data of a run: of the text that it is trained on, and of the prepared text whose held-out
/// part it is scored on where that is another, as beside a mixture.
std::string data_fingerprint(const TokenStore& train, const TokenStore& held_out);

/// Adds this process, with what it changed, to the history of a run. Throws Error with the system's reason.
void record_changes(const std::string& run, const std::string& command_line, const Changes& changes);

/// The fingerprint of the data in the provenance.json of a run; empty for an imported one that was not trained since.
/// Throws CheckpointError if the file cannot be read or is damaged.
std::string recorded_data(const std::string& run);

/// Records the data and the tokenizer with which a run goes on from `step`; other data before it stays as a part of
/// `earlier_data`. Throws Error with the system's reason.
void record_data(const std::string& run, const TokenStore& train, const TokenStore& held_out, int64_t step);

/// The step from which a run went on with other data than before; none for the data that it began with.
std::optional<int64_t> data_since(const std::string& run);

}  // namespace cloze

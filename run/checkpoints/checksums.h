#pragma once
// Sizes and checksums of the files of a folder, in a file of their own: the manifest of a checkpoint, the receipt of an
// export.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cloze {

/// Writes `folder`/`name`: `facts` with `files`, the size and the XXH3 of every file of the folder but README.md, which
/// is there to be edited, and `fingerprint`, the XXH3 of all of this. Throws Error with the system's reason.
void write_checksums(const std::string& folder, const std::string& name, nlohmann::json facts);

/// In what a folder differs from what `name` says of it: `state.json is missing`; empty where it does not. A file that
/// would be read and that `name` does not have is a difference, too. Checkpoints of version 1 have no fingerprint.
/// Throws Error with the system's reason for a file that cannot be read.
std::string checksums_fault(const std::string& folder, const std::string& name);

/// The fingerprint of the weights that a run directory gives, of its best checkpoint or else its newest, or a step
/// folder: what was made of them is told by it from what another network at the same path makes. Read from the
/// manifest; empty without one.
std::string weights_fingerprint(const std::string& path);

/// XXH3 of the bytes of a file, 16 hexadecimal digits. Throws CheckpointError with the system's reason.
std::string file_hash(const std::string& path);

}  // namespace cloze

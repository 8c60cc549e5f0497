#pragma once
// Paths that a run recorded, found again where the run was moved or is used from another folder.
#include <string>
#include <vector>

#include "data/config.h"

namespace cloze {

/// Where a path that a run recorded may be now, the likeliest first: the path itself, the same relative to the folder
/// that the run began in (provenance.json), and its last components next to the run and to each folder around it.
std::vector<std::string> likely_paths(const std::string& run, const std::string& recorded);

/// The prepared tokens that a run was trained on, by the fingerprint in its provenance.json: `recorded`, its
/// data.tokens, or the first of its likely paths, or of the folders next to the run and around it, that holds them; a
/// path other than `recorded` is logged. `recorded` where none does, and for runs without a fingerprint. The rows of a
/// fine-tuned run are those in its own folder, whatever they are.
std::string tokens_of_run(const std::string& run, const std::string& recorded);

/// The same of text number `part` of its data.mixture.
std::string mixture_tokens_of_run(const std::string& run, size_t part, const std::string& recorded);

/// The data of a run where they are now: its text, and those of its mixture.
DataConfig data_of_run(const std::string& run, DataConfig recorded);

}  // namespace cloze

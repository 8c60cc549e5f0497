#pragma once
// What a manifest keeps of the files that tokens were made from, and how other files differ from these.
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/spool.h"

namespace cloze {

/// Path and size of each input, with the modification time of a file or the hash of a copied stream.
nlohmann::json facts_of(const std::vector<std::string>& inputs, const std::map<std::string, Spooled>& spooled);

/// Hashes of the content of files, by their paths. Throws DataError for one that cannot be read, Interrupted.
nlohmann::json contents_of(const std::vector<std::string>& files);

/// Facts in which a file has the time of `was` if that alone differs and its content is the one that `contents` has of
/// it. Throws as contents_of.
nlohmann::json with_known_times(nlohmann::json facts, const nlohmann::json& was, const nlohmann::json& contents);

/// How facts that are not equal differ, a file each: `a.txt: modified since`.
std::vector<std::string> changed_files(const nlohmann::json& was, const nlohmann::json& is);

}  // namespace cloze

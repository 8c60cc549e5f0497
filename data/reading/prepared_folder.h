#pragma once
// Which folders are prepared text.
#include <string>

namespace cloze {

/// Whether a folder has a manifest of Cloze, intact or damaged (data/store/manifest.h).
bool is_token_store(const std::string& folder);

}  // namespace cloze

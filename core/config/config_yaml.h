#pragma once
// The text of a config as values with their places. What a YAML parser would take in another sense than its writer, or
// what would cost it time or memory without end, is refused before it is parsed.
#include <cstddef>
#include <string>

#include "core/config/config_tree.h"

namespace cloze {

constexpr size_t max_config_bytes = 1 << 20;
constexpr int max_config_depth = 64;  ///< of values within values

/// Throws ConfigError for a text that is larger than configs are.
void check_config_size(size_t bytes, const std::string& name);

/// The value of a YAML text; `name`: of its file, for messages. Throws ConfigError with the place.
ConfigNode parse_config(const std::string& text, const std::string& name);

}  // namespace cloze

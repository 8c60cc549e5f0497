#pragma once
// Overrides of a config, each of one value.
#include <string>
#include <vector>

namespace cloze {

/// Overrides with a map for their value as one for each value in it, the kind first: `data={packing: false}` as
/// `data.packing=false`. A map whose keys have dots stays whole. Throws ConfigError for a value that is no YAML.
std::vector<std::string> leaf_overrides(const std::vector<std::string>& overrides);

}  // namespace cloze

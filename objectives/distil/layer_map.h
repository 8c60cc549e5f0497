#pragma once
// Which layers of a deeper network those of a shallower one correspond to. Without LibTorch.
#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

/// Words for whole lists of layers, as the only number of a list.
inline constexpr int64_t evenly_spaced = -1, the_last = -2;

/// A list of layers, from 1 on, or one of these words.
inline Rule layer_list() { return or_none({.low = 1, .named = {{"every", {evenly_spaced}}, {"last", {the_last}}}}); }

/// The layer of the deeper network, from 1 on, for each of the shallower one: of L layers for M, `every` has the
/// multiples of L / M (Jiao et al. 2020, section 3.1), `last` the last M. Throws ConfigError, which begins with `key`,
/// for a list of another length or of layers that it does not have, and where M does not divide L.
///
/// owner  of the deeper network, in the message
std::vector<int64_t> mapped_layers(const std::vector<int64_t>& layers, int64_t shallower, int64_t deeper,
                                   const std::string& key, const std::string& owner);

}  // namespace cloze

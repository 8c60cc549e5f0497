#pragma once
// What the options of a network forbid.
#include "core/limits.h"
#include "models/config.h"

namespace cloze {

/// The rules between the options of every family: widths and heads, positions, attention.
void check_limits(const BackboneConfig& model, Limits& limits);

}  // namespace cloze

#pragma once
// What the options of a network forbid.
#include "core/limits.h"
#include "models/stack_parts.h"

namespace cloze {

/// The rules between the options of every family: widths and heads, positions, attention, parts of the stack.
void check_limits(const BackboneConfig& model, const StackParts& parts, Limits& limits);

}  // namespace cloze

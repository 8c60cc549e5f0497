#pragma once
// What the options of a Transformer forbid.
#include "core/limits.h"
#include "models/stack_parts.h"

namespace cloze {

/// The rules between the options of every Transformer: widths and heads, positions, attention, parts of the stack.
void check_limits(const TransformerConfig& model, const StackParts& parts, Limits& limits);

}  // namespace cloze

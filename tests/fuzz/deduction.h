#pragma once
// Deduction guides for aggregates, which clang has of its own since version 17. Included by tests/fuzz/libfuzzer.sh.
#include "core/config/config_rule.h"

namespace cloze {

template <class T>
Choice(T, const char*) -> Choice<T>;
template <class T>
Choice(T, const char*, const char*) -> Choice<T>;

}  // namespace cloze

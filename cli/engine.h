#pragma once
// The part of the program that needs LibTorch, opened when there is work for it: help and mistakes are answered at
// once.
#include "cli/command.h"

namespace cloze {

/// Carries out a command; returns the exit code. Throws what the verb throws.
int run_engine(const Command& command);

}  // namespace cloze

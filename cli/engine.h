#pragma once
// The part of the program that needs LibTorch. It is loaded on demand, so that help and errors appear without delay.
#include "cli/command.h"

namespace cloze {

/// Runs a command; returns the exit code. Throws the errors of the verb.
int run_engine(const Command& command);

}  // namespace cloze

#pragma once
// The processes of a verb that trains one run: started here, by a launcher, or this one alone.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cli/command.h"
#include "cli/verbs.h"

namespace cloze {

/// What is said of them on the command line.
struct ProcessOptions {
  int64_t processes = 0;  ///< to start here; 0: none is asked for
  std::string rendezvous{};
  double timeout = 0;  ///< [s]; 0: not given
};
void add_process_options(CLI::App& verb, ProcessOptions& options);

/// Calls `lead` in the first process of a run, which reads what there is to read, and has each command trained by all
/// of them; the others follow. Returns the exit code. Throws ConfigError for options that do not go together.
int train_by_processes(const ProcessOptions& options, const Globals& globals, const Lead& lead);

/// What the variables of a launcher mean for a verb that is a matter of one process: it is done by the first. Throws
/// ConfigError in the others, but for `study`, whose processes each take what is left to do. Programs that this one
/// starts are alone.
void take_as_one_process(const std::string& verb);

}  // namespace cloze

#pragma once
// Helpers of the engine.
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/command.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/print.h"
#include "core/text.h"
#include "run/checkpoints/chosen_checkpoint.h"
#include "run/run.h"

namespace cloze {

/// As `print_text`, of a report: on a terminal its lines are broken between words, and go on after `indent` columns.
inline void print_report(const std::string& text, size_t indent) {
  const size_t columns = terminal_columns(STDOUT_FILENO, 0);
  print_text(columns > 0 ? wrapped_lines("", text, static_cast<int64_t>(columns), indent) : text);
}

/// Throws ConfigError, which names options, for settings of a search that do not go together; before a run is loaded.
void check_search(const SearchConfig& search);

/// The verb `score`.
int run_score(const ScoreCommand& command);

}  // namespace cloze

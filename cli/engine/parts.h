#pragma once
// What the files of the engine share.
#include <cstdio>
#include <string>

#include "cli/command.h"
#include "core/error.h"
#include "core/file.h"

namespace cloze {

/// `value` with so many digits behind the point.
inline std::string number(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// A text may hold any byte, NUL too. Throws Error where it cannot be written.
inline void print(const std::string& text, bool at_once = false) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && (!at_once || std::fflush(stdout) == 0);
  require<Error>(written, "standard output cannot be written (", system_reason(), "); what stands there is not all");
}

/// Scores one run or several.
int run_evaluate(const EvaluateCommand& command);

}  // namespace cloze

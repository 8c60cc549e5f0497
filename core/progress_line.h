#pragma once
// A line of progress that fits the terminal.
#include <cstddef>
#include <string>
#include <vector>

namespace cloze {

/// How far some work has come.
struct Progress {
  std::vector<std::string> fields;  ///< the most important first
  double share = -1;                ///< of the work that is done, in [0, 1]; below 0: unknown
};

/// All fields in one line, two spaces apart.
std::string whole_line(const Progress& progress);
/// The line for a terminal of `columns` columns: fields that do not fit are dropped from the right, the first one is
/// cut, and a bar follows where there is room for it. The last three columns stay free, so that neither the cursor
/// wraps nor the `^C` of an interrupt.
std::string fitted_line(const Progress& progress, size_t columns);

/// What erases a line of `width` columns at whose end the cursor is, on a terminal that has `columns` columns by now: a
/// window that was made narrower shows it in several rows.
std::string erasure(size_t width, size_t columns);

}  // namespace cloze

#pragma once
// The human-readable log: lines on standard error and, once a run has a folder, in its log file.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace cloze {

/// How far some work has come.
struct Progress {
  std::vector<std::string> fields;  ///< the most important first
  double fraction = -1;             ///< of the work that is done, in [0, 1]; below 0: unknown
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

enum class LogLevel { quiet, normal, verbose };

/// One line, prefixed with its source folder: `[data] 7,201 documents`.
void log_info(std::string_view from, std::string_view text);
/// One line that the reader should act on; shown at every level.
void log_warning(std::string_view from, std::string_view text);
/// One line with the result of a verb; shown at every level.
void log_result(std::string_view from, std::string_view text);
/// One line for `--verbose`.
void log_debug(std::string_view from, std::string_view text);

/// From now on every line on standard error begins with this.
void set_log_prefix(const std::string& prefix);
void set_log_level(LogLevel level);
LogLevel log_level();
/// From now on appends every line, with date and time, to `path`; an empty path stops that.
void set_log_file(const std::string& path);

/// A progress line: rewritten in place on a terminal and fitted to its current width, a plain line if standard error is
/// a file. Files get it only if `plain` is true, so that callers choose how often.
void log_progress(const Progress& progress, bool plain);
void log_progress(std::string_view text, bool plain);
/// Columns of the terminal that `file` is; `otherwise` if it is none.
size_t terminal_columns(int file, size_t otherwise);
/// True if `file` is a terminal and colours are wanted: NO_COLOR is not set (no-color.org).
bool has_colours(int file);
/// Ends a progress line, so that the next output starts on a line of its own.
void end_progress();
/// Removes a progress line that says nothing once its work is done.
void erase_progress();
/// A text as standard error shows it: on a terminal its lines are broken between words.
std::string on_standard_error(const std::string& text);

}  // namespace cloze

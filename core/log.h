#pragma once
// The log that people read: lines on standard error and, once a run has a folder, in its log file.
#include <cstdint>
#include <string>
#include <string_view>

namespace cloze {

enum class LogLevel { quiet, normal, verbose };

/// One line, prefixed with the folder that speaks: `[data] 7,201 documents`.
void log_info(std::string_view from, std::string_view text);
/// One line that the reader should act on; shown at every level.
void log_warning(std::string_view from, std::string_view text);
/// One line for `--verbose`.
void log_debug(std::string_view from, std::string_view text);

void set_log_level(LogLevel level);
LogLevel log_level();
/// Copies every line, with date and time, to `path` (appending) from here on; an empty path stops that.
void set_log_file(const std::string& path);

/// A line that rewrites itself on a terminal and is printed as a plain line when standard error is a file.
/// On a file it is written only when `plain` is true, so that callers choose how often.
void log_progress(std::string_view text, bool plain);
/// Ends a progress line, so that the next output starts on a line of its own.
void end_progress();

/// `1234567` -> `1,234,567`.
std::string thousands(uint64_t n);
/// A number of seconds as `3h12m`, `4m05s`, `12s`.
std::string duration(double seconds);
/// A number of bytes as `12.3 MB`.
std::string bytes(double n);
/// A number with `digits` significant digits; all digits before the point, no exponent, where there are up to 15.
std::string significant(double value, int digits);
/// A number of three significant digits and its SI prefix: `999700` -> `1 M`.
std::string with_prefix(double value);

}  // namespace cloze

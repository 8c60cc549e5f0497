#include "core/log.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "core/file.h"
#include "core/interrupt.h"
#include "core/print.h"
#include "core/text.h"

namespace cloze {

namespace {

constexpr size_t head_width = 10;  // `[data]    `

bool is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  return terminal;
}

struct Log {
  std::mutex mutex;
  LogLevel level = LogLevel::normal;
  size_t drawn = 0;  // columns of the progress line at whose end the cursor is; 0: there is none
  int said = 0;      // what signals had said when it was drawn
  std::string prefix{};
  std::shared_ptr<spdlog::logger> console, file;

  Log() {
    console = std::make_shared<spdlog::logger>("console", std::make_shared<spdlog::sinks::stderr_sink_st>());
    console->set_pattern("%v");
  }
  /// One line; on a terminal it is broken between words.
  void write(const std::string& head, const std::string& text, bool to_console) {
    if (to_console) {
      clear_progress();
      console->info(prefix + (is_terminal() ? broken(head, text) : head + text));
      console->flush();
    }
    if (file) {
      file->info(head + text);
      file->flush();
    }
  }
  /// False also where a signal has spoken after the line, and so begun another.
  bool has_progress() const { return drawn > 0 && said == interrupts().said; }
  void clear_progress() {
    if (has_progress()) std::fputs(erasure(drawn, terminal_columns(STDERR_FILENO, 80)).c_str(), stderr);
    drawn = 0;
  }
  void draw_progress(const Progress& progress) {
    const size_t columns = terminal_columns(STDERR_FILENO, 80);
    const auto before = erasure(has_progress() ? drawn : 0, columns), line = fitted_line(progress, columns);
    said = interrupts().said;
    std::fputs((before + line).c_str(), stderr);
    std::fflush(stderr);
    drawn = width_of(line);
  }

 private:
  static std::string broken(const std::string& head, const std::string& text) {
    const size_t columns = terminal_columns(STDERR_FILENO, 80);
    return wrapped_lines(head, text, static_cast<int64_t>(columns), std::min(head_width, columns / 4));
  }
};

Log& log() {
  static Log* instance = new Log;  // never destroyed: threads may still log while the program exits
  return *instance;
}

/// `[data]    `
std::string prefix_of(std::string_view from) {
  if (from.empty()) return "";
  auto head = "[" + std::string(from) + "]";
  head.resize(std::max(head.size() + 1, head_width), ' ');
  return head;
}

}  // namespace

void log_info(std::string_view from, std::string_view text) {
  const std::lock_guard lock(log().mutex);
  log().write(prefix_of(from), printable(std::string(text)), log().level != LogLevel::quiet);
}

void log_warning(std::string_view from, std::string_view text) {
  const std::lock_guard lock(log().mutex);
  log().write(prefix_of(from), "warning: " + readable(std::string(text)), true);
}

void log_result(std::string_view from, std::string_view text) {
  const std::lock_guard lock(log().mutex);
  log().write(prefix_of(from), printable(std::string(text)), true);
}

void log_debug(std::string_view from, std::string_view text) {
  const std::lock_guard lock(log().mutex);
  if (log().level == LogLevel::verbose) log().write(prefix_of(from), printable(std::string(text)), true);
}

void set_log_prefix(const std::string& prefix) {
  const std::lock_guard lock(log().mutex);
  log().prefix = prefix;
}

void set_log_level(LogLevel level) {
  const std::lock_guard lock(log().mutex);
  log().level = level;
}

LogLevel log_level() {
  const std::lock_guard lock(log().mutex);
  return log().level;
}

void set_log_file(const std::string& path) {
  const std::lock_guard lock(log().mutex);
  log().file.reset();
  if (path.empty()) return;
  if (const int file = open_own(path, O_WRONLY | O_APPEND); file >= 0) close(file);  // through no link
  try {
    log().file = std::make_shared<spdlog::logger>("file", std::make_shared<spdlog::sinks::basic_file_sink_st>(path));
    log().file->set_pattern("%Y-%m-%d %H:%M:%S  %v");
  } catch (const spdlog::spdlog_ex& e) {
    log().write(
        prefix_of("log"),
        "warning: " + printable(path) + " cannot be written (" + e.what() + "); the log goes to the terminal only",
        true);
  }
}

size_t terminal_columns(int file, size_t otherwise) {
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

bool has_colours(int file) {
  const char* unwanted = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool is_plain =
      (unwanted != nullptr && *unwanted != 0) || (terminal != nullptr && std::string(terminal) == "dumb");
  return isatty(file) == 1 && !is_plain;
}

void log_progress(std::string_view text, bool plain) { log_progress(Progress{{std::string(text)}}, plain); }

void log_progress(const Progress& shown, bool plain) {
  auto progress = shown;
  for (auto& field : progress.fields) field = in_one_line(printable(field));
  const std::lock_guard lock(log().mutex);
  const bool quiet = log().level == LogLevel::quiet;
  if (is_terminal() && !quiet) log().draw_progress(progress);
  if (plain) log().write("", whole_line(progress), !is_terminal() && !quiet);
}

void end_progress() {
  const std::lock_guard lock(log().mutex);
  if (log().has_progress()) std::fputc('\n', stderr);
  log().drawn = 0;
}

void erase_progress() {
  const std::lock_guard lock(log().mutex);
  log().clear_progress();
}

std::string on_standard_error(const std::string& text) {
  if (!is_terminal()) return text;
  return wrapped_lines("", text, static_cast<int64_t>(terminal_columns(STDERR_FILENO, 80)), 2);
}

namespace {

constexpr size_t shortest_bar = 10, longest_bar = 30;  // between its brackets
constexpr size_t bar_frame = 4;                        // two spaces and the brackets
constexpr size_t free_columns = 3;                     // for the cursor and a ^C

std::string bar(double fraction, size_t width) {
  const auto full = static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width));
  return "  [" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

}  // namespace

std::string whole_line(const Progress& progress) {
  std::string line;
  for (const auto& field : progress.fields) line += (line.empty() ? "" : "  ") + field;
  return line;
}

std::string fitted_line(const Progress& progress, size_t columns) {
  const size_t room = columns > free_columns ? columns - free_columns : 0;
  auto shown = progress;
  while (shown.fields.size() > 1 && width_of(whole_line(shown)) > room) shown.fields.pop_back();
  const auto line = cut(whole_line(shown), room);
  const size_t left = room - width_of(line);
  const bool has_bar = progress.fraction >= 0 && shown.fields.size() == progress.fields.size();
  if (!has_bar || left < bar_frame + shortest_bar) return line;
  return line + bar(progress.fraction, std::min(left - bar_frame, longest_bar));
}

std::string erasure(size_t width, size_t columns) {
  const size_t rows_above = width > 0 && columns > 0 ? (width - 1) / columns : 0;
  if (rows_above == 0) return "\r\033[K";
  return "\033[" + std::to_string(rows_above) + "A\r\033[J";
}

}  // namespace cloze

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "cli/verbs.h"
#include "core/interrupt.h"
#include "core/spelling.h"
#include "data/reading/line_reader.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

void check_text(const std::string& text) {
  const auto bad = find_invalid_utf8(text);
  require<ConfigError>(bad == std::string::npos, "byte ", bad + 1,
                       " of a text argument is not UTF-8; convert it to UTF-8");
}

void check_is_no_file(const std::string& argument, const std::string& what, const std::string& done,
                      const std::string& otherwise) {
  std::error_code ignored;
  const bool is_file = argument == "-" || std::filesystem::is_regular_file(argument, ignored);
  require<ConfigError>(!is_file, "'", argument, "' ", what, "; the texts of a file are ", done, " by --file ",
                       argument == "-" ? argument : shell_word(argument), otherwise);
}

void check_texts_file(const std::string& argument, const std::string& reader) {
  std::error_code fault;
  if (argument == "-" || std::filesystem::exists(argument, fault)) return;
  if (!fault) fault = std::make_error_code(std::errc::no_such_file_or_directory);
  const bool is_text = argument.find(' ') != std::string::npos;
  const auto named = shortened(argument);
  fail<DataError>(named, ": cannot be read (", fault.message(), "); name a file with one text per line, or - for ",
                  "standard input: echo ", is_text ? shell_word(named) : "TEXT", " | ", reader);
}

void each_line(const std::string& file, const std::function<void(const std::string&)>& use) {
  require<DataError>(file == "-" || !std::filesystem::is_directory(file), file,
                     ": is a folder; name a file with one text per line");
  LineReader lines(file);
  for (std::string_view line; !interrupted && lines.next(line);) {
    const auto bad = find_invalid_utf8(line);
    require<DataError>(bad == line.npos, lines.where(), ": byte ", bad + 1, " is not UTF-8; convert the text to UTF-8");
    use(std::string(line));
  }
  if (interrupted) throw Interrupted("stopped before the end of " + lines.name);
}

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines;
  each_line(file, [&](const std::string& line) { lines.push_back(line); });
  require<DataError>(!lines.empty(), file == "-" ? "standard input" : file, ": is empty; write one text per line");
  return lines;
}

bool texts_are_piped() {
  struct stat about{};
  return fstat(STDIN_FILENO, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISREG(about.st_mode));
}

}  // namespace cloze

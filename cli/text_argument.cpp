#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>

#include "cli/verbs.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/lines.h"
#include "core/shell_word.h"
#include "core/spelling.h"
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
  const bool piped = file == "-";
  const auto name = piped ? std::string("standard input") : file;
  std::ifstream stream;
  if (!piped) {
    require<DataError>(!std::filesystem::is_directory(file), file, ": is a folder; name a file with one text per line");
    stream.open(file);
    require<DataError>(stream.good(), file, ": cannot be read (", system_reason(), ")");
  }
  const InterruptibleReads may_wait;  // for a pipe
  auto& input = piped ? std::cin : static_cast<std::istream&>(stream);
  constexpr size_t longest_line = 16 << 20;  // as in files of text, by LineReader
  uint64_t number = 0;
  std::string line;
  for (auto found = LineRead::none; !interrupted && (found = read_line(input, line, longest_line)) != LineRead::none;) {
    require<DataError>(found == LineRead::whole, name, ":", number + 1,
                       ": the line is longer than 16 MB; break the text into lines");
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (number++ == 0 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a byte order mark
    const auto bad = find_invalid_utf8(line);
    require<DataError>(bad == std::string::npos, name, ":", number, ": byte ", bad + 1,
                       " is not UTF-8; convert the text to UTF-8");
    require<DataError>(line.find('\0') == std::string::npos, name, ":", number,
                       ": a NUL byte: the file looks binary; name a text file (UTF-8)");
    use(line);
  }
  if (interrupted) throw Interrupted("stopped before the end of " + name);
  require<DataError>(!input.bad(), name, ": line ", number + 1, " cannot be read (", system_reason(), ")");
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

#include "cli/help.h"

#include <algorithm>
#include <sstream>

namespace cloze {

namespace {

constexpr size_t help_width = 80;

/// `text` in lines of at most `width` columns, joined by `separator`. A longer word has a line of its own.
std::string wrapped(const std::string& text, size_t width, const std::string& separator) {
  std::istringstream stream(text);
  std::string lines;
  size_t column = 0;
  for (std::string word; stream >> word;) {
    if (column > 0 && column + 1 + word.size() > width) {
      lines += separator;
      column = 0;
    }
    if (column > 0) lines += ' ';
    column += (column > 0) + word.size();
    lines += word;
  }
  return lines;
}

}  // namespace

std::string WrappedHelp::make_option_desc(const CLI::Option* option) const {
  return wrapped(CLI::Formatter::make_option_desc(option), help_width - get_column_width(), "\n");
}

std::string WrappedHelp::make_subcommand(const CLI::App* verb) const {
  const size_t indent = get_column_width();
  auto name = "  " + verb->get_display_name(true);
  name.resize(std::max(name.size() + 1, indent), ' ');
  return name + wrapped(verb->get_description(), help_width - indent, "\n" + std::string(indent, ' ')) + "\n";
}

}  // namespace cloze

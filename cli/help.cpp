#include "cli/help.h"

#include <sstream>
#include <vector>

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

/// A name, and from column `indent` on what it is; below a name that leaves less than two spaces before that column.
std::string described(const std::string& name, const std::string& description, size_t indent) {
  const auto head = "  " + name;
  const auto before = std::string(indent, ' ');
  const auto text = wrapped(description, help_width - indent, "\n" + before);
  if (text.empty()) return head + "\n";
  const bool has_room = head.size() + 2 <= indent;
  return (has_room ? head + before.substr(head.size()) : head + "\n" + before) + text + "\n";
}

}  // namespace

WrappedHelp::WrappedHelp() {
  label("SUBCOMMAND", "VERB");
  label("SUBCOMMANDS", "VERBS");
}

std::string WrappedHelp::make_option(const CLI::Option* option, bool is_positional) const {
  const auto name = make_option_name(option, is_positional) + make_option_opts(option);
  return described(name, make_option_desc(option), get_column_width());
}

std::string WrappedHelp::make_subcommand(const CLI::App* verb) const {
  return described(verb->get_display_name(true), verb->get_description(), get_column_width());
}

std::string WrappedHelp::make_subcommands(const CLI::App* verb, CLI::AppFormatMode mode) const {
  const auto verbs = CLI::Formatter::make_subcommands(verb, mode);
  const auto* program = verb;
  while (program->get_parent() != nullptr) program = program->get_parent();
  if (program == verb) return verbs;
  std::vector<const CLI::Option*> of_every_verb;
  for (const auto* name : {"--quiet", "--verbose"})
    if (const auto* option = program->get_option_no_throw(name)) of_every_verb.push_back(option);
  return make_group("Every verb", false, of_every_verb) + verbs;
}

}  // namespace cloze

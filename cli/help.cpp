#include "cli/help.h"

#include <cctype>
#include <sstream>
#include <utility>
#include <vector>

#include "core/error.h"

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

constexpr size_t most_options = 12;  // that are shown at once

/// The parts of a help: `beam-search`.
std::string part_name(std::string group) {
  for (auto& character : group)
    character = character == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
  return group;
}

/// `evaluate suites`: the verb and those before it.
std::string verb_words(const CLI::App& verb) {
  const auto* outer = verb.get_parent();
  return outer->get_parent() == nullptr ? verb.get_name() : verb_words(*outer) + " " + verb.get_name();
}

/// The groups of a verb that are parts of its help, each with its options; none of a help that is shown at once.
std::vector<std::pair<std::string, std::vector<const CLI::Option*>>> parts_of(const CLI::App& verb) {
  std::vector<std::pair<std::string, std::vector<const CLI::Option*>>> parts;
  if (verb.get_options().size() <= most_options) return parts;
  for (const auto& group : verb.get_groups()) {
    const auto options = verb.get_options(
        [&](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
    if (!options.empty() && !group.empty() && group != "Options") parts.emplace_back(group, options);
  }
  return parts;
}

}  // namespace

WrappedHelp::WrappedHelp(std::string part) : part_(std::move(part)) {
  label("SUBCOMMAND", "VERB");
  label("SUBCOMMANDS", "VERBS");
}

std::string WrappedHelp::make_help(const CLI::App* verb, std::string name, CLI::AppFormatMode mode) const {
  const auto parts = parts_of(*verb);
  for (const auto& [group, options] : parts)
    if (part_name(group) == part_) return make_group(group, false, options).substr(1);
  if (parts.empty() || part_ == "all") return CLI::Formatter::make_help(verb, std::move(name), mode);
  return make_description(verb) + make_usage(verb, name) + make_positionals(verb) + make_first_part(*verb) +
         make_subcommands(verb, mode) + "\n" + make_footer(verb);
}

/// The options that are in no part, and the names of those of each part.
std::string WrappedHelp::make_first_part(const CLI::App& verb) const {
  const auto options = verb.get_options(
      [](const CLI::Option* option) { return option->get_group() == "Options" && option->nonpositional(); });
  auto text = make_group("Options", false, options) +
              concat("\nMore options (cloze ", verb_words(verb), " --help PART, or --help all):\n");
  for (const auto& [group, of_group] : parts_of(verb)) {
    std::string names;
    for (const auto* option : of_group) names += (names.empty() ? "--" : " --") + option->get_lnames().front();
    text += described(part_name(group), names, get_column_width());
  }
  return text;
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

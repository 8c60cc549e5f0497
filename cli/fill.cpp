#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/spelling.h"
#include "data/reading/text_lines.h"

namespace cloze {

namespace {

constexpr std::string_view mask = "[MASK]", other = "<mask>";

/// What a text has instead of a mask: underscores, or a mask in other letter case; empty for none.
std::string mistaken_mask(const std::string& text) {
  for (const auto name : {mask, other}) {
    const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == std::tolower(b); };
    const auto mark = std::search(text.begin(), text.end(), name.begin(), name.end(), same);
    if (mark != text.end()) return {mark, mark + static_cast<std::ptrdiff_t>(name.size())};
  }
  const auto begin = text.find("__");
  if (begin == std::string::npos) return "";
  const auto end = std::min(text.size(), text.find_first_not_of('_', begin));
  return text.substr(begin, end - begin);
}

/// What to do about a text without a mask, one of `arguments` or a line of a file.
std::string remedy_for(const std::string& text, const std::vector<std::string>& arguments) {
  const auto is_meant = [](const std::string& one) { return !mistaken_mask(one).empty(); };
  if (const auto mistaken = mistaken_mask(text); !mistaken.empty())
    return "write [MASK] instead of " + shortened(mistaken);
  if (arguments.size() < 2 || std::none_of(arguments.begin(), arguments.end(), is_meant))
    return "write [MASK] for each blank";
  std::string text_of_all;
  for (const auto& one : arguments) text_of_all += (text_of_all.empty() ? "" : " ") + one;
  return "quote a text of several words: cloze fill RUN " + shell_word(shortened(text_of_all));
}

/// A text whose blanks are written [MASK]; `<mask>` is one too. `where`: `FILE:LINE: ` of a line, else empty.
std::string with_masks(std::string text, const std::string& where, const std::vector<std::string>& arguments) {
  for (size_t at = 0; (at = text.find(other, at)) != std::string::npos; at += mask.size())
    text.replace(at, other.size(), mask);
  const bool has_mask = text.find(mask) != std::string::npos;
  if (!has_mask && where.empty()) check_is_no_file(text, "has no [MASK] to fill", "filled");
  require<ConfigError>(has_mask, where, "'", text, "' has no [MASK] to fill; ", remedy_for(text, arguments));
  return text;
}

/// The texts of the arguments, of --file or of a pipe.
std::vector<std::string> texts_of(std::vector<std::string> arguments, const std::string& file) {
  for (const auto& text : arguments) check_text(text);
  require<ConfigError>(file.empty() || arguments.empty(),
                       "texts are given both as arguments and by --file; use one of them");
  if (!file.empty()) return lines_of(file);
  if (!arguments.empty()) return arguments;
  require<ConfigError>(texts_are_piped(), "no text is given; name one with [MASK] for each blank, or a file by --file");
  return lines_of("-");
}

}  // namespace

void add_fill(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("fill", "fill in the blanks of a text");
  auto command = std::make_shared<FillCommand>();
  auto file = std::make_shared<std::string>();
  verb->add_option("run", command->run, run_help)->required();
  verb->add_option("text", command->texts,
                   "text with [MASK] (or <mask>) for each blank; several texts are filled in turn");
  verb->add_option("--file", *file,
                   "file with one text per line, or - for standard input (default without texts: standard input, if "
                   "piped)");
  add_checkpoint_option(*verb, command->checkpoint);
  verb->add_option("--top", command->top, "candidates per blank; for a generative model, maximum number of texts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_flag("--json", command->json, "print one line of JSON per text");
  verb->footer(
      "Example:\n  cloze fill runs/first \"the mouse [MASK] the cheese\"\n\n"
      "The text comes with the likeliest words filled in: bold on a terminal, in\n"
      "[brackets] elsewhere.\n"
      "Candidates are words; -ing is one that continues the word before the blank.");
  verb->callback([command, file, &globals] {
    check_run_first(command->run, command->texts);
    const bool are_arguments = !command->texts.empty();
    command->texts = texts_of(command->texts, *file);
    const auto name = file->empty() || *file == "-" ? "standard input" : *file;
    std::vector<std::string> texts;
    for (size_t line = 1; const auto& text : command->texts) {
      const auto where = are_arguments ? "" : concat(name, ":", line++, ": ");
      if (!are_arguments && is_blank(text)) continue;
      texts.push_back(with_masks(text, where, are_arguments ? command->texts : std::vector<std::string>{}));
      command->locations.push_back(where);
    }
    require<DataError>(!texts.empty(), name, ": has no text; write one per line, with [MASK] for each blank");
    command->texts = std::move(texts);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze

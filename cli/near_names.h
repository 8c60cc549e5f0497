#pragma once
// What was meant by a word that is no verb, an option that is none, or a value that an option does not have.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cloze {

/// Throws ConfigError if the first word is not a verb, or the second none of `study`, `inspect` or `verify`; CLI11
/// would ignore them next to --help or flags.
void check_verb(const CLI::App& app, int argc, char** argv);
/// A usage error of CLI11, with what was meant by a mistyped word.
std::string usage_words(const CLI::App& app, const CLI::ParseError& error);

/// Throws ConfigError for a value of an option that is none of those known, with the one that was meant.
void check_value(const std::string& option, const std::string& value, const std::vector<std::string>& known);

}  // namespace cloze

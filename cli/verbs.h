#pragma once
// One function for each verb: adds it to the program, with its help, and says what to do when it is called.
#include <CLI/CLI.hpp>
#include <functional>

#include "cli/command.h"

namespace cloze {

/// Options of every verb.
struct Globals {
  std::string program, command_line;
  int exit_code = 0;
};

/// Stands before an argument that begins with a bracket, which CLI11 would take for a list.
inline constexpr char bracket_guard = '\x01';

void add_prepare(CLI::App& app, Globals& globals);
void add_config_verbs(CLI::App& app, Globals& globals);    // config, explain, describe
void add_training_verbs(CLI::App& app, Globals& globals);  // pretrain, benchmark
void add_model_verbs(CLI::App& app, Globals& globals);     // evaluate, fill, import, export, verify
void add_generate(CLI::App& app, Globals& globals);
/// Options of a search, for `generate` and `evaluate`.
void add_search_options(CLI::App& verb, SearchConfig& search, int64_t& batch_size);
/// Throws ConfigError for options of sampling without it, and for those of beams without any.
void check_search_options(const CLI::App& verb, const SearchConfig& search);
/// A text given as a word of the command is UTF-8. Throws ConfigError.
void check_text(const std::string& text);
void add_looking_verbs(CLI::App& app, Globals& globals);  // inspect, tokenize
void add_completion(CLI::App& app, Globals& globals);

/// Every key of every kind as Markdown: sections with a table each, which docs/config.md holds.
std::string reference_of_keys();

/// The config of a verb: file, overrides, every mistake at once.
RunConfig read_config(const std::string& path, const std::vector<std::string>& overrides);
/// The same of a config with which a run directory goes on.
RunConfig read_resumed_config(const std::string& path, const std::vector<std::string>& overrides,
                              const std::string& run);

}  // namespace cloze

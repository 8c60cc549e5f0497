#pragma once
// One function per verb: adds it to the program, with its help and its callback.
#include <CLI/CLI.hpp>
#include <functional>
#include <type_traits>

#include "cli/command.h"
#include "cli/near_names.h"
#include "core/config/config_tree.h"

namespace cloze {

/// Options of every verb.
struct Globals {
  std::string program, command_line;
  std::vector<std::string> arguments{};  ///< those of the command line, after the program
  int exit_code = 0;
};

/// Prefix of an argument that begins with a bracket, which CLI11 would parse as a list. Options get their texts
/// without.
inline constexpr char bracket_guard = '\x01';

// Help texts that several verbs share.
inline constexpr const char* json_help = "print one line of JSON to standard output";
inline constexpr const char* skip_bad_help =
    "leave out lines, items and questions that are bad, which are refused otherwise, and count them";
inline constexpr const char* run_help = "run directory, or one of its step folders";
inline constexpr const char* config_help = "YAML config, or the name of one that ships with the program: bert/tiny";
inline constexpr const char* set_help = "override a config value: KEY=VALUE (repeatable)";

void add_prepare(CLI::App& app, Globals& globals);
void add_tokenize(CLI::App& app, Globals& globals);
void add_inspect(CLI::App& app, Globals& globals);
void add_inspect_task(CLI::App& inspect);  ///< to the verb `inspect`
void add_pretrain(CLI::App& app, Globals& globals);
void add_finetune(CLI::App& app, Globals& globals);
void add_predict(CLI::App& app, Globals& globals);
void add_attribute(CLI::App& app, Globals& globals);
void add_benchmark(CLI::App& app, Globals& globals);
void add_study(CLI::App& app, Globals& globals);
void add_fit(CLI::App& app, Globals& globals);
void add_report(CLI::App& app, Globals& globals);
void add_evaluate(CLI::App& app, Globals& globals);
void add_generate(CLI::App& app, Globals& globals);
void add_fill(CLI::App& app, Globals& globals);
void add_score(CLI::App& app, Globals& globals);
void add_view(CLI::App& app, Globals& globals);
void add_babylm(CLI::App& app, Globals& globals);
void add_import(CLI::App& app, Globals& globals);
void add_export(CLI::App& app, Globals& globals);
void add_verify(CLI::App& app, Globals& globals);
void add_config(CLI::App& app, Globals& globals);
void add_explain(CLI::App& app, Globals& globals);
void add_describe(CLI::App& app, Globals& globals);
void add_completion(CLI::App& app, Globals& globals);

/// An option that takes one of the choices of `T` by its name. `field`: a T, whose value is the default, or one that
/// may be none, which `help` explains.
template <class T, class Field>
CLI::Option* add_choice(CLI::App& verb, const std::string& name, Field& field, const std::string& help) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& one : choices(T{})) {
    list += (names.empty() ? "" : ",") + std::string(one.name);
    names.emplace_back(one.name);
  }
  const auto take = [&field, name, names](const std::string& text) {
    check_value(name.substr(2), text, names);
    field = choice_of<T>(text);
  };
  auto* option = verb.add_option_function<std::string>(name, take, help)->type_name("TEXT:{" + list + "}");
  if constexpr (std::is_same_v<T, Field>) option->default_str(name_of(field));
  return option;
}

/// Puts the options that `add` adds into a group of the help.
template <class F>
void add_group(CLI::App& verb, const std::string& group, const F& add) {
  const auto before = verb.get_options().size();
  add();
  for (size_t i = before; i < verb.get_options().size(); ++i) verb.get_options()[i]->group(group);
}

/// Options of a search, for `generate` and `evaluate`.
void add_search_options(CLI::App& verb, SearchConfig& search, int64_t& batch_size);
/// Throws ConfigError for options of sampling without --do-sample, and for those of beam search without beams.
void check_search_options(const CLI::App& verb, const SearchConfig& search);
/// --checkpoint, for the verbs that open a run.
void add_checkpoint_option(CLI::App& verb, CheckpointChoice& choice);
/// Calls `use` with each line of a file, or of standard input (`-`), as soon as it is read. Throws DataError for a file
/// that is not a text, Interrupted.
void each_line(const std::string& file, const std::function<void(const std::string&)>& use);
/// All lines of a file, as each_line gives them. Throws DataError for an empty one, too.
std::vector<std::string> lines_of(const std::string& file);
/// True if standard input is a pipe or a file.
bool texts_are_piped();
/// Throws ConfigError if a text given as an argument is not UTF-8.
void check_text(const std::string& text);
/// Throws ConfigError if an argument names a file, or standard input, where a text belongs. `what`: what it is or lacks
/// as a text; `done`: what is done with the texts of a file; `otherwise`: what else can be meant, after a comma.
void check_is_no_file(const std::string& argument, const std::string& what, const std::string& done,
                      const std::string& otherwise = "");
/// Throws DataError if an argument is a text, or names no file, where a file of texts belongs. `reader`: the command
/// that reads the file, with - instead of its name.
void check_texts_file(const std::string& argument, const std::string& reader);

/// The names that `cloze config` takes: `run`, `data`, `bert`, `mlm`, ...
std::vector<std::string> config_parts();
/// Reference of all config keys as Markdown, one table per section: the content of docs/config.md.
std::string reference_of_keys();
/// Meaning, allowed values and default of a config key, or of all whose names end in or begin with that of a section;
/// once for each default that kinds of models, objectives or attention have. `name`: elements of lists by a number or
/// N. Empty for none.
std::string documented_keys(const std::string& name);

/// One line for each value of a config: the key, the value, and what set it.
std::string explained_values(const ConfigTree& tree, const RunConfig& config);
/// The config of a verb: file and overrides. Throws ConfigError, which lists all mistakes.
RunConfig read_config(const std::string& path, const std::vector<std::string>& overrides);
/// As read_config, for resuming the run in directory `run`.
RunConfig read_resumed_config(const std::string& path, const std::vector<std::string>& overrides,
                              const std::string& run);

}  // namespace cloze

#pragma once
// What was meant by a word that is no verb, an option that is none, or a folder of another kind.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cloze {

/// A verb of other programs, and what to do instead.
struct ForeignVerb {
  const char* name;
  const char* verb;  ///< the verb that does it
  const char* how;   ///< what to say
};
const std::vector<ForeignVerb>& foreign_verbs();

/// Throws ConfigError if the first word is not a verb, or the second none of `study`, `inspect` or `verify`; CLI11
/// would ignore them next to --help or flags.
void check_verb(const CLI::App& app, int argc, char** argv);
/// A usage error of CLI11, with what was meant by a mistyped word.
std::string usage_words(const CLI::App& app, const CLI::ParseError& error);

/// What a path is, by the files in it.
enum class PathKind { absent, file, run, step, tokens, tokenizer, huggingface, other };
PathKind kind_of_path(const std::string& path);

/// Throws CheckpointError for a path that does not exist, with the nearest run, and for folders of other kinds.
void check_run_path(const std::string& path);
/// Throws ConfigError for a folder or a text where a YAML config belongs, and for a missing file with a similar name.
void check_config_path(const std::string& path);
/// Throws DataError for a run or a model where prepared text belongs.
void check_tokens_path(const std::string& path);
/// Throws DataError for a run or prepared text where files of text belong.
void check_text_path(const std::string& path);
/// The tokenizer of a run, a step folder or prepared text; any other path itself.
std::string tokenizer_of(const std::string& path);
/// Throws ConfigError for a model's name at a hub, from which nothing is downloaded, CheckpointError for a run or
/// prepared text.
void check_import_path(const std::string& path);
/// `; did you mean 'runs/first'?` for the run next to `path`, or in runs/, with the most similar name; or empty.
std::string near_run(const std::string& path);

}  // namespace cloze

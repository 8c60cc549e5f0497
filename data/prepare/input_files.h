#pragma once
// Which files of folders and globs are the text.
#include <string>
#include <vector>

namespace cloze {

/// Removes the files that a pattern names, as `*.json`, `old/*` or `drafts`: their name or path, or that of a folder
/// that they are in. Warns of a pattern that names none.
///
/// given   the inputs that the files stand for; folders above these have no part in it
/// Throws ConfigError where no file is left.
void leave_out(std::vector<std::string>& files, const std::vector<std::string>& inputs,
               const std::vector<std::string>& patterns);

/// Removes the cards of datasets, which the hub has beside their files: README.md with a header in YAML, or where there
/// are tables. A file that was named itself stays.
void leave_out_cards(std::vector<std::string>& files, const std::vector<std::string>& inputs);

/// Warns of files of several splits (`train-00000-of-00002.parquet`, `test/...`), which are read as one text, and of
/// files that are missing by the numbers of the others (`-00003-of-00010`).
void warn_of_parts(const std::vector<std::string>& files, const std::vector<std::string>& inputs);

/// Whether a file has a path that a walk of this folder gives it.
bool is_in(const std::string& file, const std::string& folder);

}  // namespace cloze

#pragma once
// What the files of a text are, each by its name and its beginning, before any of them is read as a whole.
#include <string>
#include <vector>

#include "data/prepare/prepare_options.h"

namespace cloze {

/// A file of a text.
struct SurveyedFile {
  std::string path;
  std::string kind;     ///< in one or two words: `text`, `WikiExtractor`, `CSV`, `PDF`, ...
  std::string fault{};  ///< why it cannot be read, with its name and what to do; empty: it can
  std::string like{};   ///< it is read as prose, and looks like this: `a table`; empty: it looks like prose
};

/// What was found.
struct InputSurvey {
  PrepareOptions options;  ///< without the files that are left out
  std::vector<SurveyedFile> files{};
  std::vector<SurveyedFile> left_out{};
  bool is_whole = false;  ///< a folder, a glob or several files were named
};

/// Looks at every file of `options`, in which folders and globs of `given` are files. A file that was named itself is
/// read as prose where it is text at all; in a folder, what is a table, JSON, HTML or RTF by its name or its first line
/// is not. Throws DataError with all files that cannot be read, unless the options say to skip them; of a single file
/// that was named itself nothing is said here.
InputSurvey survey_of(PrepareOptions options, const PrepareOptions& original);

/// Logs what the files are, which of them are left out, and which look like no prose but are read as prose.
void announce(const InputSurvey& survey);

/// The name of text that is made of a file of these folders: in a folder `converted`, which is none of them.
std::string name_elsewhere(const std::string& file, const std::vector<std::string>& folders);

/// How to name the text of a folder without one of its files, which is no text; empty if the folder was not named.
/// named   `given` with files for its folders
std::string way_out_of_folder(const PrepareOptions& original, const PrepareOptions& named, const std::string& file);

}  // namespace cloze

#pragma once
// What a file looks like that would be read as prose.
#include <string>

namespace cloze {

/// What a file looks like: `a table`, `JSON`, `HTML`, `HTML or XML`, `RTF`; empty for prose.
struct Likeness {
  std::string kind{};
  bool is_certain = false;  ///< by its name or its first line, not by many lines
};

/// The likeness of a file, by its name and its first lines. Throws DataError for one that cannot be read as lines.
Likeness likeness_of(const std::string& file);

/// How such a file is read as what it is.
const char* way_out_of(const std::string& kind);

}  // namespace cloze

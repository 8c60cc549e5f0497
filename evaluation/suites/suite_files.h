#pragma once
// The file or the folder of a suite, which is looked at once: each kind of suite knows its own by what is said here.
#include <optional>
#include <string>
#include <vector>

#include "evaluation/suites/json_lines.h"

namespace cloze {

/// A file of a suite; its first line is read when it is needed, and once.
class SuiteFile {
 public:
  explicit SuiteFile(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  /// The first line that is not blank; empty for a file without any.
  const std::string& first() const;
  /// The first line as an object of JSON lines; null for a file that begins with something else.
  const SuiteLine* object() const;

 private:
  std::string path_;
  mutable std::optional<std::string> first_{};
  mutable std::optional<std::optional<SuiteLine>> object_{};
};

/// What a path holds: a file, or the files of a folder in the order of their names.
struct SuiteFiles {
  SuiteFiles(const std::string& path);  // NOLINT: a path is what all readers take
  std::string path;
  bool is_folder = false;
  std::vector<SuiteFile> lines{};  ///< those of JSON lines, by name: *.jsonl (.gz, .xz)
  std::vector<SuiteFile>
      texts{};  ///< of a folder *.txt and *.tsv (.gz, .xz); else the file, if it is not of JSON lines
  /// The file itself, or in a folder the one of this name, plain or compressed; empty where there is none with the
  /// ending of `name`.
  std::string named(const std::string& name) const;
};

}  // namespace cloze

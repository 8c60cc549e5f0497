#pragma once
// Sentences of files with a word a line: CoNLL's columns and CoNLL-U.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/reading/line_reader.h"
#include "tasks/files/records.h"
#include "tasks/task_config.h"

namespace cloze {

struct TaggedSentence {
  std::vector<std::string> words{}, tags{};
  uint64_t line = 0;  ///< of its first word
};

/// Sentences between empty lines, of which lines of white space are some; `-DOCSTART-`, which marks documents, is no
/// sentence. Nor are comments before a sentence: lines that begin with `#` and have other columns than words, or are
/// `# KEY = VALUE`, or whose last column is no tag that another word has. In CoNLL-U words of several (`3-4`) and those
/// that are not there (`8.1`) are none, too.
class TagFile {
 public:
  /// Columns by position, those of CoNLL-U also by name (`form`, `upos`). An empty one is the usual: the first or
  /// `form`, the last or `upos`. Where tags are not needed, words without a column of them
  /// have none. Throws ConfigError for a column of another name.
  TagFile(const std::string& file, const TaskDataConfig& data, TaskFormat format, bool needs_tags);
  /// Reads the next sentence; false at the end. Throws DataError with the place of a line that lacks a column or is not
  /// UTF-8.
  bool next(TaggedSentence& sentence);
  const std::string& name() const { return lines_.name; }
  /// Lines that were left out as comments so far; those of CoNLL-U are not counted.
  const BadRecords& comments() const { return comments_; }

 private:
  bool add(std::string_view line, TaggedSentence& sentence);
  bool is_comment(std::string_view line);
  bool is_tag_of_words(const std::string& text);
  std::string_view cell(int64_t position) const;
  bool has_tags() const;

  LineReader lines_;
  bool is_conllu_, needs_tags_;
  int64_t word_, tag_;
  std::vector<std::string_view> cells_;
  size_t count_ = 0;  // of the cells of a word
  BadRecords comments_{};
  std::optional<std::set<std::string>> tags_{};  // of words that are no comments, read where one may be
};

/// Tags that mark no whole phrase, among those of one sentence after another.
class TagCheck {
 public:
  explicit TagCheck(TagScheme scheme) : scheme_(scheme) {}
  /// `where`: of the sentence. Throws DataError for a tag that has not the form of its scheme.
  void add(const std::vector<std::string>& tags, const std::string& where);
  /// `12 tags break bio, first FILE:7 ('I-person')`; empty where none does.
  std::string note() const;

 private:
  TagScheme scheme_;
  uint64_t broken_ = 0;
  std::string first_;
};

}  // namespace cloze

#pragma once
// Text files as a stream of documents, in bounded memory.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

/// What the files of a text look like.
enum class TextFormat { automatic, text, lines, jsonl, csv, tsv, arrow, parquet, wiki, pairs };
constexpr auto choices(TextFormat) {
  using enum TextFormat;
  return std::array{Choice{automatic, "auto", "by the name and the first line of each file"},
                    Choice{text, "text", "paragraphs, one a line; empty lines separate documents"},
                    Choice{lines, "lines", "sentences, one a line; empty lines separate documents"},
                    Choice{jsonl, "jsonl", "one JSON object a line"},
                    Choice{csv, "csv", "a table whose first line names its columns"},
                    Choice{tsv, "tsv", "the same with tabs between its cells"},
                    Choice{arrow, "arrow", "a table of Arrow, as the `datasets` library saves it"},
                    Choice{parquet, "parquet", "a table of Parquet"},
                    Choice{wiki, "wiki", "the output of WikiExtractor"},
                    Choice{pairs, "pairs", "a source and a target"}};
}

/// What a document is in the formats text and lines.
enum class DocumentUnit { blank_line, file, line };
constexpr auto choices(DocumentUnit) {
  using enum DocumentUnit;
  return std::array{Choice{blank_line, "blank-line", "the lines up to an empty one"},
                    Choice{file, "file", "a whole file, empty lines left out"}, Choice{line, "line", "every line"}};
}

/// A line of a file.
struct LinePlace {
  std::string file;  ///< empty: no line
  uint64_t number = 0;
};

/// A document: paragraphs, or single sentences if `sentences_given`.
struct RawDocument {
  std::vector<std::string> lines;
  uint64_t bytes = 0;
  uint64_t number = 0;      ///< index among the documents of the reader
  size_t file = 0;          ///< index of its file
  uint64_t tail_bytes = 0;  ///< size of its last sentences that are held out
  void clear() {
    lines.clear();
    bytes = 0;
    tail_bytes = 0;
  }
};

struct ReaderOptions {
  std::vector<std::string> inputs;     ///< files, folders, globs, `-`
  std::vector<std::string> targets{};  ///< pairs in two files: line n of the second belongs to line n of the first
  TextFormat format = TextFormat::automatic;
  std::optional<std::string> field{};          ///< jsonl: the key of the text, which is `text` where none is given;
                                               ///< tables: its column; pairs in JSON lines: two keys, source,target
  std::map<TextFormat, std::string> fields{};  ///< of the files of a format, instead of `field`
  std::string
      columns{};  ///< pairs: NAME,NAME, two columns of a table whose first line names them, or two keys of JSON lines
  bool refuse_invalid_utf8 = false;
  std::string encoding{};  ///< of lines that are not UTF-8, as iconv(1) names it; empty: they are invalid
  bool skip_null = false;  ///< JSON lines whose text is null are left out and counted, not refused
  DocumentUnit document = DocumentUnit::blank_line;
};

/// The key of JSON lines where none is given, and the column of tables.
constexpr const char* default_field = "text";
/// The key, or the column, of the text in files of a format.
std::string field_of(const ReaderOptions& options, TextFormat format);

/// The files of `inputs`, globs expanded and sorted. A folder stands for the files in it and in its folders, without
/// hidden ones and without what Cloze makes: prepared text, runs, and the folders `own`; what is left out is logged. Of
/// a folder of `datasets` they are its tables. Throws DataError for a name without a match.
std::vector<std::string> expand_inputs(const std::vector<std::string>& inputs,
                                       const std::vector<std::string>& own = {});

/// Size of the text of all inputs [bytes]; 0 if it is not known: of compressed files, Arrow, Parquet and streams.
uint64_t input_bytes(const std::vector<std::string>& inputs);

/// The format of a file by its name and its first line with text; a table is one with the column of the text. Throws
/// DataError for one that cannot be read as lines.
TextFormat format_of(const std::string& file, const ReaderOptions& options);

/// Reads documents one after the other. `.gz` and `.xz` are decompressed on the fly. A document over 16 MB is split.
/// Throws DataError with file and line, or byte, for unusable input; ConfigError if the numbers of targets and inputs
/// differ.
class DocumentReader {
 public:
  explicit DocumentReader(const ReaderOptions& options);
  ~DocumentReader();
  /// Reads the next document with text; false at the end.
  bool next(RawDocument& document);
  /// True if lines are sentences (formats `lines` and `pairs`; a pair has two: source and target).
  bool sentences_given() const;
  uint64_t bytes() const;             ///< of text read so far, decompressed
  uint64_t invalid_utf8() const;      ///< replaced so far
  LinePlace first_invalid() const;    ///< the first line with invalid UTF-8, so far
  uint64_t skipped_lines() const;     ///< of JSON, whose texts are not whole Unicode, so far
  LinePlace first_skipped() const;    ///< the first of them
  uint64_t null_rows() const;         ///< of Arrow and Parquet, and of JSON lines, without a text, so far
  LinePlace first_null() const;       ///< the first of them, by the number of the row or line
  uint64_t incomplete_pairs() const;  ///< skipped so far: one side is blank
  uint64_t split_documents() const;   ///< documents that were split because of their length

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cloze

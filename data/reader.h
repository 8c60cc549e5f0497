#pragma once
// Text files as a stream of documents, in bounded memory.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cloze {

/// A document: paragraphs, or single sentences where `sentences_given` says so.
struct RawDocument {
  std::vector<std::string> lines;
  uint64_t bytes = 0;
  uint64_t number = 0;      ///< of all documents of the reader, from 0
  uint64_t tail_bytes = 0;  ///< of its last sentences, which are held out
  void clear() {
    lines.clear();
    bytes = 0;
    tail_bytes = 0;
  }
};

struct ReaderOptions {
  std::vector<std::string> inputs;     ///< files, globs, `-`
  std::vector<std::string> targets{};  ///< pairs in two files: line n of the second belongs to line n of the first
  std::string format = "auto";         ///< auto, text, lines, jsonl, wiki, pairs
  std::string field = "text";          ///< jsonl: the key of the text; pairs in JSON lines: two keys, source,target
  std::string
      columns{};  ///< pairs: NAME,NAME, two columns of a table whose first line names them, or two keys of JSON lines
  bool refuse_invalid_utf8 = false;
};

/// The files that `inputs` name, globs expanded and sorted. Throws DataError for a name that matches nothing.
std::vector<std::string> expand_inputs(const std::vector<std::string>& inputs);

/// Reads documents one after the other. `.gz` and `.xz` are unpacked as they are read. A document over 16 MB goes on as
/// another document. Throws DataError naming file and line, or byte, for what cannot be used; ConfigError for targets
/// that are not as many as inputs.
class DocumentReader {
 public:
  explicit DocumentReader(const ReaderOptions& options);
  ~DocumentReader();
  /// The next document that has text, or false at the end.
  bool next(RawDocument& document);
  /// True when lines are sentences (formats `lines` and `pairs`, where a document has two: source and target).
  bool sentences_given() const;
  uint64_t bytes() const;             ///< of text read so far, unpacked
  uint64_t invalid_utf8() const;      ///< replaced so far
  uint64_t incomplete_pairs() const;  ///< left out so far: one side is blank
  uint64_t split_documents() const;   ///< documents that were too long for one

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cloze

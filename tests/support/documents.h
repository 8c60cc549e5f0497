#pragma once
// The documents of texts, and their preparation.
#include <string>
#include <vector>

#include "data/prepare/prepare.h"
#include "data/reading/reader.h"
#include "tests/support/temp_dir.h"

namespace cloze {

/// The lines of every document of the inputs.
inline std::vector<std::vector<std::string>> read_all(const ReaderOptions& options) {
  DocumentReader reader(options);
  std::vector<std::vector<std::string>> found;
  for (RawDocument document; reader.next(document);) found.push_back(document.lines);
  return found;
}

/// Options that prepare a small text in the folder `out`, by one thread and with nothing held out; `vocabulary`: of its
/// tokenizer, a token a line, or empty for one that is trained.
inline PrepareOptions small_text_options(const TempDir& dir, const std::string& vocabulary = "") {
  PrepareOptions options;
  options.out = dir / "out";
  options.threads = 1;
  options.held_out = 0;
  if (!vocabulary.empty()) options.tokenizer = dir.write("vocab.txt", vocabulary);
  return options;
}

}  // namespace cloze

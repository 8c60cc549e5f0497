#pragma once
// The documents of texts.
#include <string>
#include <vector>

#include "data/reading/reader.h"

namespace cloze {

/// The lines of every document of the inputs.
inline std::vector<std::vector<std::string>> read_all(const ReaderOptions& options) {
  DocumentReader reader(options);
  std::vector<std::vector<std::string>> found;
  for (RawDocument document; reader.next(document);) found.push_back(document.lines);
  return found;
}

}  // namespace cloze

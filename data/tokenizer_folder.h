#pragma once
// What the files of a tokenizer folder say besides the vocabulary: Cloze's own, or those of transformers.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer_impl.h"

namespace cloze {

/// The facts of a tokenizer folder besides its vocabulary.
struct FolderFacts {
  Extras extras;
  std::optional<bool> lowercase;
  SentencePieceRules rules;
  WordPieceRules words;  ///< except for `lowercase`, which is above
  bool add_prefix_space = false;
  std::string fingerprint{};          ///< as recorded in the folder; empty: none
  std::string unknown_class;          ///< the class or model type of an unknown family
  std::vector<std::string> warnings;  ///< about options that are ignored
};

/// The facts of a folder; without any of its files, nothing is known of the model. Throws DataError for a damaged file.
FolderFacts read_tokenizer_facts(const std::string& folder);

/// The content of a file. Throws DataError where it cannot be read.
std::string read_tokenizer_file(const std::string& path);

}  // namespace cloze

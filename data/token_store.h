#pragma once
// Prepared text: documents > sentences > ids in memory-mapped, checksummed files.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace cloze {

/// One split of a prepared folder. Tokens and sentences are numbered through all files, in the order of the text;
/// every document has at least one sentence, every sentence at least one token. Safe to read from many threads.
class TokenStore {
 public:
  /// Opens `folder` (as `prepare` made it), split `train` or `valid`. Checks the manifest, the size and the header of
  /// each file; throws DataError with file and offset. `verify()` also reads every byte.
  TokenStore(const std::string& folder, const std::string& split);

  uint64_t num_documents() const;
  uint64_t num_sentences() const;
  uint64_t num_tokens() const;
  /// First sentence of a document; `document` in [0, num_documents()], the last one being the end.
  uint64_t first_sentence(uint64_t document) const;
  /// First token of a sentence; `sentence` in [0, num_sentences()], the last one being the end.
  uint64_t first_token(uint64_t sentence) const;
  /// First token of a document; `document` in [0, num_documents()].
  uint64_t document_token(uint64_t document) const;
  /// The document that holds a token.
  uint64_t document_of(uint64_t token) const;
  /// The sentence that holds a token.
  uint64_t sentence_of(uint64_t token) const;
  /// Copies ids [first, first + count) to `out`.
  void read(uint64_t first, uint64_t count, int64_t* out) const;

  /// Bytes of the source text that a token stands for, with the white space before it; those of a document add up to
  /// its text. None for tokens that were prepared without them: of the training split, and of earlier versions. Throws
  /// DataError for a damaged file.
  std::optional<uint64_t> source_bytes(uint64_t token) const;

  /// How often each id occurs in the training split, from the manifest; the unigram baseline.
  const std::vector<uint64_t>& train_counts() const;
  /// The tokenizer that made it (kept in the folder).
  const Tokenizer& tokenizer() const;
  /// Sixteen hex digits over tokenizer, options and every file's checksum: what a run records as its data.
  const std::string& fingerprint() const;
  /// Reads every byte against the checksums. Throws DataError naming the file.
  void verify() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cloze

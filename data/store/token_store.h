#pragma once
// Prepared text: documents > sentences > ids in memory-mapped, checksummed files.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/store/shard.h"
#include "data/tokenizer.h"

namespace cloze {

struct TextPart;

/// One split of a prepared folder. Tokens and sentences are numbered across all files, in the order of the text; every
/// document has at least one sentence, every sentence at least one token. Safe to read from many threads.
class TokenStore {
 public:
  /// Opens `folder` (as `prepare` made it), split `train` or `valid`. Checks the manifest, the size and the header of
  /// each file, and, when a token of a file is first read, that whole file; throws DataError with the file.
  TokenStore(const std::string& folder, const std::string& split);
  /// Texts of one tokenizer as one, numbered in the order of `parts`, whose shares need not add up to 1; of one part
  /// its text. `train_counts` and `train_words` are those of an epoch, which is as long as all parts together and reads
  /// each of them TextPart::passes times.
  static TokenStore mixture(std::vector<TextPart> parts);

  /// The texts of a mixture, where they stand in it; of another store itself.
  std::vector<TextPart> parts() const;
  /// The folder that it was opened from; of a mixture all of them, listed.
  const std::string& folder() const;
  uint64_t num_documents() const;
  uint64_t num_sentences() const;
  uint64_t num_tokens() const;
  /// First sentence of a document; `document` in [0, num_documents()], where num_documents() gives the end.
  uint64_t first_sentence(uint64_t document) const;
  /// First token of a sentence; `sentence` in [0, num_sentences()], where num_sentences() gives the end.
  uint64_t first_token(uint64_t sentence) const;
  /// First token of a document; `document` in [0, num_documents()].
  uint64_t document_token(uint64_t document) const;
  /// The document of a token.
  uint64_t document_of(uint64_t token) const;
  /// The sentence of a token.
  uint64_t sentence_of(uint64_t token) const;
  /// Copies ids [first, first + count) to `out`. Throws DataError for a damaged file.
  void read(uint64_t first, uint64_t count, int64_t* out) const;

  /// Number of bytes of the source text that a token covers, with the white space before it; those of a document add up
  /// to its text. nullopt for tokens prepared without them: those of the training split, and of earlier versions.
  /// Throws DataError for a damaged file.
  std::optional<uint64_t> source_bytes(uint64_t token) const;

  /// Of which source the documents of a held-out text are, or of one that is scored, in their order. Empty where all
  /// are of one, or it is not known.
  std::vector<SourceSpan> sources() const;

  /// Frequency of each id of the tokenizer in the training split, from the manifest; the unigram baseline.
  const std::vector<uint64_t>& train_counts() const;
  /// Words of the training text, separated by white space; none in folders prepared without the count.
  std::optional<uint64_t> train_words() const;
  /// The tokenizer of the tokens (stored in the folder).
  const Tokenizer& tokenizer() const;
  /// The same tokens with a tokenizer that gives texts the same ids, and may have more tokens after them. Throws
  /// DataError for another tokenizer.
  TokenStore with_tokenizer(const Tokenizer& tokenizer) const;
  /// Sixteen hex digits over tokenizer, options and every file's checksum: the data fingerprint of a run.
  const std::string& fingerprint() const;
  /// The same over the tokenizer and the files of this split alone: SplitText::fingerprint.
  std::string split_fingerprint() const;
  /// Throws DataError if a file has become shorter since it was opened: what was read may then be zeros.
  void require_intact() const;
  /// Verifies the checksum of every file, before a token of it is read. Throws DataError naming the file.
  void verify() const;

 private:
  struct Impl;
  explicit TokenStore(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

/// Adds the counts of a text of a mixture to those of all, as often as an epoch reads it: `sum` has as many.
void add_counts(const std::vector<uint64_t>& counts, double passes, std::vector<uint64_t>& sum);

/// A text of a mixture.
struct TextPart {
  TokenStore text;
  double fraction = 1;                           ///< of the tokens that are read
  double passes = 1;                             ///< over this text, in an epoch of the mixture
  uint64_t first_document = 0, first_token = 0;  ///< in the mixture
};

}  // namespace cloze

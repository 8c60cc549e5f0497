#pragma once
// What becomes of each document: training text, held out, or removed as a copy.
#include <cstdint>
#include <string>
#include <vector>

#include "data/prepare.h"

namespace cloze {

enum class Fate : uint8_t { train, valid, removed };

/// A file as it was when its documents were compared.
struct ComparedFile {
  std::string path;
  int64_t bytes = 0, seconds = 0, nanoseconds = 0;  ///< its length, and when it was last changed
};

/// Fates by the number of a document in its text.
struct Split {
  std::vector<ComparedFile> files{};      ///< of the text and of held-out text of its own
  std::vector<Fate> documents{};          ///< of the text
  std::vector<Fate> valid_documents{};    ///< of held-out text of its own
  uint64_t tail_document = ~uint64_t{0};  ///< its last sentences are held out; none: the largest number
  uint64_t tail_bytes = 0;                ///< so many of them
  uint64_t copies = 0, near_copies = 0;   ///< documents like one before them
  uint64_t leaked = 0;                    ///< held-out documents that the training text has too, or nearly
  uint64_t removed = 0, removed_valid = 0;
  /// Equal splits have one.
  uint64_t fingerprint() const;
  /// Throws DataError for the first file that has changed since: its documents have other numbers, so that fates are
  /// not theirs.
  void require_unchanged() const;
};

/// Reads the text once. Copies and near copies (NearCopies) of a document share its fate, so that none is on both
/// sides; with `options.dedup` they are removed, of training text also those of held-out text. Without held-out text of
/// its own, documents are held out in the order of their hashes until options.held_out of the text's bytes are; one
/// that would be too much is passed over. Where that leaves half of the share open, the smallest document closes it if
/// then no more than twice the share, or a twentieth of the text, is held out; else the last sentences of the longest
/// one that has no near copy do. In a text without such a document near copies, and then copies too, part from each
/// other and count as leaked. `folder`: for a file of 136 bytes for each document, removed again. Throws DataError for
/// text that cannot be used, and for a file that changes meanwhile.
Split split_text(const PrepareOptions& options, const std::string& folder);

}  // namespace cloze

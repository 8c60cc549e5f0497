#pragma once
// The split of documents into training text, held-out text and removed duplicates.
#include <cstdint>
#include <string>
#include <vector>

#include "data/prepare/prepare.h"

namespace cloze {

enum class Assignment : uint8_t { train, valid, removed };

/// The state of a file when its documents were compared.
struct ComparedFile {
  std::string path;
  int64_t bytes = 0, seconds = 0, nanoseconds = 0;  ///< its size and modification time
};

/// Assignments by the index of a document in its text.
struct Split {
  std::vector<ComparedFile> files{};          ///< of the text and of the separate held-out text
  std::vector<Assignment> documents{};        ///< of the text
  std::vector<Assignment> valid_documents{};  ///< of the separate held-out text
  uint64_t tail_document = ~uint64_t{0};      ///< its last sentences are held out; the maximum value: none
  uint64_t tail_bytes = 0;                    ///< size of those sentences
  uint64_t copies = 0, near_duplicates = 0;   ///< documents that repeat an earlier one
  uint64_t leaked = 0;                        ///< held-out documents with a (near-)duplicate in the training text
  uint64_t removed = 0, removed_valid = 0;
  bool has_visible_text = false;  ///< of a document of the text
  /// Equal for equal splits.
  uint64_t fingerprint() const;
  /// Throws DataError for the first file that has changed since: the indices of its documents are no longer valid.
  void require_unchanged() const;
};

/// Reads the text once. Duplicates and near-duplicates (NearDuplicates) of a document share its assignment, so that
/// none is on both sides; with `options.dedup` they are removed, from the training text also those of held-out text.
/// Without separate held-out text, documents are held out in the order of their hashes until they make up
/// options.held_out of the text's bytes; a document that would exceed the share is skipped. If that reaches less than
/// half of the share, the smallest document is added, provided that no more than twice the share, or a twentieth of the
/// text, is then held out; else the last sentences of the longest document without near-duplicates are. In a text
/// without such a document near-duplicates, and then duplicates too, are separated and count as leaked. `folder`: for a
/// temporary file of 136 bytes for each document. Throws DataError for unusable text, and for a file that changes
/// meanwhile.
Split split_text(const PrepareOptions& options, const std::string& folder);

}  // namespace cloze

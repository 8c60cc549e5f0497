#pragma once
// Turns text files into a tokenizer and a token store.
#include <cstdint>

#include "data/prepare/prepare_options.h"

namespace cloze {

struct Split;

struct PrepareReport {
  uint64_t files = 0, bytes = 0, documents = 0, sentences = 0, tokens = 0;
  uint64_t words = 0;  ///< of the training text, between white space
  uint64_t valid_documents = 0, valid_tokens = 0;
  uint64_t unknown_tokens = 0, invalid_utf8 = 0, incomplete_pairs = 0;
  uint64_t duplicate_documents = 0;  ///< equal to an earlier document of the text
  uint64_t near_duplicates = 0;      ///< similar to an earlier document
  uint64_t leaked_documents = 0;     ///< held-out documents with a (near-)duplicate in the training text
  uint64_t removed_documents = 0, removed_valid_documents = 0;  ///< by `dedup`
  uint64_t skipped_lines = 0;                                   ///< of JSON, whose texts are not whole Unicode
  uint64_t null_rows = 0;                                       ///< of Arrow and Parquet, without a text
  LinePlace first_invalid;                                      ///< the first line with invalid UTF-8
  LinePlace first_skipped;                                      ///< the first skipped line
  LinePlace first_null;                                         ///< the first row without a text
  std::vector<SourceSpan> held_out{};                           ///< documents of each source; empty for text of one
  double seconds = 0;
  bool reused = false;  ///< the folder existed, complete and made with the same options
};

/// Creates `options.out`, completely or not at all. Bounded memory, all cores; an interrupted run is resumed. Throws
/// ConfigError for contradictory options, DataError for unusable text.
PrepareReport prepare(const PrepareOptions& options);

/// Warns of a text that a model would learn badly from: with duplicates, another held-out share than was asked for,
/// invalid bytes, or tokens that do not fit it.
void warn_of_text(const PrepareOptions& options, const Split& split, const PrepareReport& report);

}  // namespace cloze

#pragma once
// Turns text files into a tokenizer and a token store.
#include <cstdint>
#include <string>
#include <vector>

#include "data/reader.h"
#include "data/shard.h"

namespace cloze {

struct PrepareOptions {
  std::vector<std::string> inputs;        ///< files, globs, `-` for standard input; .gz and .xz are read directly
  std::vector<std::string> valid_inputs;  ///< separate held-out text; empty: documents are held out by `held_out`
  std::vector<std::string> targets{},
      valid_targets{};  ///< format pairs in two files: the other side of `inputs` and of `valid_inputs`
  std::string out;      ///< the output folder
  std::string format =
      "auto";  ///< auto, text, lines (one sentence a line), jsonl, wiki (WikiExtractor), pairs (source and target)
  std::string field = "text";  ///< jsonl: the key of the text; pairs in JSON lines: two keys, source,target
  std::string
      columns;  ///< pairs: NAME,NAME, two columns of a table whose first line names them, or two keys of JSON lines
  std::string tokenizer;               ///< an existing tokenizer; empty: one is trained
  std::string train_kind = "unigram";  ///< unigram, bpe, wordpiece or byte_bpe
  int64_t vocab_size = 8000;
  bool lowercase = false;  ///< of a trained tokenizer
  bool special_tokens =
      false;  ///< add missing [PAD], [CLS], [SEP], [MASK] to the tokenizer of a model; other tokenizers always get them
  int64_t sentinels = 0;   ///< number of <extra_id_0> ... for span corruption
  double held_out = 0.01;  ///< share of the text, in documents chosen by a hash of their content
  bool dedup = false;  ///< remove duplicates and near-duplicates, and training documents that duplicate held-out ones
  std::string invalid_utf8 = "replace";  ///< replace (and count) or refuse
  int64_t threads = 0;                   ///< 0: one for each core
  uint64_t seed = 1;
  bool for_scoring = false;  ///< the text is scored, not trained on: source bytes are counted in every split, not only
                             ///< in the held-out one, and duplicates cause no warning
  bool force = false;        ///< overwrite an existing folder
  uint64_t file_tokens = shard_tokens;  ///< tokens after which a file is closed; a resumed run keeps closed files
};

struct PrepareReport {
  uint64_t files = 0, bytes = 0, documents = 0, sentences = 0, tokens = 0;
  uint64_t words = 0;  ///< of the training text, between white space
  uint64_t valid_documents = 0, valid_tokens = 0;
  uint64_t unknown_tokens = 0, invalid_utf8 = 0, incomplete_pairs = 0;
  uint64_t duplicate_documents = 0;  ///< equal to an earlier document of the text
  uint64_t near_duplicates = 0;      ///< similar to an earlier document
  uint64_t leaked_documents = 0;     ///< held-out documents with a (near-)duplicate in the training text
  uint64_t removed_documents = 0, removed_valid_documents = 0;  ///< by `dedup`
  double seconds = 0;
  bool reused = false;  ///< the folder existed, complete and made with the same options
};

/// How the text of `options` is read.
ReaderOptions reader_of(const PrepareOptions& options, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& targets);

/// Creates `options.out`, completely or not at all. Bounded memory, all cores; an interrupted run is resumed. Throws
/// ConfigError for contradictory options, DataError for unusable text.
PrepareReport prepare(const PrepareOptions& options);

}  // namespace cloze

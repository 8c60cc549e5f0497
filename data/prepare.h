#pragma once
// Text files to a tokenizer and a token store.
#include <cstdint>
#include <string>
#include <vector>

#include "data/reader.h"
#include "data/shard.h"

namespace cloze {

struct PrepareOptions {
  std::vector<std::string> inputs;        ///< files, globs, `-` for standard input; .gz and .xz are read directly
  std::vector<std::string> valid_inputs;  ///< held-out text of its own; empty: documents are held out by `held_out`
  std::vector<std::string> targets{},
      valid_targets{};  ///< format pairs in two files: the other side of `inputs` and of `valid_inputs`
  std::string out;      ///< the folder to make
  std::string format =
      "auto";  ///< auto, text, lines (one sentence a line), jsonl, wiki (WikiExtractor), pairs (source and target)
  std::string field = "text";  ///< jsonl: the key that holds the text; pairs in JSON lines: two, source,target
  std::string
      columns;  ///< pairs: NAME,NAME, two columns of a table whose first line names them, or two keys of JSON lines
  std::string tokenizer;               ///< an existing tokenizer; empty: one is trained
  std::string train_kind = "unigram";  ///< unigram, bpe, wordpiece or byte_bpe
  int64_t vocab_size = 8000;
  bool lowercase = false;  ///< of a tokenizer that is trained
  bool special_tokens =
      false;  ///< a model's own tokenizer gets [PAD], [CLS], [SEP], [MASK] where it lacks them; others always do
  int64_t sentinels = 0;   ///< <extra_id_0> ... that span corruption writes
  double held_out = 0.01;  ///< share of the text, in documents that a hash of their content chooses
  bool dedup = false;  ///< leave out copies and near copies of documents, and of training text those of held-out text
  std::string invalid_utf8 = "replace";  ///< replace (and count) or refuse
  int64_t threads = 0;                   ///< 0: one for each core
  uint64_t seed = 1;
  bool for_scoring = false;  ///< the text is scored and not trained on: the bytes of its source are counted in every
                             ///< split, not in the held-out one alone, and copies are not warned of
  bool force = false;        ///< make it again although it is there
  uint64_t file_tokens =
      shard_tokens;  ///< tokens after which a file is closed; what is in closed files is not made again
};

struct PrepareReport {
  uint64_t files = 0, bytes = 0, documents = 0, sentences = 0, tokens = 0;
  uint64_t valid_documents = 0, valid_tokens = 0;
  uint64_t unknown_tokens = 0, invalid_utf8 = 0, incomplete_pairs = 0;
  uint64_t duplicate_documents = 0;  ///< like one before them in the text
  uint64_t near_duplicates = 0;      ///< nearly so
  uint64_t leaked_documents = 0;     ///< held-out documents that the training text has too, or nearly
  uint64_t removed_documents = 0, removed_valid_documents = 0;  ///< by `dedup`
  double seconds = 0;
  bool reused = false;  ///< the folder was there, complete, and made by the same options
};

/// How the text of `options` is read.
ReaderOptions reader_of(const PrepareOptions& options, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& targets);

/// Makes `options.out`, complete or not at all. Bounded memory, all cores; a run that was cut off goes on where it
/// stopped. Throws ConfigError for options that contradict, DataError for text that cannot be used.
PrepareReport prepare(const PrepareOptions& options);

}  // namespace cloze

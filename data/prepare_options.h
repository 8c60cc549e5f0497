#pragma once
// What text becomes a token store, and how.
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/reader.h"
#include "data/shard.h"
#include "data/spool.h"

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

/// Throws ConfigError for values out of range, and for options that contradict each other.
void check_options(const PrepareOptions& options);

/// How the text of `options` is read.
ReaderOptions reader_of(const PrepareOptions& options, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& targets);

/// The options and inputs of a folder: equal ones give equal tokens. `spooled`: by the names of the inputs.
nlohmann::json made_from(const PrepareOptions& options, const std::map<std::string, Spooled>& spooled);

}  // namespace cloze

#pragma once
// What text becomes a token store, and how.
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config_rule.h"
#include "core/error.h"
#include "data/reading/spool.h"
#include "data/reading/reader.h"
#include "data/store/shard.h"

namespace cloze {

/// The tokenizer that is trained.
enum class TokenizerKind { unigram, bpe, wordpiece, byte_bpe };
constexpr auto choices(TokenizerKind) {
  using enum TokenizerKind;
  return std::array{Choice{unigram, "unigram", "SentencePiece's unigram model"},
                    Choice{bpe, "bpe", "SentencePiece's byte pair encoding"},
                    Choice{wordpiece, "wordpiece", "the vocabulary of BERT"},
                    Choice{byte_bpe, "byte_bpe", "the byte-level vocabulary of GPT-2 and RoBERTa"}};
}

/// What becomes of bytes that are not UTF-8.
enum class InvalidUtf8 { replace, refuse };
constexpr auto choices(InvalidUtf8) {
  using enum InvalidUtf8;
  return std::array{Choice{replace, "replace", "by U+FFFD, and counted"},
                    Choice{refuse, "refuse", "with an error that names the line"}};
}

/// The kind of the published vocabularies of a family of models, by its name or by the kind of a model of Cloze
/// (`roberta`); nullopt for another name. Source: data/tokenizers/families.cpp.
std::optional<TokenizerKind> published_kind(const std::string& model);
/// The names that `published_kind` knows.
std::vector<std::string> models_with_published_kind();

struct PrepareOptions {
  std::vector<std::string> inputs;        ///< files, globs, `-` for standard input; .gz and .xz are read directly
  std::vector<std::string> valid_inputs;  ///< separate held-out text; empty: documents are held out by `held_out`
  std::vector<std::string> targets{},
      valid_targets{};  ///< format pairs in two files: the other side of `inputs` and of `valid_inputs`
  std::string out;      ///< the output folder
  TextFormat format = TextFormat::automatic;
  DocumentUnit document = DocumentUnit::blank_line;
  std::vector<std::string> exclude{};          ///< patterns of files that are left out: `*.json`, `old/*`
  std::optional<std::string> field{};          ///< jsonl: the key of the text, which is `text` where none is given;
                                               ///< tables: its column; pairs in JSON lines: two keys, source,target
  std::map<TextFormat, std::string> fields{};  ///< of the files of a format, instead of `field`
  std::string
      columns;  ///< pairs: NAME,NAME, two columns of a table whose first line names them, or two keys of JSON lines
  std::string tokenizer;  ///< an existing tokenizer; empty: one is trained
  TokenizerKind train_kind = TokenizerKind::unigram;
  int64_t vocab_size = 8000;
  bool lowercase = false;      ///< of a trained tokenizer
  bool byte_fallback = false;  ///< of a trained unigram or bpe: rare characters become bytes, not unknown
  std::optional<double> character_coverage{};  ///< of what is trained but byte_bpe: share of the text that its
                                               ///< characters cover; 0.9995 where none is given
  bool special_tokens =
      false;  ///< add missing [PAD], [CLS], [SEP], [MASK] to the tokenizer of a model; other tokenizers always get them
  int64_t sentinels = 0;   ///< number of <extra_id_0> ... for span corruption
  double held_out = 0.01;  ///< share of the text, in documents chosen by a hash of their content
  bool dedup = false;  ///< remove duplicates and near-duplicates, and training documents that duplicate held-out ones
  InvalidUtf8 invalid_utf8 = InvalidUtf8::replace;
  std::string encoding{};        ///< of lines that are not UTF-8, as iconv(1) names it; empty: they are invalid
  bool skip_null = false;        ///< JSON lines whose text is null are left out, not refused
  bool skip_unreadable = false;  ///< files that are no text are left out, not refused
  int64_t threads = 0;           ///< 0: one for each core
  uint64_t seed = 1;
  bool for_scoring = false;  ///< the text is scored, not trained on: source bytes are counted in every split, not only
                             ///< in the held-out one, and duplicates cause no warning
  bool force = false;        ///< overwrite an existing folder
  std::map<std::string, std::string> sources{};  ///< of the files of held-out text, the names of their sources, which
                                                 ///< `prepare` finds where none are given; empty: all are of one
  uint64_t file_tokens = shard_tokens;  ///< tokens after which a file is closed; a resumed run keeps closed files
};

/// The choice of an option of the command line. Throws ConfigError for another name.
template <class E>
E choice_of_option(const char* option, const std::string& name) {
  std::string names;
  for (const auto& choice : choices(E{})) {
    if (name == choice.name) return choice.value;
    names += (names.empty() ? "" : ", ") + std::string(choice.name);
  }
  fail<ConfigError>("--", option, " is '", name, "', must be one of ", names);
}

/// Share of the text that the characters of a trained vocabulary cover, where the user gives none; as SentencePiece's.
constexpr double default_coverage = 0.9995;

/// Throws ConfigError for values out of range, and for options that contradict each other.
void check_options(const PrepareOptions& options);

/// A --field: NAME, or KIND:NAME for the files of a format, such as csv:text. Throws ConfigError for a second one of a
/// kind.
void add_field(PrepareOptions& options, const std::string& field);

/// Throws ConfigError for a --field where no text has keys. Inputs: files and streams; the latter may have keys.
void check_field(const PrepareOptions& options);

/// The same for a --document where no text has lines that are not records.
void check_document_unit(const PrepareOptions& options);

/// The files that held-out text comes from.
inline const std::vector<std::string>& held_out_files(const PrepareOptions& options) {
  return options.valid_inputs.empty() ? options.inputs : options.valid_inputs;
}

/// How the text of `options` is read.
ReaderOptions reader_of(const PrepareOptions& options, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& targets);

/// The same of no files in particular.
inline ReaderOptions reader_of(const PrepareOptions& options) { return reader_of(options, {}, {}); }

/// The options and inputs of a folder: equal ones give equal tokens. `given`: the fingerprint of `options.tokenizer`;
/// empty without one. `spooled`: by the names of the inputs.
nlohmann::json made_from(const PrepareOptions& options, const std::string& tokenizer,
                         const std::map<std::string, Spooled>& spooled);

}  // namespace cloze

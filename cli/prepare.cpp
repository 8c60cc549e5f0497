#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/config/config_tree.h"
#include "core/config/named_config.h"
#include "core/contains.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/text.h"
#include "data/prepare/prepare.h"

namespace cloze {

namespace {

void report(const PrepareOptions& options, const PrepareReport& r, bool json) {
  if (json) {
    print_data(json_text(nlohmann::json{{"out", options.out},
                                        {"reused", r.reused},
                                        {"documents", r.documents},
                                        {"sentences", r.sentences},
                                        {"tokens", r.tokens},
                                        {"valid_documents", r.valid_documents},
                                        {"valid_tokens", r.valid_tokens},
                                        {"unknown_tokens", r.unknown_tokens},
                                        {"invalid_utf8", r.invalid_utf8},
                                        {"skipped_lines", r.skipped_lines},
                                        {"null_rows", r.null_rows},
                                        {"duplicate_documents", r.duplicate_documents},
                                        {"near_duplicates", r.near_duplicates},
                                        {"leaked_documents", r.leaked_documents},
                                        {"removed_documents", r.removed_documents},
                                        {"removed_valid_documents", r.removed_valid_documents},
                                        {"bytes", r.bytes},
                                        {"seconds", r.seconds}}) +
               "\n");
    return;
  }
  log_result("data", concat(options.out, r.reused ? ": already exists" : ": created", ", ",
                            counted(r.documents, "document"), ", ", counted(r.tokens, "token"), "; held out: ",
                            counted(r.valid_documents, "document"), ", ", counted(r.valid_tokens, "token")));
  if (!r.reused)
    log_info("data", concat(bytes(static_cast<double>(r.bytes)), " in ", duration(r.seconds), ", ",
                            counted(r.unknown_tokens, "unknown token"), ", ", thousands(r.duplicate_documents),
                            " duplicate and ", counted(r.near_duplicates, "near-duplicate document")));
}

void add_text_options(CLI::App& verb, PrepareOptions& options) {
  add_choice<decltype(options.format)>(
      verb, "--format", options.format,
      "auto, text (empty lines separate documents), lines (one sentence per line), jsonl, csv, tsv, arrow, "
      "parquet, wiki (WikiExtractor), pairs (source and target: two columns, two of several with --columns, "
      "JSON lines, "
      "or a second file with --target)");
  verb.add_option("--target", options.targets, "pairs: target files, aligned line by line with the sources");
  verb.add_option("--exclude", options.exclude,
                  "leave out files by name or path, or by that of a folder: '*.json', 'old/*', drafts; may be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  const auto add = [&options](const std::vector<std::string>& fields) {
    for (const auto& one : fields) add_field(options, one);
  };
  verb.add_option_function<std::vector<std::string>>(
          "--field", add,
          "jsonl: key of the text, meta.text for one of an inner object or of the objects of a list; csv, tsv: name of "
          "its column, of arrow and parquet also a part of it; pairs in JSON lines: both keys, source,target; one for "
          "each kind of files: --field csv:text --field jsonl:content")
      ->type_name("[KIND:]NAME")
      ->allow_extra_args(false)
      ->default_str(default_field);
  verb.add_option("--columns", options.columns,
                  "pairs: NAME,NAME, the source and target columns by the header line of each file; in JSON lines, the "
                  "two keys");
  add_choice<decltype(options.document)>(
      verb, "--document", options.document,
      "text and lines: a document is a whole file, the lines up to an empty one, or every line");
  verb.add_option("--encoding", options.encoding,
                  "of lines that are not UTF-8, by the names of iconv: latin1, cp1252, shift_jis")
      ->type_name("NAME");
  add_choice<decltype(options.invalid_utf8)>(verb, "--invalid-utf8", options.invalid_utf8,
                                             "invalid UTF-8: replace (and count) or refuse");
  verb.add_flag("--skip-null", options.skip_null,
                "jsonl: leave out objects whose text is null (and count them) instead of refusing them");
  verb.add_flag("--skip-unreadable", options.skip_unreadable,
                "leave out files that are no text, or text in another encoding (and name them), instead of refusing "
                "them all");
}

/// The model that --for names: itself, or that of a config, `bert/tiny`.
std::string model_named(const std::string& name, const std::vector<std::string>& models) {
  const auto file = contains(models, name) ? "" : config_of_name(name);
  if (file.empty()) return name;
  const auto config = ConfigTree::load(file);
  const auto* kind = config.find("model.kind");
  return kind == nullptr ? name : kind->text;
}

void add_tokenizer_options(CLI::App& verb, PrepareOptions& options) {
  verb.add_option("--tokenizer", options.tokenizer,
                  "existing tokenizer to use: SentencePiece .model, WordPiece vocab.txt, vocab.json with merges.txt "
                  "(byte-level BPE), tokenizer.json, a folder with one of these, or a run or prepared text");
  add_choice<decltype(options.train_kind)>(
      verb, "--train", options.train_kind,
      "without --tokenizer, the kind to train: unigram or bpe (SentencePiece), wordpiece (BERT), byte_bpe "
      "(GPT-2, RoBERTa)");
  const auto models = models_with_published_kind();
  const auto train_for = [&options, models](const std::string& name) {
    const auto model = model_named(name, models);
    check_value("for", model, models);
    options.train_kind = *published_kind(model);
  };
  verb.add_option_function<std::string>(
          "--for", train_for,
          "instead of --train, the model that the text is for, or a config of it (roberta, roberta/tiny): the kind of "
          "its published vocabularies is trained (byte_bpe)")
      ->type_name("MODEL");
  verb.add_option("--vocab-size", options.vocab_size, "vocabulary size of the trained tokenizer")
      ->capture_default_str();
  verb.add_option("--sentinels", options.sentinels,
                  "number of sentinel tokens <extra_id_0>, <extra_id_1>, ... appended to the vocabulary for span "
                  "corruption; T5 "
                  "has 100")
      ->capture_default_str();
  verb.add_flag("--special-tokens", options.special_tokens,
                "append missing [PAD], [CLS], [SEP] and [MASK] to the tokenizer of a model (GPT-2, T5); a bare "
                "vocabulary always gets them");
  verb.add_flag("--lowercase", options.lowercase, "fold case in the trained tokenizer");
  verb.add_flag("--byte-fallback", options.byte_fallback,
                "unigram and bpe: characters outside of the vocabulary become bytes instead of unknown tokens");
  verb.add_option(
          "--character-coverage", options.character_coverage,
          "all but byte_bpe: share of the text that the characters of the vocabulary cover, the most frequent ones; 1 "
          "keeps all; by default wordpiece keeps 1,000 even where fewer cover that share")
      ->default_str(concat(default_coverage));
  verb.add_option("--seed", options.seed, "random seed for the sentences that the tokenizer is trained on")
      ->capture_default_str();
}

void add_split_options(CLI::App& verb, PrepareOptions& options) {
  verb.add_option(
          "--held-out", options.held_out,
          "share of the text to hold out; documents are chosen by a hash of their content, with copies and near "
          "copies kept together")
      ->capture_default_str();
  verb.add_flag(
      "--dedup", options.dedup,
      "remove duplicate and near-duplicate documents (MinHash), and training documents that duplicate held-out ones");
  verb.add_option("--valid", options.valid_inputs, "files of held-out text, instead of --held-out");
  verb.add_option("--valid-target", options.valid_targets, "pairs: target files of --valid");
}

/// Refuses what is no text, and options of a tokenizer that is trained next to one that is given.
void check_arguments(const CLI::App& verb, PrepareOptions& options) {
  for (const auto& input : options.inputs) check_text_path(input);
  const auto is_given = [&](const char* option) { return verb.get_option(option)->count() > 0; };
  require<ConfigError>(!is_given("--for") || !is_given("--train"),
                       "--for and --train both choose the kind of tokenizer to train; leave one of them out");
  auto& tokenizer = options.tokenizer;
  if (tokenizer.empty()) return;
  for (const auto& kind : choices(TokenizerKind{}))
    require<ConfigError>(tokenizer != kind.name || kind_of_path(tokenizer) != PathKind::absent, tokenizer,
                         ": no such tokenizer; --train ", tokenizer, " trains one");
  for (const auto* option : {"--train", "--for", "--vocab-size"})
    require<ConfigError>(!is_given(option), option, " applies only to a tokenizer that is trained, and ", tokenizer,
                         " is given; leave one of them out");
  check_tokenizer_path(tokenizer);
  tokenizer = tokenizer_of(tokenizer);
}

}  // namespace

void add_prepare(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("prepare", "tokenize text files into a token store");
  auto options = std::make_shared<PrepareOptions>();
  auto json = std::make_shared<bool>(false);
  verb->add_option("text", options->inputs,
                   "files, folders, globs, or - for standard input; .gz and .xz are decompressed")
      ->required();
  verb->add_option("--out", options->out, "folder to create")->required();
  add_group(*verb, "Text", [&] { add_text_options(*verb, *options); });
  add_group(*verb, "Tokenizer", [&] { add_tokenizer_options(*verb, *options); });
  add_group(*verb, "Held-out text", [&] { add_split_options(*verb, *options); });
  verb->add_option("--threads", options->threads, "number of threads; 0 = one per core")->capture_default_str();
  verb->add_flag("--force", options->force, "recreate an existing folder");
  verb->add_flag("--json", *json, json_help);
  verb->footer(
      "Example:\n  cloze prepare 'books/*.txt.gz' --vocab-size 8000 --out tokens\n\n"
      "A second run reuses the result of the first; an interrupted run is resumed.");
  verb->callback([verb, options, json] {
    check_arguments(*verb, *options);
    report(*options, prepare(*options), *json);
  });
}

}  // namespace cloze

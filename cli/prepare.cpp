#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "core/log.h"
#include "data/prepare.h"

namespace cloze {

namespace {

void report(const PrepareOptions& options, const PrepareReport& r, bool json) {
  if (json) {
    std::printf("%s\n", nlohmann::json{{"out", options.out},
                                       {"reused", r.reused},
                                       {"documents", r.documents},
                                       {"sentences", r.sentences},
                                       {"tokens", r.tokens},
                                       {"valid_documents", r.valid_documents},
                                       {"valid_tokens", r.valid_tokens},
                                       {"unknown_tokens", r.unknown_tokens},
                                       {"invalid_utf8", r.invalid_utf8},
                                       {"duplicate_documents", r.duplicate_documents},
                                       {"near_duplicates", r.near_duplicates},
                                       {"leaked_documents", r.leaked_documents},
                                       {"removed_documents", r.removed_documents},
                                       {"removed_valid_documents", r.removed_valid_documents},
                                       {"bytes", r.bytes},
                                       {"seconds", r.seconds}}
                            .dump()
                            .c_str());
    return;
  }
  log_info("data", words(options.out, r.reused ? " is there already" : " is made", ": ", thousands(r.documents),
                         " documents, ", thousands(r.tokens), " tokens; held out: ", thousands(r.valid_documents),
                         " documents, ", thousands(r.valid_tokens), " tokens"));
  if (!r.reused)
    log_info("data", words(bytes(static_cast<double>(r.bytes)), " in ", duration(r.seconds), ", ",
                           thousands(r.unknown_tokens), " unknown tokens, ", thousands(r.duplicate_documents),
                           " copies and ", thousands(r.near_duplicates), " near copies of documents"));
}

}  // namespace

void add_prepare(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("prepare", "text -> tokenizer and token store");
  auto options = std::make_shared<PrepareOptions>();
  auto json = std::make_shared<bool>(false);
  verb->add_option("text", options->inputs, "files, globs, or - for standard input; .gz and .xz are read directly")
      ->required();
  verb->add_option("--out", options->out, "folder to make")->required();
  verb->add_option("--format", options->format,
                   "auto, text (a blank line ends a document), lines (one sentence a line), jsonl, wiki "
                   "(WikiExtractor), pairs (source and target: the two columns of a line, two of more with --columns, "
                   "JSON lines, or a second file with --target)")
      ->capture_default_str();
  verb->add_option("--target", options->targets, "pairs: the files of the other side, line by line");
  verb->add_option("--field", options->field,
                   "jsonl: the key that holds the text; pairs in JSON lines: both keys, source,target")
      ->capture_default_str();
  verb->add_option("--columns", options->columns,
                   "pairs: NAME,NAME, the columns of source and target, as the first line of each file names them; in "
                   "JSON lines both keys");
  verb->add_option("--tokenizer", options->tokenizer,
                   "an existing one: SentencePiece .model, WordPiece vocab.txt, vocab.json with merges.txt (byte-level "
                   "BPE), tokenizer.json, or a folder with one");
  verb->add_option("--train", options->train_kind,
                   "tokenizer to train when none is named: unigram or bpe (SentencePiece), wordpiece (BERT), byte_bpe "
                   "(GPT-2, RoBERTa)")
      ->capture_default_str();
  verb->add_option("--vocab-size", options->vocab_size, "pieces of a tokenizer that is trained")->capture_default_str();
  verb->add_option(
          "--sentinels", options->sentinels,
          "tokens <extra_id_0>, <extra_id_1>, ... behind the vocabulary, which span corruption writes; T5 has 100")
      ->capture_default_str();
  verb->add_flag("--special-tokens", options->special_tokens,
                 "a tokenizer that belongs to a model (GPT-2, T5) gets [PAD], [CLS], [SEP] and [MASK] at its end, "
                 "where it lacks them; a bare vocabulary gets them always");
  verb->add_flag("--lowercase", options->lowercase, "a tokenizer that is trained folds case");
  verb->add_option("--held-out", options->held_out,
                   "share of the text to hold out, in documents that a hash of their content chooses; a copy or near "
                   "copy goes where its document goes")
      ->capture_default_str();
  verb->add_flag(
      "--dedup", options->dedup,
      "leave out copies and near copies of documents (MinHash), and of training text those of held-out text");
  verb->add_option("--valid", options->valid_inputs, "held-out text of its own, instead of --held-out");
  verb->add_option("--valid-target", options->valid_targets, "pairs: the other side of --valid");
  verb->add_option("--invalid-utf8", options->invalid_utf8, "replace (and count) or refuse")->capture_default_str();
  verb->add_option("--threads", options->threads, "0 = one for each core")->capture_default_str();
  verb->add_option("--seed", options->seed, "of the sentences that a tokenizer is trained on")->capture_default_str();
  verb->add_flag("--force", options->force, "make the folder anew although it is there");
  verb->add_flag("--json", *json, "one line of JSON on standard output");
  verb->footer(
      "Example:\n  cloze prepare 'books/*.txt.gz' --vocab-size 8000 --out tokens\n\nRun again, it reuses what is "
      "there; cut off, it goes on where it stopped.");
  verb->callback([options, json] { report(*options, prepare(*options), *json); });
}

}  // namespace cloze

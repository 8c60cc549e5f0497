#include "data/train_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/random.h"
#include "data/reader.h"
#include "data/sentences.h"
#include "data/train_bpe.h"
#include "data/train_sentencepiece.h"

namespace cloze {

namespace {

constexpr size_t max_sentences = 200000, max_sentence_bytes = 4000;
constexpr uint64_t max_bytes = 64 << 20;  // of sampled sentences

/// A uniform sample of the training text's sentences (reservoir sampling: Vitter 1985, algorithm R).
std::vector<std::string> sample_sentences(const PrepareOptions& options, const Split& split) {
  DocumentReader reader(reader_of(options, options.inputs, options.targets));
  Stream stream = Rng(options.seed).stream("tokenizer sample");
  std::vector<std::string> kept;
  std::vector<std::string_view> found;
  RawDocument document;
  uint64_t read = 0, bytes_kept = 0;
  while (reader.next(document)) {
    if (interrupted) throw Interrupted("stopped while text was read; nothing was written");
    if (document.number >= split.documents.size()) break;  // a file has grown
    if (split.documents[document.number] != Fate::train) continue;
    if (document.number == split.tail_document) document.tail_bytes = split.tail_bytes;
    found.clear();
    for (const auto& line : document.lines) {
      if (reader.sentences_given())
        found.emplace_back(line);
      else
        split_sentences(line, found);
    }
    found.resize(found.size() - tail_sentences(document, reader.sentences_given()));
    for (const auto sentence : found) {
      if (sentence.size() > max_sentence_bytes) continue;
      ++read;
      if (kept.size() < max_sentences && bytes_kept < max_bytes) {
        kept.emplace_back(sentence);
        bytes_kept += sentence.size();
      } else if (const uint64_t index = stream.below(read); index < kept.size()) {
        kept[index] = sentence;
      }
    }
  }
  split.require_unchanged();
  return kept;
}

}  // namespace

void train_tokenizer(const PrepareOptions& options, const Split& split, const std::string& folder) {
  const auto sentences = sample_sentences(options, split);
  require<DataError>(!sentences.empty(), options.inputs.front(),
                     ": has no text to train a tokenizer on; name files with text");
  log_info("data", words("training a ", options.train_kind, " tokenizer of ",
                         thousands(static_cast<uint64_t>(options.vocab_size)), " pieces on ",
                         thousands(sentences.size()), " sentences"));
  std::filesystem::create_directories(folder);
  if (options.train_kind == TokenizerKind::byte_bpe) {
    const auto files = train_byte_bpe(sentences, options.vocab_size);
    write_atomic(folder + "/vocab.json", files.vocabulary);
    write_atomic(folder + "/merges.txt", files.merges);
    return;
  }
  if (options.train_kind == TokenizerKind::wordpiece) {
    write_atomic(folder + "/vocab.txt", train_wordpiece(sentences, options.vocab_size, options.lowercase));
    write_atomic(folder + "/tokenizer_config.json",
                 words("{\"do_lower_case\": ", options.lowercase ? "true" : "false", "}\n"));
    return;
  }
  constexpr int64_t threads =
      8;  // fixed: SentencePiece partitions its sums by threads, so that scores depend on their number
  std::string spec =
      words("--model_type=", options.train_kind, " --vocab_size=", options.vocab_size, " --num_threads=", threads,
            " --pad_id=0 --pad_piece=[PAD] --unk_id=1 --unk_piece=[UNK] --bos_id=2 --bos_piece=[CLS] --eos_id=3 "
            "--eos_piece=[SEP]"
            " --control_symbols=[MASK] --hard_vocab_limit=false --minloglevel=0 --max_sentence_length=8192"
            " --normalization_rule_name=",
            options.lowercase ? "nmt_nfkc_cf" : "nmt_nfkc");
  // Said only where they differ from the library's own: it writes what it is told into the model.
  if (options.byte_fallback) spec += " --byte_fallback=true";
  if (options.character_coverage != PrepareOptions().character_coverage)
    spec += words(" --character_coverage=", options.character_coverage);
  const auto [model, trouble] = train_sentencepiece(spec, sentences, options.vocab_size);
  if (trouble.find("ocabulary size") != std::string::npos || trouble.find("vocab_size") != std::string::npos)
    fail<DataError>("a vocabulary of ", options.vocab_size,
                    " pieces does not fit this text; choose another --vocab-size (SentencePiece: ",
                    trouble.substr(trouble.rfind(']') == std::string::npos ? 0 : trouble.rfind(']') + 1), ")");
  require<DataError>(trouble.empty() && !model.empty(),
                     "the tokenizer could not be trained on this text (SentencePiece: ", trouble, "); name more text");
  write_atomic(folder + "/spiece.model", model);
}

}  // namespace cloze

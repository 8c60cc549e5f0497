#include "data/prepare/train_tokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/random.h"
#include "core/text.h"
#include "data/reading/reader.h"
#include "data/reading/sentences.h"
#include "data/reading/text_lines.h"
#include "data/tokenizers/characters.h"
#include "data/tokenizers/scripts.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

constexpr size_t max_sentences = 200000, max_sentence_bytes = 4000;
constexpr uint64_t max_bytes = 64 << 20;  // of sampled sentences

/// Where a text that begins with no white space can be cut after at most `max_sentence_bytes`: at the last white space,
/// else before the last unit of a script without spaces; 0 in a longer word.
size_t last_cut(std::string_view text) {
  size_t space = 0, unit = 0;
  for (size_t at = 0; at < text.size() && at <= max_sentence_bytes;) {
    const size_t character = at;
    const auto c = next_code_point(text, at);
    if (is_white_space(c)) space = character;
    if (begins_unit_without_spaces(c)) unit = character;
  }
  return space > 0 ? space : unit;
}

/// Offset of the first white space; the size for none.
size_t end_of_word(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t character = at;
    if (is_white_space(next_code_point(text, at))) return character;
  }
  return text.size();
}

/// Appends a sentence, cut into parts of at most `max_sentence_bytes` at its stops, white space and units of scripts
/// without spaces. Returns the number of longer words, which are left out.
uint64_t add_parts(std::string_view sentence, std::vector<std::string_view>& parts) {
  if (sentence.size() <= max_sentence_bytes) {
    if (!sentence.empty()) parts.push_back(sentence);
    return 0;
  }
  uint64_t left_out = 0;
  std::vector<std::string_view> sentences;
  split_sentences(sentence, sentences);
  for (auto rest : sentences) {
    while (rest.size() > max_sentence_bytes) {
      const size_t cut = last_cut(rest), end = cut > 0 ? cut : end_of_word(rest);
      if (cut > 0)
        parts.push_back(rest.substr(0, end));
      else
        ++left_out;
      rest.remove_prefix(past_white_space(rest, end));
    }
    if (!rest.empty()) parts.push_back(rest);
  }
  return left_out;
}

/// A uniform sample of the training text's sentences (reservoir sampling: Vitter 1985, algorithm R).
std::vector<std::string> sample_sentences(const PrepareOptions& options, const Split& split) {
  DocumentReader reader(reader_of(options, options.inputs, options.targets));
  Stream stream = Rng(options.seed).stream("tokenizer sample");
  std::vector<std::string> kept;
  std::vector<std::string_view> sentences, parts;
  RawDocument document;
  uint64_t read = 0, bytes_kept = 0, left_out = 0;
  while (reader.next(document)) {
    if (interrupted) throw Interrupted("stopped while text was read; nothing was written");
    if (document.number >= split.documents.size()) break;  // a file has grown
    if (split.documents[document.number] != Assignment::train) continue;
    if (document.number == split.tail_document) document.tail_bytes = split.tail_bytes;
    sentences.clear();
    for (const auto& line : document.lines) {
      if (reader.sentences_given())
        sentences.emplace_back(line);
      else
        split_sentences(line, sentences);
    }
    sentences.resize(sentences.size() - tail_sentences(document, reader.sentences_given()));
    parts.clear();
    for (const auto sentence : sentences) left_out += add_parts(sentence, parts);
    for (const auto sentence : parts) {
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
  if (left_out > 0)
    log_warning("data", concat(counted(left_out, "word"), " of more than ", thousands(max_sentence_bytes),
                               " bytes between spaces ", left_out == 1 ? "is" : "are",
                               " left out of the training of the tokenizer"));
  return kept;
}

/// How many special tokens and characters need a piece, by SentencePiece's words that there are too few; 0 for other
/// words: `... required_chars. 3000 vs 3037. ...`
uint64_t pieces_needed(const std::string& trouble) {
  const auto named = trouble.find("required_chars");
  if (named == std::string::npos) return 0;
  const auto versus = trouble.find(" vs ", named);
  return versus == std::string::npos ? 0 : std::strtoull(trouble.c_str() + versus + 4, nullptr, 10);
}

/// Throws DataError if SentencePiece made no model.
void require_trained(const PrepareOptions& options, const TrainedSentencePiece& trained) {
  const auto& trouble = trained.trouble;
  if (const auto needed = pieces_needed(trouble); needed > 0)
    fail<DataError>("a vocabulary of ", thousands(static_cast<uint64_t>(options.vocab_size)),
                    " pieces is too small for this text, whose special tokens and characters are ", thousands(needed),
                    "; raise --vocab-size to that or more, or leave rare characters out with a --character-coverage "
                    "below ",
                    options.character_coverage.value_or(default_coverage));
  if (trouble.find("ocabulary size") != std::string::npos || trouble.find("vocab_size") != std::string::npos)
    fail<DataError>("a vocabulary of ", options.vocab_size,
                    " pieces does not fit this text; choose another --vocab-size (SentencePiece: ",
                    trouble.substr(trouble.rfind(']') == std::string::npos ? 0 : trouble.rfind(']') + 1), ")");
  require<DataError>(trouble.empty() && !trained.model.empty(),
                     "the tokenizer could not be trained on this text (SentencePiece: ", trouble, "); name more text");
}

/// The alphabet of a WordPiece tokenizer. Without a coverage of the user's own it has whole alphabetic scripts, whose
/// rare letters would make unknown tokens of whole words.
Alphabet wordpiece_alphabet(const PrepareOptions& options) {
  constexpr size_t of_alphabetic_scripts = 1000;  // as the `tokenizers` package's limit_alphabet
  return {.coverage = options.character_coverage.value_or(default_coverage),
          .least = options.character_coverage ? 0 : of_alphabetic_scripts};
}

/// What the characters of a unigram or bpe tokenizer cover, where some are left out.
std::string coverage_of(const PrepareOptions& options) {
  const bool has_coverage = options.train_kind == TokenizerKind::unigram || options.train_kind == TokenizerKind::bpe;
  const double coverage = options.character_coverage.value_or(default_coverage);
  if (!has_coverage || coverage == 1) return "";
  return concat("; its characters cover a share of ", coverage, " of the text (--character-coverage), rarer ones ",
                options.byte_fallback ? "become bytes" : "are unknown");
}

}  // namespace

void train_tokenizer(const PrepareOptions& options, const Split& split, const std::string& folder) {
  const auto sentences = sample_sentences(options, split);
  require<DataError>(!sentences.empty(), options.inputs.front(),
                     ": has no text to train a tokenizer on; name files with text");
  require<DataError>(std::any_of(sentences.begin(), sentences.end(), has_visible_text), options.inputs.front(),
                     ": has no text that can be seen to train a tokenizer on; name files with text");
  log_info("data", concat("training a ", options.train_kind, " tokenizer of ",
                          thousands(static_cast<uint64_t>(options.vocab_size)), " pieces on ",
                          counted(sentences.size(), "sentence"), coverage_of(options)));
  std::filesystem::create_directories(folder);
  if (options.train_kind == TokenizerKind::byte_bpe) {
    const auto files = train_byte_bpe(sentences, options.vocab_size);
    write_atomic(folder + "/vocab.json", files.vocabulary);
    write_atomic(folder + "/merges.txt", files.merges);
    return;
  }
  if (options.train_kind == TokenizerKind::wordpiece) {
    write_atomic(folder + "/vocab.txt",
                 train_wordpiece(sentences, options.vocab_size, options.lowercase, wordpiece_alphabet(options)));
    write_atomic(folder + "/tokenizer_config.json",
                 concat("{\"do_lower_case\": ", options.lowercase ? "true" : "false", "}\n"));
    return;
  }
  constexpr int64_t threads =
      8;  // fixed: SentencePiece partitions its sums by threads, so that scores depend on their number
  std::string spec =
      concat("--model_type=", options.train_kind, " --vocab_size=", options.vocab_size, " --num_threads=", threads,
             " --pad_id=0 --pad_piece=[PAD] --unk_id=1 --unk_piece=[UNK] --bos_id=2 --bos_piece=[CLS] --eos_id=3 "
             "--eos_piece=[SEP]"
             " --control_symbols=[MASK] --hard_vocab_limit=false --minloglevel=0 --max_sentence_length=8192"
             " --normalization_rule_name=",
             options.lowercase ? "nmt_nfkc_cf" : "nmt_nfkc");
  // Only what the user chose is said: the library writes what it is told into the model.
  if (options.byte_fallback) spec += " --byte_fallback=true";
  if (options.character_coverage) spec += concat(" --character_coverage=", *options.character_coverage);
  const auto trained = train_sentencepiece(spec, sentences, options.vocab_size);
  require_trained(options, trained);
  write_atomic(folder + "/spiece.model", trained.model);
}

}  // namespace cloze

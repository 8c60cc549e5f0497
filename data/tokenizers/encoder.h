#pragma once
// What every tokenizer offers: a vocabulary, and the way text is cut into it.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// One piece of a text and the bytes of the text that it stands for.
struct TextPiece {
  int32_t id = 0;
  size_t begin = 0, end = 0;
};

/// A vocabulary and its rules. Every const member may be called from many threads.
struct Encoder {
  virtual ~Encoder() = default;
  /// Appends the ids of `text`.
  virtual void encode(std::string_view text, std::vector<int32_t>& out) const = 0;
  /// The same of a text right behind another character, where a model may see the start of a word: its first piece
  /// without that mark.
  virtual void encode_after(std::string_view text, std::vector<int32_t>& out) const { encode(text, out); }
  /// The pieces of `encode` with their places.
  virtual std::vector<TextPiece> encode_with_offsets(std::string_view text) const = 0;
  /// Text of ids below `pieces.size()`.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// `wordpiece`, `unigram`, `bpe` or `byte_bpe`.
  virtual std::string kind() const = 0;
  /// The files that make it, by their usual names.
  virtual std::map<std::string, std::string> files() const = 0;
  /// False for a piece that continues the word before it.
  virtual bool starts_word(int64_t id) const = 0;
  /// True for a piece that no text is cut into.
  virtual bool is_control(int64_t) const { return false; }
  /// The id that the model itself gives to `pad`, `unk`, `bos` or `eos`, however it is spelled; -1 for none.
  virtual int64_t role(std::string_view) const { return -1; }
  /// Hugging Face's tokenizer.json without its special tokens: members `normalizer`, `pre_tokenizer`, `decoder`,
  /// `model`; the whole file where the tokenizer came as one.
  virtual std::string huggingface_json() const = 0;
  /// What decides ids next to the files and `lowercase`, as a JSON object; empty where all is as usual.
  virtual std::string facts() const { return "{}"; }
  /// True when a space before the text changes its ids.
  virtual bool keeps_spaces() const { return false; }

  std::vector<std::string> pieces;
  bool lowercase = false;
};

/// Where a SentencePiece model departs from the library, as its family's own code does.
struct SentencePieceRules {
  bool lowercase = false;           ///< text is lower-cased first
  bool strip_accents = false;       ///< and decomposed, without combining marks
  bool split_digit_commas = false;  ///< `,` after a digit is a piece of its own; quotes are written "
  bool join_spaces = false;         ///< white space of any kind and number is one space
  bool any() const { return lowercase || strip_accents || split_digit_commas || join_spaces; }
};

std::unique_ptr<Encoder> make_sentencepiece(std::string model, const std::string& path,
                                            const SentencePieceRules& rules = {});

/// How BERT's basic tokenizer prepares a text.
struct WordPieceRules {
  bool lowercase = true;
  bool strip_accents = true;     ///< decomposed, without nonspacing marks
  bool split_ideographs = true;  ///< each is a word of its own
  size_t longest_word = 200;     ///< characters; a longer word is unknown
  /// Characters are told apart as Hugging Face's tokenizers does it, not as google-research/bert: a capital sigma at
  /// the end of a word is lower-cased as any other, private characters go, lines and paragraphs end words.
  bool as_tokenizers = false;
  /// Without accents where lower-cased, as in the original.
  static WordPieceRules bert(bool lowercase) { return {.lowercase = lowercase, .strip_accents = lowercase}; }
};

std::unique_ptr<Encoder> make_wordpiece(std::string vocabulary, const std::string& path, const WordPieceRules& rules);
/// vocabulary         a JSON object piece -> id
/// merges             two pieces a line, the first to join first
/// add_prefix_space   a space stands before every text that does not begin with one
std::unique_ptr<Encoder> make_byte_bpe(std::string vocabulary, std::string merges, const std::string& path,
                                       bool add_prefix_space = false);

}  // namespace cloze

#pragma once
// The interface of tokenizer models: a vocabulary, and the segmentation of text into its tokens.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// A token of a text, its byte offsets, and the number of its word, from 0: of its pre-token, as transformers'
/// `word_ids`. For SentencePiece, and for a tokenizer.json whose pre-tokenizer splits nothing, a word begins with the
/// mark of a space.
struct TokenSpan {
  int32_t id = 0;
  size_t begin = 0, end = 0;
  int64_t word = 0;
};

/// A vocabulary with its rules. Every const member may be called from many threads.
struct TokenizerModel {
  virtual ~TokenizerModel() = default;
  /// Appends the ids of `text`.
  virtual void encode(std::string_view text, std::vector<int32_t>& out) const = 0;
  /// The same for a text directly after another character: the first token gets no start-of-word mark.
  virtual void encode_after(std::string_view text, std::vector<int32_t>& out) const { encode(text, out); }
  /// The tokens of `encode` with their offsets.
  virtual std::vector<TokenSpan> encode_with_offsets(std::string_view text) const = 0;
  /// Text of ids below `pieces.size()`.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// `wordpiece`, `unigram`, `bpe` or `byte_bpe`.
  virtual std::string kind() const = 0;
  /// The files of the tokenizer, by their usual names.
  virtual std::map<std::string, std::string> files() const = 0;
  /// False for a token that continues a word.
  virtual bool starts_word(int64_t id) const = 0;
  /// True for a token that never results from text.
  virtual bool is_control(int64_t) const { return false; }
  /// The id of `pad`, `unk`, `bos` or `eos` in the model itself, whatever its spelling; -1 for none.
  virtual int64_t role(std::string_view) const { return -1; }
  /// Hugging Face's tokenizer.json without its special tokens: members `normalizer`, `pre_tokenizer`, `decoder`,
  /// `model`; the whole file if the tokenizer was read from one.
  virtual std::string huggingface_json() const = 0;
  /// Further facts that determine ids, besides the files and `lowercase`, as a JSON object; empty by default.
  virtual std::string facts() const { return "{}"; }
  /// True if a space before the text changes its ids.
  virtual bool keeps_spaces() const { return false; }

  std::vector<std::string> pieces;
  bool lowercase = false;
};

/// Preprocessing of a SentencePiece model beyond the library, as in the code of its family.
struct SentencePieceRules {
  bool lowercase = false;           ///< text is lower-cased first
  bool strip_accents = false;       ///< text is decomposed, without combining marks
  bool split_digit_commas = false;  ///< `,` after a digit is a token of its own; quotes become "
  bool join_spaces = false;         ///< runs of white space become one space
  bool any() const { return lowercase || strip_accents || split_digit_commas || join_spaces; }
};

std::unique_ptr<TokenizerModel> make_sentencepiece(std::string model, const std::string& path,
                                                   const SentencePieceRules& rules = {});

/// The rules of BERT's basic tokenizer.
struct WordPieceRules {
  bool lowercase = true;
  bool strip_accents = true;     ///< decomposed, without nonspacing marks
  bool split_ideographs = true;  ///< each is a word of its own
  size_t max_word_length = 200;  ///< in characters; a longer word is unknown
  /// Characters are classified as in Hugging Face's tokenizers, not as in google-research/bert: a capital sigma at the
  /// end of a word is lower-cased like any other, private-use characters are removed, line and paragraph separators end
  /// words.
  bool as_tokenizers = false;
  /// Strips accents if it lower-cases, as in the original.
  static WordPieceRules bert(bool lowercase) { return {.lowercase = lowercase, .strip_accents = lowercase}; }
};

std::unique_ptr<TokenizerModel> make_wordpiece(std::string vocabulary, const std::string& path,
                                               const WordPieceRules& rules);
/// vocabulary         a JSON object token -> id
/// merges             two tokens per line, in order of priority
/// add_prefix_space   a space is inserted before a text that does not start with one
std::unique_ptr<TokenizerModel> make_byte_bpe(std::string vocabulary, std::string merges, const std::string& path,
                                              bool add_prefix_space = false);

}  // namespace cloze

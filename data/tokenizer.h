#pragma once
// Tokenization: one type for SentencePiece models, WordPiece vocabularies, byte-level BPE and tokenizer.json.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/tokenizers/tokenizer_model.h"

namespace cloze {

/// Ids of the special tokens; -1 for a token that the tokenizer lacks.
struct SpecialIds {
  int64_t pad = -1, unk = -1, cls = -1, sep = -1, mask = -1;
  int64_t sentence_mask = -1;  ///< replaces a whole sentence (PEGASUS); else equal to `mask`
  int64_t bos = -1, eos = -1;  ///< for transformers; Cloze's objectives use `cls` and `sep`
  /// The id that fills padding: any valid id, since nothing reads it.
  int64_t filler() const { return pad >= 0 ? pad : std::max<int64_t>(sep, 0); }
};

/// The model that reads the texts, if transformers is to load it with the tokenizer.
struct TextReader {
  std::string kind;        ///< `bert`, `gpt2`, ...: determines the special tokens around a text and between two, unless
                           ///< the tokenizer came with a model of this kind, where it has its own
  bool segments = true;    ///< it has token types for the two texts of a pair
  int64_t max_length = 0;  ///< maximum number of input tokens; 0 = any number
  int64_t end = -1;        ///< id at the end of a text; -1 = `sep`
  bool words = false;      ///< it was trained on single words, so that byte-level BPE has a space before the first one
  int64_t pad = -1;        ///< id of padding, for a model that needs one; -1 = only that of the tokenizer
};

/// A tokenizer whose files have changed since it was saved.
struct ChangedTokenizer : DataError {
  ChangedTokenizer(std::string how, const std::string& remedy) : DataError(how + remedy), change(std::move(how)) {}
  std::string change;  ///< the sentence without what to do
};

/// A trained tokenizer. Copies share their tables; every const member may be called from many threads.
class Tokenizer {
 public:
  /// Opens a folder made by `save`, or a Hugging Face folder (tokenizer.json, which is preferred, as in transformers;
  /// vocab.txt; vocab.json with merges.txt; a SentencePiece model), or one of these files. A SentencePiece model
  /// in a Hugging Face folder gets the ids of its family (data/tokenizers/families.h). Throws DataError with the path
  /// and the defect.
  static Tokenizer open(const std::string& path);

  /// Ids of the tokens of `text`; no special tokens are added, and text that spells one is ordinary text. `inside`: the
  /// text continues after a space, which byte-level BPE includes in its tokens.
  std::vector<int32_t> encode(std::string_view text, bool inside = false) const;
  /// The same for a text directly after another character, where SentencePiece would start a new word.
  std::vector<int32_t> encode_after(std::string_view text) const;
  /// The same tokens with their byte offsets in `text` and the words that the tokenizer cuts it into.
  std::vector<TokenSpan> encode_with_offsets(std::string_view text) const;
  /// Text of `ids`; special tokens are skipped.
  std::string decode(std::span<const int64_t> ids) const;

  /// Number of rows of a token embedding: all tokens, special ones included.
  int64_t size() const;
  const SpecialIds& special() const;
  /// The spelling of an id: `[MASK]`, `##ing`, `▁the`, `Ġthe`.
  std::string piece(int64_t id) const;
  /// The spelling of an id for people: a byte-level token of whole characters as these characters, `Ġ` for a space.
  std::string readable_piece(int64_t id) const;
  /// The id spelled `piece`, or -1.
  int64_t id(std::string_view piece) const;
  bool is_special(int64_t id) const;
  /// The same tokenizer with <extra_id_0> ... <extra_id_(count - 1)> appended to its vocabulary in descending order, as
  /// in T5. Throws ConfigError if it has a different number already.
  Tokenizer with_sentinels(int64_t count) const;
  /// The same tokenizer with the sentinels after all its tokens, so that no id moves: texts have the same ids, and the
  /// fingerprint is the same. One that has sentinels is returned as it is.
  Tokenizer followed_by_sentinels(int64_t count) const;
  /// The same tokenizer with missing [UNK], [PAD], [CLS], [SEP] and [MASK] appended.
  Tokenizer with_special_tokens() const;
  /// True if the folder declares the special tokens of its model: more of them would be rows that the model lacks.
  bool belongs_to_model() const;
  /// Ids of <extra_id_0>, <extra_id_1>, ...; may be empty.
  const std::vector<int64_t>& sentinels() const;
  /// False for a token that continues a word (`##ing`; SentencePiece without `▁`, byte-level BPE without `Ġ`).
  bool starts_word(int64_t id) const;
  /// True if `decode` returns the space before the first token, too.
  bool keeps_spaces() const;

  /// `wordpiece`, `unigram`, `bpe` or `byte_bpe`.
  std::string kind() const;
  /// Sixteen hex digits that identify the mapping from text to ids.
  std::string fingerprint() const;
  /// True if `recorded` is the fingerprint of this tokenizer, by the current rule or by that of version 1 of its facts.
  bool has_fingerprint(const std::string& recorded) const;
  /// The special tokens around a text and between two, for `reader` or, without one, for the model of the family.
  struct Frame {
    std::vector<int64_t> before, between, after;
    bool segments = true;    ///< the second text and what follows it have type 1
    bool pads_left = false;  ///< padding is on the left, and the last token has type 2
  };
  Frame frame(const std::optional<TextReader>& reader = {}) const;
  /// Writes everything needed to `open` it again: `cloze_tokenizer.json` with the facts, the model or vocabulary under
  /// its usual names, and tokenizer.json with tokenizer_config.json for transformers' AutoTokenizer: the original ones
  /// if they fit the reader.
  void save(const std::string& folder, const std::optional<TextReader>& reader = {}) const;

  struct Impl;  ///< its parts: tokenizer_impl.h

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cloze

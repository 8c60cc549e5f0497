#pragma once
// Text to ids and back: SentencePiece models, WordPiece vocabularies and byte-level BPE behind one type.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/encoder.h"

namespace cloze {

/// Ids of the special tokens; -1 where the tokenizer has none.
struct SpecialIds {
  int64_t pad = -1, unk = -1, cls = -1, sep = -1, mask = -1;
  int64_t sentence_mask = -1;  ///< stands for a whole sentence (PEGASUS); `mask` where there is no other
  int64_t bos = -1, eos = -1;  ///< what transformers is told; Cloze's objectives use `cls` and `sep`
  /// What fills a batch where no token is: any id will do there, since nothing reads it.
  int64_t filler() const { return pad >= 0 ? pad : std::max<int64_t>(sep, 0); }
};

/// The model that reads a tokenizer's texts, where transformers is to load both.
struct TextReader {
  std::string kind;        ///< `bert`, `gpt2`, ...: says what stands around a text and between two
  bool segments = true;    ///< it tells the second text of a pair from the first by token types
  int64_t max_length = 0;  ///< tokens of the longest input; 0 = any number
  int64_t end = -1;        ///< id that ends a text where that is not `sep`; -1 = `sep`
};

/// A trained tokenizer. Copies share their tables; every const member may be called from many threads.
class Tokenizer {
 public:
  /// Opens a folder that `save` made, or a Hugging Face folder (tokenizer.json, which is read first, as transformers
  /// does; vocab.txt; vocab.json with merges.txt; a SentencePiece model), or one of these files. A SentencePiece model
  /// in a Hugging Face folder has the ids of its family (data/tokenizers/families.h). Throws DataError with the path
  /// and what is wrong.
  static Tokenizer open(const std::string& path);

  /// Ids of the pieces of `text`; no special tokens are added, and text that spells one is text. `inside`: the text
  /// goes on after a space, which byte-level BPE writes into its pieces.
  std::vector<int32_t> encode(std::string_view text, bool inside = false) const;
  /// The same of a text right behind another character, where SentencePiece would begin a word.
  std::vector<int32_t> encode_after(std::string_view text) const;
  /// The same pieces with the bytes of `text` that each stands for.
  std::vector<TextPiece> encode_with_offsets(std::string_view text) const;
  /// Text of `ids`; special tokens are left out.
  std::string decode(std::span<const int64_t> ids) const;

  /// Rows that a token embedding needs: every piece and every special token.
  int64_t size() const;
  const SpecialIds& special() const;
  /// The spelling of an id: `[MASK]`, `##ing`, `▁the`, `Ġthe`.
  std::string piece(int64_t id) const;
  /// The id spelled `piece`, or -1.
  int64_t id(std::string_view piece) const;
  bool is_special(int64_t id) const;
  /// The same tokenizer with <extra_id_0> ... <extra_id_(count - 1)> after the pieces of its model, the first one last,
  /// as T5 numbers them. Throws ConfigError where it has some already.
  Tokenizer with_sentinels(int64_t count) const;
  /// The same tokenizer with [UNK], [PAD], [CLS], [SEP] and [MASK] at its end, where it lacks one.
  Tokenizer with_special_tokens() const;
  /// The folder said which special tokens its model has: others would be rows that the model lacks.
  bool belongs_to_model() const;
  /// Ids of <extra_id_0>, <extra_id_1>, ...; empty where there are none.
  const std::vector<int64_t>& sentinels() const;
  /// False for a piece that continues the word before it (`##ing`; SentencePiece without `▁`, byte-level BPE without
  /// `Ġ`).
  bool starts_word(int64_t id) const;
  /// The space before a text's first piece is part of what `decode` gives.
  bool keeps_spaces() const;

  /// `wordpiece`, `unigram`, `bpe` or `byte_bpe`.
  std::string kind() const;
  /// Sixteen hex digits that differ between tokenizers that give different ids.
  std::string fingerprint() const;
  /// `recorded` is the fingerprint of this tokenizer, by the rule of today or that of version 1 of its facts.
  bool has_fingerprint(const std::string& recorded) const;
  /// What stands around a text and between two, where `reader` reads them or, without one, the family's own model.
  struct Frame {
    std::vector<int64_t> before, between, after;
    bool segments = true;    ///< the second text and what follows it have type 1
    bool pads_left = false;  ///< padding stands on the left, and the last token is of type 2
  };
  Frame frame(const std::optional<TextReader>& reader = {}) const;
  /// Writes everything needed to `open` it again: `cloze_tokenizer.json` with the facts, the model or vocabulary under
  /// its usual names, and tokenizer.json with tokenizer_config.json, which transformers' AutoTokenizer loads: those
  /// that it came with, where they fit the reader.
  void save(const std::string& folder, const std::optional<TextReader>& reader = {}) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cloze

#pragma once
// Text to ids and back: SentencePiece models, WordPiece vocabularies and byte-level BPE behind one type.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/encoder.h"

namespace cloze {

/// Ids of the special tokens. A model that lacks one gets it appended behind its last piece.
struct SpecialIds {
  int64_t pad = 0, unk = 0, cls = 0, sep = 0, mask = 0;
};

/// A trained tokenizer. Copies share their tables; every const member may be called from many threads.
class Tokenizer {
 public:
  /// Opens a folder that `save` made, or a Hugging Face folder (tokenizer.json, which is read first, as transformers does;
  /// vocab.txt; vocab.json with merges.txt; a SentencePiece model), or one of these files. Throws DataError with the path
  /// and what is wrong.
  static Tokenizer open(const std::string& path);

  /// Ids of the pieces of `text`; no special tokens are added, and text that spells one is text. `inside`: the text goes
  /// on after a space, which byte-level BPE writes into its pieces.
  std::vector<int32_t> encode(std::string_view text, bool inside = false) const;
  /// The same of a text right behind another character, where SentencePiece would begin a word.
  std::vector<int32_t> encode_behind(std::string_view text) const;
  /// The same pieces with the bytes of `text` that each stands for.
  std::vector<TextPiece> encode_with_places(std::string_view text) const;
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
  /// The same tokenizer with <extra_id_0> ... <extra_id_(count - 1)> behind the pieces of its model, the first one last, as T5 numbers them.
  /// Throws ConfigError where it has some already.
  Tokenizer with_sentinels(int64_t count) const;
  /// Ids of <extra_id_0>, <extra_id_1>, ...; empty where there are none.
  const std::vector<int64_t>& sentinels() const;
  /// False for a piece that continues the word before it (`##ing`; SentencePiece without `▁`, byte-level BPE without `Ġ`).
  bool starts_word(int64_t id) const;
  /// The space before a text's first piece is part of what `decode` gives.
  bool keeps_spaces() const;

  /// `wordpiece`, `unigram`, `bpe` or `byte_bpe`.
  std::string kind() const;
  /// Sixteen hex digits that differ between tokenizers that give different ids.
  std::string fingerprint() const;
  /// What stands around a text where transformers encodes it; ids.
  struct Frame {
    std::vector<int64_t> before, after;
    bool pads_left = false;   ///< as XLNet does, whose last token is a segment of its own
  };
  /// Writes everything needed to `open` it again: `cloze_tokenizer.json` with the facts, the model or vocabulary under
  /// its usual names, and tokenizer.json with tokenizer_config.json, which transformers' AutoTokenizer loads. Without a frame, [CLS] and [SEP]
  /// stand around one text or two.
  void save(const std::string& folder, const std::optional<Frame>& frame = {}) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cloze

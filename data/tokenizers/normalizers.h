#pragma once
// The `normalizer` of a tokenizer.json: rewrites a text before it is split.
// Source: huggingface/tokenizers 0.23, src/normalizers.
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/tokenizers/charsmap.h"
#include "data/tokenizers/fields.h"
#include "data/tokenizers/normalized_text.h"
#include "data/tokenizers/pattern.h"

namespace cloze {

struct BertNormalizer {
  bool clean_text = true;        ///< removes control characters, white space becomes a space
  bool split_ideographs = true;  ///< a space on both sides of each
  bool strip_accents = true;     ///< decomposed, without nonspacing marks
  bool lowercase = true;
};
struct NormalForm {
  bool compatible = false, compose = false;
};
struct NmtNormalizer {};
struct LowercaseNormalizer {};
struct StripAccentsNormalizer {};
struct StripNormalizer {
  bool left = true, right = true;
};
struct ReplaceNormalizer {
  Pattern pattern;
  std::string content;
};
struct PrependNormalizer {
  std::string content;
};
struct PrecompiledNormalizer {
  std::shared_ptr<const Charsmap> charsmap;
};
struct ByteLevelNormalizer {};

using Normalizer =
    std::variant<BertNormalizer, NormalForm, NmtNormalizer, LowercaseNormalizer, StripAccentsNormalizer,
                 StripNormalizer, ReplaceNormalizer, PrependNormalizer, PrecompiledNormalizer, ByteLevelNormalizer>;

/// The steps of `normalizer`, nested sequences flattened; none for null.
/// Throws DataError for an unknown kind or an option of another type. `time`: of the expressions.
std::vector<Normalizer> read_normalizers(const Field& field, const std::shared_ptr<SearchTime>& time);

/// Rewrites each part that is text. `continues`: the text directly follows another character, so nothing is prepended.
void normalize(const std::vector<Normalizer>& steps, NormalizedText& text, bool continues);

/// Replaces each byte by the printable character that represents it.
void write_byte_symbols(NormalizedText& text);

}  // namespace cloze

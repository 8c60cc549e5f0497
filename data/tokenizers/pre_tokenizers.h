#pragma once
// The `pre_tokenizer` of a tokenizer.json: splits a text into parts, which the model processes one by one.
// Source: huggingface/tokenizers 0.23, src/pre_tokenizers.
#include <string>
#include <variant>
#include <vector>

#include "data/tokenizers/fields.h"
#include "data/tokenizers/normalized_text.h"
#include "data/tokenizers/pattern.h"

namespace cloze {

/// The treatment of spans that a rule matched.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct BertPreTokenizer {};
struct WhitespacePreTokenizer {};  ///< words, and runs of characters that are neither word characters nor white space
struct WhitespaceSplit {};
struct ByteLevelPreTokenizer {
  bool add_prefix_space = true, use_regex = true;
};
struct MetaspacePreTokenizer {
  enum class Prepend { always, first, never };
  std::string mark = "\u2581";
  Prepend prepend = Prepend::always;
  bool split = true;
};
struct PunctuationPreTokenizer {
  Behavior behavior = Behavior::isolated;
};
struct DigitsPreTokenizer {
  bool individual = false;
};
struct SplitPreTokenizer {
  Pattern pattern;
  Behavior behavior;
  bool invert;
};
struct DelimiterSplit {
  int32_t delimiter;
};
struct FixedLengthPreTokenizer {
  size_t length;  ///< characters
};

using PreTokenizer = std::variant<BertPreTokenizer, WhitespacePreTokenizer, WhitespaceSplit, ByteLevelPreTokenizer,
                                  MetaspacePreTokenizer, PunctuationPreTokenizer, DigitsPreTokenizer, SplitPreTokenizer,
                                  DelimiterSplit, FixedLengthPreTokenizer>;

/// The steps of `pre_tokenizer`, nested sequences flattened; none for null.
/// Throws DataError for an unknown kind or an option of another type. `time`: of the expressions.
std::vector<PreTokenizer> read_pre_tokenizers(const Field& field, const std::shared_ptr<SearchTime>& time);

/// Splits each part that is text. `continues`: the text directly follows another character, so no space is prepended.
void pre_tokenize(const std::vector<PreTokenizer>& steps, NormalizedText& text, bool continues);

}  // namespace cloze

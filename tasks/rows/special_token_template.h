#pragma once
// The special tokens around the texts of a row, by family. Without LibTorch.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/tokenizer.h"
#include "models/families/model_config.h"

namespace cloze {

/// How a family frames one text and two, as its published tokenizer does in transformers: `before A after` and
/// `before A between B after`. A place in a row counts from its start, and a negative one from its end.
struct SpecialTokenTemplate {
  std::vector<int32_t> before{}, between{}, after{};
  bool has_segments = false;              ///< type 0, and type 1 from the second text on
  bool last_segment_is_own = false;       ///< the last token has type 2 (XLNet)
  int64_t class_place = 0;                ///< of the token that stands for the row
  int64_t no_answer_place = 0;            ///< of the token at which a window without the answer points
  int64_t max_length = int64_t{1} << 40;  ///< the most tokens of a row that the model reads
  bool joins_target = false;              ///< generation: a target follows its source, in a decoder
  int32_t end = -1;                       ///< the token that ends a text; -1: there is none

  /// The special tokens of a row of one text or of two.
  int64_t special_tokens(bool is_pair) const {
    return static_cast<int64_t>(before.size() + (is_pair ? between.size() : 0) + after.size());
  }
};

/// A place in a row of `length` tokens as a position.
inline int64_t position_of(int64_t place, int64_t length) { return place >= 0 ? place : length + place; }

/// The special-token template of a model with its tokenizer: that of the folder which `export` writes of both.
///
/// The class token is the first one of an encoder ([CLS], <s>), the last one of XLNet ([CLS]) and of a decoder (of the
/// text), and the last end of text of an encoder-decoder. A window without the answer points at [CLS] or <s> where the
/// family has it, BART's first token too, else at the class token.
/// Throws ConfigError for a tokenizer without the token that the family's class token is.
/// Source: transformers 5.24, models/*/tokenization_*.py, modeling_*.py (`...ForSequenceClassification`), and the
/// example run_qa.py (`cls_index`).
SpecialTokenTemplate special_token_template(const Tokenizer& tokenizer, const ModelConfig& model);

/// The special-token template of a tokenizer without a model: that of the family that it belongs to, else BERT's, whose
/// class token is [CLS] or <s>, or without one the last token. Throws ConfigError as above.
SpecialTokenTemplate special_token_template(const Tokenizer& tokenizer);

}  // namespace cloze

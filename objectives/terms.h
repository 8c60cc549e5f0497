#pragma once
// The options that objectives share.
#include <cstdint>
#include <string>
#include <vector>

#include "core/config_rule.h"

namespace cloze {

class Limits;
struct ObjectiveSetting;
struct RowSizes;

/// The rows that an objective is trained on; each kind has a RowMaker, and checks of `inspect`.
enum class RowKind {
  masked,      ///< a text or a segment pair, with some tokens masked
  shifted,     ///< the same with labels one position earlier, of a decoder mixed with causal rows
  generative,  ///< a source and a target
  permuted     ///< a text with a factorisation order
};

/// What stands in a source for a corrupted token.
enum class Placeholder { none, sentinel, mask };

/// The options of every objective.
struct ObjectiveTerms {
  static constexpr RowKind rows = RowKind::masked;
  static constexpr const char* share_key = "";     ///< of the value after the colon of a short form, `mlm:0.4`
  static constexpr bool classifies_pairs = false;  ///< predicts a label of a segment pair from the pooled [CLS]
  static constexpr bool predicts_tokens = true;    ///< its loss is one of tokens; false: of labels 0 and 1
  static constexpr bool fills_masks = false;       ///< predicts a masked token from the text on both sides
  static constexpr bool reads_text_pairs = false;  ///< of prepared sources and targets
  double weight = 1.0;
  int64_t from_step = 0;
  int64_t until_step = 0;
  /// The loss counts in optimizer step `step` + 1.
  bool active(int64_t step) const { return step >= from_step && (until_step == 0 || step < until_step); }
};

template <class V>
void describe_terms(V& v, ObjectiveTerms& c, const char* weight) {
  v("weight", c.weight, weight, in_range(0, 1e6));
  v("from_step", c.from_step, "number of optimizer steps before this loss counts", at_least(0));
  v("until_step", c.until_step, "number of optimizer steps after which it no longer counts; 0 = to the end",
    at_least(0));
}

/// The term that keeps the log-sum-exp of the logits near 0. Source: Mesh TensorFlow's
/// softmax_cross_entropy_with_logits; Chowdhery et al. 2022, section 5 (arXiv 2204.02311).
struct ZLoss {
  double z_loss = 0;
};
template <class V>
void describe_z_loss(V& v, ZLoss& c) {
  v("z_loss", c.z_loss, "factor of the squared log-sum-exp of the logits, in training; T5 uses 1e-4", in_range(0, 1));
}

/// The options of every next-token objective.
struct NextTokenTerms : ObjectiveTerms, ZLoss {
  static constexpr RowKind rows = RowKind::generative;
  double label_smoothing = 0;
  bool transform = false;
  /// Special tokens in the rows of a generative objective.
  bool uses_mask() const { return false; }
  bool uses_cls() const { return false; }
  /// What stands in the source of an encoder-decoder for a blank that the decoder fills; none: it fills no blanks.
  Placeholder blank() const { return Placeholder::none; }
  /// In a decoder the target continues the source, with no end token between them.
  bool continues_source() const { return false; }
};

template <class V>
void describe_next_token(V& v, NextTokenTerms& c) {
  describe_terms(v, c, "factor of this loss in the sum");
  v("label_smoothing", c.label_smoothing,
    "share of the label's probability that is spread over all tokens, in training", in_range(0, 1, open_end));
  describe_z_loss(v, c);
}

}  // namespace cloze

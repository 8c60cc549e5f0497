#include <algorithm>
#include <cmath>

#include "core/spelling.h"
#include "core/text.h"
#include "objectives/causal_lm.h"
#include "objectives/limits.h"
#include "objectives/mntp.h"

namespace cloze {

namespace {

/// Rows of a decoder become bidirectional by a prefix.
void check_decoder(const ObjectiveSetting& in, Limits& limits) {
  const auto& m = in.backbone();
  const bool full = is_full(m.attention);
  limits.forbid(!full,
                "objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and "
                "model.attention of kind ",
                kind_of(m.attention), " has none; choose kind: full, or model.architecture: encoder");
  limits.forbid(full && !facts_of(m.positions.relative).prefix,
                "objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and attention "
                "with model.",
                named_in_config(m.positions), " has none; choose other positions, or model.architecture: encoder");
  limits.forbid(is_pair(in.data.packing),
                "objective mntp trains a decoder on rows of one segment, and data.packing is ", in.data.packing,
                "; choose document, full, doc_sentences or full_sentences");
  const double shorter = in.data.short_seq_prob;
  limits.forbid(shorter != 0 && shorter != DataConfig{}.short_seq_prob,
                "objective mntp makes rows of full length for a decoder, and data.short_seq_prob is ",
                shortest(shorter), "; set it to 0");
}

void check_encoder(const MntpConfig& c, const ObjectiveSetting& in, Limits& limits) {
  limits.forbid(c.causal_share > 0, "objective mntp: causal_share ", shortest(c.causal_share),
                " needs causal rows, and model.architecture ", in.backbone().architecture,
                " is bidirectional; set model.architecture: decoder, or causal_share: 0");
  limits.forbid(c.mask_special,
                "objective mntp: mask_special may choose [CLS], which has no earlier position to predict it; set it "
                "to false");
}

/// Every step has rows of both kinds.
void check_causal_share(const MntpConfig& c, const ObjectiveSetting& in, Limits& limits) {
  const double rarer = std::min(c.causal_share, 1 - c.causal_share);
  const int64_t rows = in.batch_size * in.accumulation;
  limits.forbid(c.causal_share > 0 && static_cast<double>(rows) * rarer < 1, "objective mntp: causal_share ",
                shortest(c.causal_share), " gives some steps of ", rows, " sequences no ",
                c.causal_share < 0.5 ? "causal" : "masked", " row; raise train.batch_size or train.accumulation to ",
                std::ceil(1 / rarer), " sequences per step, or change the share");
}

/// The predicted tokens of a row are chosen once; pairs of segments go with rows of an encoder.
void check_companions(const ObjectiveSetting& in, Limits& limits) {
  for (const auto& other : in.objectives) {
    const bool pair = classifies_pairs(other);
    const bool causal = as<ClmConfig>(other);
    if (as<MntpConfig>(other)) continue;
    limits.forbid(in.backbone().is_decoder() || !pair,
                  "objective mntp chooses the predicted tokens of its rows and cannot be combined with ",
                  kind_of(other), "; keep one of them", causal ? ", or set causal_share of mntp for causal rows" : "");
  }
}

}  // namespace

std::string prediction_words(const MntpConfig& c) {
  const auto causal = c.causal_share > 0
                          ? words("; in ", in_percent(c.causal_share), " of the rows every token from those before it")
                          : "";
  return words(masking_words(c), ", each from the position before it", causal);
}

void check_limits(const MntpConfig& c, const ObjectiveSetting& in, Limits& limits) {
  const auto& m = in.backbone();
  check_masking(c.kind, c, in, limits);
  check_static_masking(c.kind, c, maskings_of(c), limits);
  require_lm_head(c.kind, c, c.kind, in, limits);
  forbid_prefix_lm(c.kind, in, limits);
  forbid_two_streams(c.kind, in, limits);
  if (m.is_two_stream()) return;
  limits.forbid(m.is_encoder_decoder(), "objective mntp trains a single stack, and model.architecture of ",
                kind_of(in.model), " is ", m.architecture,
                "; set it to decoder or encoder, or choose another objective");
  if (m.is_encoder_decoder()) return;
  if (m.is_decoder())
    check_decoder(in, limits);
  else
    check_encoder(c, in, limits);
  check_causal_share(c, in, limits);
  check_companions(in, limits);
}

}  // namespace cloze

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "models/transformer_config.h"
#include "models/layers/cost.h"
#include "objectives/constraints.h"
#include "objectives/mntp/mntp.h"

namespace cloze {

namespace {

/// Rows of a decoder become bidirectional by a prefix.
void check_decoder(const ObjectiveSetting& in, Constraints& constraints) {
  const auto* transformer = as<TransformerConfig>(in.model);
  constraints.forbid(!transformer,
                     "objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and ",
                     kind_of(in.model), " has no attention; choose clm, or another model");
  if (!transformer) return;
  const auto& m = *transformer;
  const bool full = is_full(m.attention);
  constraints.forbid(!full,
                     "objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and "
                     "model.attention of kind ",
                     kind_of(m.attention), " has none; choose kind: full, or model.architecture: encoder");
  constraints.forbid(
      full && !position_facts(m.positions.relative).prefix,
      "objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and attention "
      "with model.",
      named_in_config(m.positions), " has none; choose other positions, or model.architecture: encoder");
  constraints.forbid(is_pair(in.data.packing),
                     "objective mntp trains a decoder on rows of one segment, and data.packing is ", in.data.packing,
                     "; choose document, full, doc_sentences or full_sentences");
  const double shorter = in.data.short_seq_prob;
  constraints.forbid(shorter != 0 && shorter != DataConfig{}.short_seq_prob,
                     "objective mntp makes rows of full length for a decoder, and data.short_seq_prob is ", shorter,
                     "; set it to 0");
}

void check_encoder(const MntpConfig& c, const ObjectiveSetting& in, Constraints& constraints) {
  constraints.forbid(c.causal_share > 0, "objective mntp: causal_share ", c.causal_share,
                     " needs causal rows, and model.architecture ", in.backbone().architecture,
                     " is bidirectional; set model.architecture: decoder, or causal_share: 0");
  constraints.forbid(
      c.mask_special,
      "objective mntp: mask_special may choose [CLS], which has no earlier position to predict it; set it "
      "to false");
}

/// Every step has rows of both kinds.
void check_causal_share(const MntpConfig& c, const ObjectiveSetting& in, Constraints& constraints) {
  const double rarer = std::min(c.causal_share, 1 - c.causal_share);
  const int64_t rows = in.batch_size * in.accumulation;
  constraints.forbid(c.causal_share > 0 && static_cast<double>(rows) * rarer < 1, "objective mntp: causal_share ",
                     c.causal_share, " gives some steps of ", rows, " sequences no ",
                     c.causal_share < 0.5 ? "causal" : "masked",
                     " row; raise train.batch_size or train.accumulation to ", std::ceil(1 / rarer),
                     " sequences per step, or change the share");
}

/// The predicted tokens of a row are chosen once; pairs of segments go with rows of an encoder.
void check_companions(const ObjectiveSetting& in, Constraints& constraints) {
  for (const auto& other : in.objectives) {
    const bool pair = as_kind(other).pairs().has_value();
    const bool causal = as<ClmConfig>(other);
    if (as<MntpConfig>(other)) continue;
    constraints.forbid(in.backbone().is_decoder() || !pair,
                       "objective mntp chooses the predicted tokens of its rows and cannot be combined with ",
                       kind_of(other), "; keep one of them",
                       causal ? ", or set causal_share of mntp for causal rows" : "");
  }
}

}  // namespace

std::string MntpConfig::prediction() const {
  const auto causal = causal_share > 0
                          ? concat("; in ", in_percent(causal_share), " of the rows every token from those before it")
                          : "";
  return concat(masking_words(*this), ", each from the position before it", causal);
}

void MntpConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  const auto& m = in.backbone();
  check_masking(kind, *this, in, constraints);
  check_static_masking(kind, *this, maskings(), constraints);
  require_lm_head(kind, *this, kind, in, constraints);
  forbid_prefix_lm(kind, in, constraints);
  forbid_two_streams(kind, in, constraints);
  if (m.is_two_stream()) return;
  constraints.forbid(m.is_encoder_decoder(), "objective mntp trains a single stack, and model.architecture of ",
                     kind_of(in.model), " is ", m.architecture,
                     "; set it to decoder or encoder, or choose another objective");
  if (m.is_encoder_decoder()) return;
  if (m.is_decoder())
    check_decoder(in, constraints);
  else
    check_encoder(*this, in, constraints);
  check_causal_share(*this, in, constraints);
  check_companions(in, constraints);
}

void MntpConfig::expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const {
  expect_masks(maskings(), rows);
  if (!in.backbone().is_decoder()) return;
  auto& masked = rows.at(0);
  auto causal = masked;
  causal.count = causal_share * masked.count;
  causal.predicted = causal.length;
  causal.read = causal.length;
  masked.count -= causal.count;
  masked.prefix = masked.length;
  rows.push_back(causal);
}

std::vector<ScoringForm> MntpConfig::forms(const BackboneConfig& model) const {
  auto forms = masked_forms();
  if (model.is_decoder() && causal_share > 0) forms.push_back(ScoringForm::likelihood);
  return forms;
}

ObjectiveConfig MntpConfig::standard_form() const {
  MntpConfig standard;
  standard.causal_share = causal_share;
  standard.transform = transform;
  return standard;
}

Objectives MntpConfig::separate_losses() const {
  if (causal_share == 0) return {};
  auto masked = *this;
  masked.causal_share = 0;
  masked.weight *= 1 - causal_share;
  auto shared = causal();
  shared.weight *= causal_share;
  return {masked, shared};
}

ClmConfig MntpConfig::causal() const {
  ClmConfig causal;
  static_cast<ObjectiveTerms&>(causal) = *this;
  static_cast<NextTokenTerms&>(causal) = *this;
  return causal;
}

std::string MntpConfig::generation_warning() const {
  return causal_share > 0 ? ""
                          : "was trained by mntp with causal_share 0, so it has not learned causal prediction; for "
                            "better text, train it with causal rows";
}

}  // namespace cloze

#pragma once
// Masked next-token prediction, alone and mixed with causal language modelling.
#include <cmath>

#include "objectives/clm/clm.h"
#include "objectives/masking_config.h"

namespace cloze {

/// Masked next-token prediction (MNTP), and the hybrid of GPT-BERT (Charpentier and Samuel 2024, arXiv 2410.24159,
/// section 2). A masked language model predicts a masked token from the hidden state at its own position, a causal
/// language model the next token. MNTP shifts the label of a masked token one position earlier, so that the state at
/// position t predicts token t + 1 in both, and one network with one head learns both. A fixed share of the rows of a
/// batch is causal, the others are masked and bidirectional; nothing else tells the network which is which. The result
/// generates like a decoder and fills masks like an encoder. MNTP alone is also the first step of LLM2Vec (BehnamGhader
/// et al. 2024, arXiv 2404.05961, section 2), which makes a trained decoder bidirectional.
///
/// loss     (1 - causal_share) mean over masked predictions + causal_share mean over causal predictions
/// rows     of a decoder: the rows of clm; a masked row is bidirectional by its `prefix`, a causal row is unchanged
///          of an encoder: the rows of mlm, all masked
/// masking  `like: gpt-bert`, spans of 1 to 3 tokens; the share of masked tokens decreases from 30 to 15 % in training
///
/// causal_share is 0 by default, so that the objective does what its name says, on encoders too. Best in the paper: one
/// row in 16 (configs/gpt-bert).
/// Source: ltgoslo/gpt-bert, pretraining/dataset.py, train_multi_gpu.py and model_extra.py. Differs: a mean is over all
/// predictions of its kind in a step (there: over the means of GPUs, each with rows of one kind); documents in one row
/// attend to each other (there they do not); and the masking, as noted there.
struct MntpConfig final : KindOf<MntpConfig>, NextTokenTerms, Masking, StaticMasking {
  static constexpr const char* kind = "mntp";
  MntpConfig() {
    initial_mlm_probability = 0.3;
    count = CountRule::stochastic;  // what follows is what `like: gpt-bert` says
    count_special = false;
    unit = MaskingUnit::token_span;
    span_p = 0;
    max_span_length = 3;
    random_from = RandomFrom::words;
    draw_per = DrawPer::span;
  }
  double causal_share = 0;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  const NextTokenTerms* next_token() const override { return this; }
  bool makes_rows() const override { return true; }
  std::vector<MaskingPart> maskings() const override { return {{*this, 1}}; }
  int64_t versions() const override { return dupe_factor; }
  bool fills_masks() const override { return true; }
  bool predicts_shifted() const override { return true; }
  std::vector<ScoringForm> forms(const BackboneConfig& model) const override;
  const char* rate_key() const override { return "mlm_probability"; }
  /// The same share of causal rows, the same head.
  ObjectiveConfig standard_form() const override;
  /// Of a hybrid its masked and its causal loss.
  Objectives separate_losses() const override;
  std::string generation_warning() const override;
  /// The objective of its causal rows, with all of the weight.
  ClmConfig causal() const;
};

template <class V>
void describe(V& v, MntpConfig& c) {
  describe_next_token(v, c);
  v("transform", c.transform,
    "the LM head has a dense layer, an activation and a norm before the output embedding, as in GPT-BERT; false = none "
    "of them, as in GPT-2");
  v("causal_share", c.causal_share,
    "share of causal rows, and weight of their mean loss; 0.0625 in GPT-BERT; 0 = all rows are masked",
    in_range(0, 1, open_end));
  describe(v, static_cast<Masking&>(c));
  describe_static_masking(v, c);
}

/// The number of causal rows among sequences [0, count). Any n consecutive sequences have n times the share, rounded
/// down or up.
inline uint64_t causal_rows(double fraction, uint64_t count) {
  return static_cast<uint64_t>(std::floor(static_cast<double>(count) * fraction));
}
/// Whether sequence number `sequence` is a causal row. Batch size, accumulation and workers do not matter.
inline bool is_causal_row(double fraction, uint64_t sequence) {
  return causal_rows(fraction, sequence + 1) > causal_rows(fraction, sequence);
}

std::shared_ptr<Objective> make_head(const MntpConfig& config, const HeadContext& in);
std::unique_ptr<RowMaker> make_rows(const MntpConfig& config, const RowContext& context);

}  // namespace cloze

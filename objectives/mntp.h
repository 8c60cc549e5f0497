#pragma once
// Masked next-token prediction, alone and mixed with causal language modelling.
#include <cmath>

#include "objectives/masked_lm.h"
#include "objectives/setting.h"

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
struct MntpConfig : NextTokenTerms, Masking {
  static constexpr const char* kind = "mntp";
  MntpConfig() {
    apply_gpt_bert(*this);
    initial_mlm_probability = 0.3;
  }
  double causal_share = 0;
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
}

inline std::vector<MaskingPart> maskings_of(const MntpConfig& mntp) { return {{mntp, 1}}; }

/// The number of causal rows among sequences [0, count). Any n consecutive sequences have n times the share, rounded
/// down or up.
inline uint64_t causal_rows(double share, uint64_t count) {
  return static_cast<uint64_t>(std::floor(static_cast<double>(count) * share));
}
/// Whether sequence number `sequence` is a causal row. Batch size, accumulation and workers do not matter.
inline bool is_causal_row(double share, uint64_t sequence) {
  return causal_rows(share, sequence + 1) > causal_rows(share, sequence);
}

/// The limits of the objective that a run violates, one sentence each, with the value and a remedy.
inline std::vector<std::string> limits_of(const MntpConfig& c, const ObjectiveSetting& in) {
  std::vector<std::string> broken;
  const auto& m = backbone_of(in.model);
  if (m.is_two_stream()) return broken;  // only plm trains two streams
  if (m.is_encoder_decoder()) {
    broken.push_back(words("objective mntp trains a single stack, and model.architecture of ", kind_of(in.model),
                           " is ", m.architecture, "; set it to decoder or encoder, or choose another objective"));
    return broken;
  }
  const char* attention = std::visit([](const auto& a) { return a.kind; }, m.attention);
  const bool full = std::holds_alternative<FullAttention>(m.attention);
  if (m.is_decoder() && !full)
    broken.push_back(words("objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and ",
                           "model.attention of kind ", attention,
                           " has none; choose kind: full, or model.architecture: encoder"));
  if (m.is_decoder() && full && (m.relative_positions > 0 || m.has_relative_keys()))
    broken.push_back(words("objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and ",
                           "attention with relative_positions ", m.relative_positions, " and position_embeddings ",
                           m.position_embeddings,
                           " has none; set relative_positions to 0 and position_embeddings to learned, or choose "
                           "model.architecture: encoder"));
  if (!m.is_decoder() && c.causal_share > 0)
    broken.push_back(words("objective mntp: causal_share ", shortest(c.causal_share),
                           " needs causal rows, and model.architecture ", m.architecture,
                           " is bidirectional; set model.architecture: decoder, or causal_share: 0"));
  const double rarer = std::min(c.causal_share, 1 - c.causal_share);
  if (c.causal_share > 0 && static_cast<double>(in.rows_per_step) * rarer < 1)
    broken.push_back(words("objective mntp: causal_share ", shortest(c.causal_share), " gives some steps of ",
                           in.rows_per_step, " sequences no ", c.causal_share < 0.5 ? "causal" : "masked",
                           " row; raise train.batch_size or train.accumulation to ", std::ceil(1 / rarer),
                           " sequences per step, or change the share"));
  if (!m.is_decoder() && c.mask_special)
    broken.push_back(
        "objective mntp: mask_special may choose [CLS], which has no earlier position to predict it; set it to false");
  for (const auto& other : in.companions)
    if (m.is_decoder() || (other != "nsp" && other != "sop"))
      broken.push_back(words("objective mntp chooses the predicted tokens of its rows and cannot be combined with ",
                             other, "; keep one of them",
                             other == "clm" ? ", or set causal_share of mntp for causal rows" : ""));
  if (m.is_decoder() && is_pair(in.data.packing))
    broken.push_back(words("objective mntp trains a decoder on rows of one segment, and data.packing is ",
                           in.data.packing, "; choose document, full, doc_sentences or full_sentences"));
  if (m.is_decoder() && in.data.short_seq_prob != 0 && in.data.short_seq_prob != DataConfig{}.short_seq_prob)
    broken.push_back(words("objective mntp makes rows of full length for a decoder, and data.short_seq_prob is ",
                           shortest(in.data.short_seq_prob), "; set it to 0"));
  return broken;
}

}  // namespace cloze

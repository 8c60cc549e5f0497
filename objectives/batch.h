#pragma once
// What training reads in one forward pass, and what it gets back.
#include <optional>

#include "models/backbone.h"

namespace cloze {

/// Rows of tokens with what is to be predicted. Made on a worker thread; no model, no device.
struct Batch {
  Tensor input_ids;              ///< int64 [B, T], corrupted
  Tensor attention_mask;         ///< bool [B, T], true = a real token; undefined when nothing is padded
  Tensor token_type_ids;         ///< int64 [B, T]
  Tensor global_attention_mask;  ///< bool [B, T]; undefined: as the model's config says
  Tensor positions;              ///< int64 [N], predicted places in the flattened [B T]
  Tensor labels;                 ///< int64 [N], their tokens
  Tensor pair_label;             ///< int64 [B]: 0 = B follows A, 1 = random or swapped
  Tensor
      prefix;  ///< int64 [B], of a decoder alone: so many tokens, from the first on, are seen by all; undefined: none
  Tensor decoder_input_ids;  ///< int64 [B, U], what a decoder reads; positions are then places in the flattened [B U]
  Tensor decoder_attention_mask;  ///< bool [B, U], true = a token that those behind it may see; undefined: all are
  Tensor visible;                 ///< bool [B, T, T], true = this query may see this key; undefined: all it may
  Tensor backward;          ///< bool [B], true = the text of this row runs from right to left; undefined: none does
  Tensor target_positions;  ///< int64 [B, N], places that a query stream predicts, -1 = none; positions are then places
                            ///< in the flattened [B N]
  std::vector<Tensor> memories;  ///< [B, M, D] for each layer, of the segments before these; empty: none
  Tensor replaced;               ///< int64 [B, T], 1 = not the text's token; undefined until `rtd` has replaced some
  int64_t tokens = 0;            ///< real tokens, padding not counted
  int64_t forced_pairs = 0;      ///< rows whose pair label was not drawn
  bool continues = false;  ///< rows go on where the same rows of the step before stopped, and may read its memories

  std::vector<Tensor*> tensors() {
    std::vector<Tensor*> all{
        &input_ids,        &attention_mask, &token_type_ids,    &global_attention_mask,  &positions, &labels,
        &pair_label,       &prefix,         &decoder_input_ids, &decoder_attention_mask, &visible,   &backward,
        &target_positions, &replaced};
    for (auto& memory : memories) all.push_back(&memory);
    return all;
  }
};

/// Answers to a question of yes (label 1: random, swapped, replaced) or no.
struct YesNo {
  int64_t yes = 0;       ///< labels that are 1
  int64_t answered = 0;  ///< answers that are 1
  int64_t both = 0;      ///< where both are
};
inline YesNo& operator+=(YesNo& all, const YesNo& some) {
  all.yes += some.yes;
  all.answered += some.answered;
  all.both += some.both;
  return all;
}

/// Single predictions of a held-out loss.
struct Predictions {
  Tensor row{};   ///< int64 [N], its row of the batch
  Tensor loss{};  ///< fp32 [N]
};

/// One loss of a step.
struct LossPart {
  std::string name;  ///< `mlm`, `nsp`, `sop`, `rtd`, `generator`
  double weight = 1;
  Tensor sum{};                   ///< fp32 [], summed over `count`
  int64_t count = 0;              ///< predictions
  int64_t correct = 0;            ///< predictions whose arg max was right
  std::optional<YesNo> yes_no{};  ///< of nsp, sop, rtd
  Predictions single{};           ///< where no gradient is wanted
};

}  // namespace cloze

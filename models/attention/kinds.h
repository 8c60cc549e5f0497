#pragma once
// The kinds of attention: a config's attention is one of them. Field names are those of Hugging Face's config.json.
// Only files that name a kind include this one; others know AttentionConfig (sizes.h).
//
// Each is a struct in a header of its own with
//   kind                         its name in a config, and a `describe` of its options
//   bounds_length                true: it is made for max_position_embeddings tokens at most
//   causal                       true: a decoder may have it
//   takes_unpadded_rows()        it takes rows without their padding, where the positions do
//   make(sizes, layer, scheme)   the attention of a layer, from 0, with these positions
// and may have
//   check(sizes, layers, constraints) what it forbids in a stack of so many layers
//   weights(sizes)               the weights that it adds to the projections of a block
#include <variant>

#include "models/attention/alternating.h"
#include "models/attention/bigbird.h"
#include "models/attention/full.h"
#include "models/attention/linformer.h"
#include "models/attention/performer.h"
#include "models/attention/window.h"

namespace cloze {

struct AttentionKind : std::variant<FullAttention, WindowAttention, AlternatingAttention, PerformerAttention,
                                    LinformerAttention, BigBirdAttention> {
  using variant::variant;
};

}  // namespace cloze

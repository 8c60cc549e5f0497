#pragma once
// The sizes and the positions of attention, whatever its kind. Field names are those of Hugging Face's config.json.
#include <cstdint>
#include <memory>
#include <string>

#include "core/config/boxed.h"
#include "core/config/config_rule.h"
#include "models/layers/config.h"
#include "models/positions/config.h"

namespace cloze {

struct Attention;
struct PositionScheme;
/// One of the kinds in models/attention/kinds.h.
struct AttentionKind;
extern template class Boxed<AttentionKind>;
using AttentionConfig = Boxed<AttentionKind>;

/// `full`, `window`, ...
std::string kind_of(const AttentionConfig& attention);
/// Every query scores every key.
bool is_full(const AttentionConfig& attention);
/// The attention is made for max_position_embeddings tokens at most, also in a model without position table.
bool bounds_length(const AttentionConfig& attention);

/// This attention computes these positions.
bool computes(const AttentionConfig& attention, const RelativePositions& relative);
/// The kinds of attention that do, for messages: `full`, `full or alternating`.
std::string attention_for(const RelativePositions& relative);
/// With these positions, the attention takes rows without their padding (AttentionContext::unpadded).
bool takes_unpadded_rows(const AttentionConfig& attention, const RelativePositions& relative);

struct AttentionSizes;
/// What its kind forbids in a stack of so many layers.
void check_attention(const AttentionSizes& sizes, int64_t layers, bool is_decoder, Constraints& constraints);
/// The weights that its kind adds to the projections of a block.
double weights_of_attention(const AttentionSizes& sizes);

/// Sizes and options of the attention in every layer of a stack. A stack has its LayerSizes once, as a stack and as a
/// backbone.
struct AttentionSizes : virtual LayerSizes {
  int64_t num_attention_heads = 12;
  int64_t d_kv = 0;  ///< head width; 0: hidden_size / num_attention_heads
  int64_t max_position_embeddings = 512;
  Positions positions{};
  AttentionConfig attention{};
  bool attention_bias = true;  ///< projections of attention have biases
  bool scale_scores = true;    ///< by 1 / sqrt(C)

  int64_t head_width() const { return d_kv > 0 ? d_kv : hidden_size / num_attention_heads; }
  /// Width of all heads together.
  int64_t heads_width() const { return head_width() * num_attention_heads; }
};

}  // namespace cloze

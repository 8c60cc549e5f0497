#pragma once
// The options of a two-stream model.
#include "models/transformer_config.h"

namespace cloze {

/// The direction of attention in a two-stream model.
enum class AttentionDirection { bi, uni };
constexpr auto choices(AttentionDirection) {
  return std::array{Choice{AttentionDirection::bi, "bi", "bidirectional"},
                    Choice{AttentionDirection::uni, "uni", "causal"}};
}

/// Two-stream attention with relative positions and recurrence memory (mems).
struct TwoStreamConfig : TransformerConfig {
  AttentionDirection attn_type = AttentionDirection::bi;
  int64_t clamp_len = -1;
  int64_t mem_len = 0;
  int64_t reuse_len = 0;
  bool bi_data = false;
  bool same_length = false;

  TwoStreamConfig() { architecture = Architecture::two_stream; }
  /// Training carries the mems of a segment to the next one.
  bool carries_mems() const { return mem_len > 0 && reuse_len > 0; }
  double carried_numbers() const override;
};

}  // namespace cloze

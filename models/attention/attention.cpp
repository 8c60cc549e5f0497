// The attention layer that a config names.
#include "core/error.h"
#include "models/attention/kinds.h"
#include "models/attention/attention.h"

namespace cloze {

Tensor Attention::mix_cached(const Tensor&, Tensor&, const AttentionContext&) {
  fail<ConfigError>(
      "this model's attention has no key-value cache, so it generates no text; train one with model.attention.kind: "
      "full, model.relative_positions: 0 and a position table");
}

std::shared_ptr<Attention> make_attention(const AttentionSizes& config, int64_t layer, PositionScheme& positions) {
  require<ConfigError>(config.d_kv > 0 || config.hidden_size % config.num_attention_heads == 0, "hidden_size ",
                       config.hidden_size, " is not a multiple of num_attention_heads ", config.num_attention_heads,
                       "; choose a width that the heads divide");
  const auto& relative = config.positions.relative;
  require<ConfigError>(computes(config.attention, relative), named_in_config(config.positions),
                       " needs attention of kind ", attention_for(relative), "; choose that");
  require<ConfigError>(!position_facts(relative).even_heads || config.head_width() % 2 == 0, "heads of width ",
                       config.head_width(), " are odd, and rotary positions rotate pairs; choose an even width");
  return std::visit([&](const auto& kind) { return kind.make(config, layer, positions); }, *config.attention);
}

}  // namespace cloze

#include "core/error.h"
#include "models/stack.h"

namespace cloze {

namespace {

StackConfig stack_of(const BertConfig& c) {
  return {.hidden_size = c.hidden_size,
          .num_layers = c.num_hidden_layers,
          .num_heads = c.num_attention_heads,
          .intermediate_size = c.intermediate_size,
          .activation = c.hidden_act,
          .hidden_dropout = c.hidden_dropout_prob,
          .attention_dropout = c.attention_probs_dropout_prob,
          .norm_eps = c.layer_norm_eps,
          .causal = c.is_decoder,
          .attention = c.attention};
}

/// BERT. Source: Devlin et al. 2019, section 3 (arXiv 1810.04805).
struct Bert final : Backbone {
  Bert(const BertConfig& c, const BackboneParts& parts)
      : config(c),
        embeddings(own("embeddings", std::make_shared<Embeddings>(c.vocab_size, c.hidden_size, c.max_position_embeddings,
                                                                  c.type_vocab_size, c.layer_norm_eps))),
        stack(own("stack", std::make_shared<Stack>(stack_of(c)))) {
    if (parts.pooler) pooler = own("pooler", std::make_shared<Linear>(c.hidden_size, c.hidden_size));
    if (c.freeze_pad_embedding) embeddings->word.set_frozen_row(c.pad_token_id);
  }

  Tensor hidden(const Inputs& in, Trace* trace) override {
    const Dropout drop{.p = config.hidden_dropout_prob, .key = in.dropout_key, .active = is_training()};
    const auto x = embeddings->forward(in.input_ids, in.token_type_ids, drop);   // [B, T, D]
    return stack->forward(x, {.key_mask = in.attention_mask}, drop, trace);
  }

  Tensor pooled(const Tensor& hidden) override {
    require<ShapeError>(pooler != nullptr, "this network was built without a pooler; no objective asked for one");
    return at::tanh(pooler->forward(hidden.select(1, 0)));   // [B, D]
  }

  const Param& token_embedding() const override { return embeddings->word; }
  int64_t hidden_size() const override { return config.hidden_size; }
  bool has_pooler() const override { return pooler != nullptr; }
  void set_gradient_checkpointing(bool on) override { stack->gradient_checkpointing = on; }

  BertConfig config;
  std::shared_ptr<Embeddings> embeddings;
  std::shared_ptr<Stack> stack;
  std::shared_ptr<Linear> pooler;
};

}  // namespace

std::shared_ptr<Backbone> make_bert(const BertConfig& config, const BackboneParts& parts) {
  require<ConfigError>(config.vocab_size > 0, "model.vocab_size is 0; name the number of rows of the token embedding");
  return std::make_shared<Bert>(config, parts);
}

}  // namespace cloze

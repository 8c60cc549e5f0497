#include "core/error.h"
#include "models/attention/kinds.h"
#include "models/backbone.h"
#include "models/embeddings.h"
#include "models/initialization.h"
#include "models/stack.h"

namespace cloze {

namespace {

/// Embeddings, their projection where their width is not the stack's, the stack, and a pooler over the first token.
/// Source: Devlin et al. 2019, section 3.
struct SingleStack final : Backbone {
  SingleStack(const TransformerConfig& c, const BackboneParts& parts)
      : config(c),
        prefix(parts.stack.prefix),
        embeddings(parts.embeddings && !parts.own_norm
                       ? parts.embeddings
                       : own("embeddings", make_embeddings(c, parts.embeddings ? TiedTables{parts.embeddings->word,
                                                                                            parts.embeddings->position}
                                                                               : TiedTables{}))) {
    if (parts.projection.always_project_embeddings || c.embedding_width() != c.hidden_size)
      projection = own("projection", std::make_shared<Linear>(c.embedding_width(), c.hidden_size));
    if (projection && parts.projection.xavier_embedding_projection && c.initializer == Initializer::truncated_normal)
      set_xavier(projection->weight);
    stack = own("stack", std::make_shared<Stack>(stack_of(c), parts.stack));
    if (!parts.pooler) return;
    pooler = own("pooler", std::make_shared<Linear>(c.hidden_size, c.hidden_size));
    set_depth(*pooler, Param::head_depth);
    for (auto [name, param] : pooler->own_params()) param.set_frozen(parts.frozen_pooler);
  }

  Tensor hidden(const Inputs& in, Traces* traces) override {
    const auto trace = traces ? &traces->encoder : nullptr;
    auto [ids, context, drop] =
        stack->input(in, {in.input_ids, in.token_type_ids, positions(in.input_ids), in.input_embeddings},
                     {.p = config.hidden_dropout_prob, .key = in.dropout_key, .active = is_training()}, trace);
    context.prefix = in.prefix;
    context.global_mask = globals(in);
    context.first_is_global = context.global_mask.defined() && !in.global_attention_mask.defined();
    context.globals = context.first_is_global ? 1 : 0;
    auto x = embeddings->forward(ids, drop);  // [B, T, E]
    if (projection) x = projection->forward(x);
    return stack->forward(x, context, drop, trace, nullptr, nullptr, in.read_positions);
  }

  Tensor decode(const Tensor& ids, const EncoderOutput&, DecoderState& state, const Tensor& attention_mask,
                const Tensor& read_positions) override {
    if (!config.is_decoder()) return Backbone::decode(ids, {}, state);
    require<ConfigError>(stack->depth() > 0,
                         "a decoder without layers has no key-value cache; raise model.num_hidden_layers");
    stack->begin(state);
    const auto index = position_ids_after(ids, state.of_tokens[0]);
    const auto positions =
        attention_mask.defined() ? (attention_mask.cumsum(1) - 1).clamp_min(0).gather(1, index) : index;
    auto x = embeddings->forward(
        {ids, {}, positions + (config.positions_after_padding ? config.pad_token_id + 1 : config.position_offset)}, {});
    if (projection) x = projection->forward(x);
    AttentionContext context{.key_mask = attention_mask};
    // The tokens of the first call are the prefix.
    if (prefix.prefix_lm) context.prefix = at::ones_like(ids).sum(1) * index.select(1, 0).eq(0);
    return stack->forward(x, context, {}, nullptr, nullptr, &state, read_positions);
  }
  bool decodes() const override { return config.is_decoder() && stack->has_cache(); }

  /// The global tokens of window attention; undefined: none.
  Tensor globals(const Inputs& in) const {
    const auto* window = std::get_if<WindowAttention>(&*config.attention);
    if (!window || in.global_attention_mask.defined()) return window ? in.global_attention_mask : Tensor();
    return window->global_tokens == GlobalTokens::first ? at::ones_like(in.input_ids).cumsum(1).eq(1) : Tensor();
  }

  /// Position ids int64 [B, T]; undefined: 0, 1, 2, ... Source: fairseq, utils.make_positions.
  Tensor positions(const Tensor& ids) const {
    if (!embeddings->position.defined()) return {};
    if (!config.positions_after_padding)
      return config.position_offset > 0 ? at::ones_like(ids).cumsum(1) + (config.position_offset - 1) : Tensor();
    const auto real = ids.ne(config.pad_token_id).to(at::kLong);
    return real.cumsum(1) * real + config.pad_token_id;
  }

  Tensor pooled(const Tensor& hidden) override {
    require<ShapeError>(pooler != nullptr, "this network has no pooler: no objective needs one");
    return at::tanh(pooler->forward(hidden.select(1, 0)));  // [B, D]
  }

  double multiply_adds(const std::vector<RowSizes>& rows) const override {
    double sum = projection ? total(rows, &RowSizes::length) * projection->multiply_adds() : 0;
    for (const auto& row : rows) sum += row.count * stack->multiply_adds(row);
    return sum;
  }
  double pooling_multiply_adds() const override { return pooler ? pooler->multiply_adds() : 0; }

  const Param& token_embedding() const override { return embeddings->word; }
  const std::shared_ptr<Embeddings>& embedding_tables() const override { return embeddings; }
  bool has_pooler() const override { return pooler != nullptr; }
  void set_gradient_checkpointing(bool on) override { stack->gradient_checkpointing = on; }

  static StackConfig stack_of(const TransformerConfig& c) {
    StackConfig stack = c;
    stack.causal = c.is_decoder();
    return stack;
  }

  TransformerConfig config;
  PrefixAttention prefix;
  std::shared_ptr<Embeddings> embeddings;
  std::shared_ptr<Linear> projection, pooler;
  std::shared_ptr<Stack> stack;
};

}  // namespace

std::shared_ptr<Backbone> make_single_stack(const TransformerConfig& config, const BackboneParts& parts) {
  auto made = std::make_shared<SingleStack>(config, parts);
  set_init_ranges(*made, config);
  return made;
}

}  // namespace cloze

#include "core/error.h"
#include "core/tensor/plain.h"
#include "core/tensor/recompute.h"
#include "models/attention/attention.h"
#include "models/backbone.h"
#include "models/embeddings.h"
#include "models/initialization.h"

namespace cloze {

namespace {

/// Masks and distances between the queries of one stream and the keys: T queries of the content, N of the targets.
struct StreamMask {
  Tensor visible{};          ///< bool [B, T | N, S], true = the query may attend to the key; undefined: to all
  Tensor segments_differ{};  ///< bool [B, T | N, S], true = query and key are of different segments; undefined: no
                             ///< segments
  Tensor distance_offset{};  ///< int64 [B, N], index in `distances` of the distance to key 0; undefined: T - t
};
/// The attention inputs that all layers share.
struct AttentionInputs {
  StreamMask content{}, query{};
  Tensor distances{};  ///< [1, S + T, D] sinusoids of the distances S, S - 1, ..., 1 - T; [2, S + T, D]: and of their
                       ///< negatives
  Tensor backward{};   ///< int64 [B], 1 = this row uses the negative distances; undefined: no row does
};
/// The content stream h [B, T, D], and the query stream g [B, N, D] if there are targets.
struct Streams {
  Tensor h, g;
};

/// Attention of both streams over the mems and the content stream.
/// Source: Yang et al. 2019, sections 2.3 to 2.5; Dai et al. 2019, section 3.3.
struct TwoStreamAttention : Layer {
  explicit TwoStreamAttention(const StackConfig& c) : heads(c.num_attention_heads) {
    const auto linear = [&](const char* name, int64_t in, int64_t out, int64_t stacked = 1) {
      return own(name, std::make_shared<Linear>(in, out, /*with_bias=*/false, stacked));
    };
    query = linear("query", c.hidden_size, c.heads_width());
    key_value = linear("key_value", c.hidden_size, 2 * c.heads_width(), 2);
    position = linear("position", c.hidden_size, c.heads_width());
    output = linear("output", c.heads_width(), c.hidden_size);
    output->weight.set_projection(Projection::residual);
    const auto bias = [&](const char* name) {
      return own_param(name, {heads, c.head_width()}, Init::weight, Role::score_bias);
    };
    r_w_bias = bias("r_w_bias");
    r_r_bias = bias("r_r_bias");
    r_s_bias = bias("r_s_bias");
    seg_embed = own_param("seg_embed", {2, heads, c.head_width()}, Init::weight);
  }

  /// The concatenated heads of both streams, [B, T, H C] and [B, N, H C], before the output projection; keys and values
  /// are computed once. `content` false: the content stream's output is not needed, and not computed.
  Streams mix(const Streams& x, bool content, const Tensor& mem, const AttentionInputs& shared,
              const Dropout& on_content, const Dropout& on_query, std::vector<Tensor>* probabilities) const {
    const auto source = mem.defined() ? at::cat({mem.to(x.h.scalar_type()), x.h}, 1) : x.h;  // [B, S, D]
    const auto kv = key_value->forward(source);
    const auto r = position->forward(shared.distances.to(x.h.scalar_type()));  // [1 or 2, S + T, H C]
    const auto attend = [&](const Tensor& stream, const StreamMask& mask, const Dropout& drop) {
      return relative_attention(query->forward(stream), kv, r, heads,
                                {.r_w = r_w_bias,
                                 .r_r = r_r_bias,
                                 .r_s = r_s_bias,
                                 .segments = seg_embed,
                                 .distance_offset = mask.distance_offset,
                                 .distance_list = shared.backward,
                                 .segments_differ = mask.segments_differ,
                                 .visible = mask.visible,
                                 .probabilities = probabilities},
                                drop);
    };
    return {content ? attend(x.h, shared.content, on_content) : Tensor(),
            x.g.defined() ? attend(x.g, shared.query, on_query) : Tensor()};
  }

  /// Multiply-adds of one stream: its projections, and for each key a score by content, one by distance and a value.
  /// A query has a score for each of the two kinds of segments.
  double multiply_adds(double queries, double keys) const {
    const auto width = static_cast<double>(output->weight.value().size(1));
    return queries * (query->multiply_adds() + output->multiply_adds() + (3 * keys + 2) * width);
  }

  int64_t heads;
  std::shared_ptr<Linear> query, key_value, position, output;
  Param r_w_bias, r_r_bias, r_s_bias, seg_embed;  // [H, C]; [2, H, C]: same segment, different segments
};

/// Two-stream attention, then feed-forward, each followed by dropout, residual and norm. The streams share all weights.
struct TwoStreamBlock : Layer {
  explicit TwoStreamBlock(const StackConfig& c) : config(c) {
    attention = own("attention", std::make_shared<TwoStreamAttention>(c));
    attention_norm = own("attention_norm", std::make_shared<Norm>(c.hidden_size, c));
    output_norm = own("output_norm", std::make_shared<Norm>(c.hidden_size, c));
    intermediate = own("intermediate", std::make_shared<Linear>(c.hidden_size, c.intermediate_size));
    output = own("output", std::make_shared<Linear>(c.intermediate_size, c.hidden_size));
    output->weight.set_projection(Projection::residual);
  }
  static constexpr uint32_t sites = 8;  ///< number of dropout sites in a block, four for each stream

  /// `content` false: the content stream after this block is not needed, and not computed.
  Streams forward(const Streams& x, bool content, const Tensor& mem, const AttentionInputs& shared, const Dropout& drop,
                  std::vector<Tensor>* probabilities) const {
    const auto at_site = [&](double p, uint32_t site) {
      return Dropout{.p = p, .key = drop.key, .site = drop.site + site, .active = drop.active};
    };
    const double on_scores = config.attention_probs_dropout_prob;
    const auto mixed =
        attention->mix(x, content, mem, shared, at_site(on_scores, 0), at_site(on_scores, 4), probabilities);
    const auto after_attention = [&](const Tensor& in, const Tensor& heads, uint32_t site) {
      const auto sum = linear_dropout_add_norm(heads, attention->output->weight, Param(),
                                               at_site(config.hidden_dropout_prob, site), in, attention_norm->params);
      const FirstLayer first{intermediate->weight, intermediate->bias, config.hidden_act,
                             at_site(config.activation_dropout, site + 1)};
      return linear_dropout_add_norm(sum, output->weight, output->bias, at_site(config.hidden_dropout_prob, site + 2),
                                     sum, output_norm->params, &first);
    };
    return {content ? after_attention(x.h, mixed.h, 1) : Tensor(),
            x.g.defined() ? after_attention(x.g, mixed.g, 5) : Tensor()};
  }

  StackConfig config;
  std::shared_ptr<TwoStreamAttention> attention;
  std::shared_ptr<Norm> attention_norm, output_norm;
  std::shared_ptr<Linear> intermediate, output;
};

/// Sines of all frequencies, then cosines: [..., D] of distances [...] and `columns` 0, 1, ..., D - 1. In fp32, as in
/// the published code.
Tensor sinusoids(const Tensor& distance, const Tensor& columns) {
  const auto frequency =
      1 / at::pow(10000, columns.slice(0, 0, std::nullopt, 2).to(at::kFloat) / static_cast<double>(columns.size(0)));
  const auto angle = distance.to(at::kFloat).unsqueeze(-1) * frequency;
  return at::cat({at::sin(angle), at::cos(angle)}, -1);
}

/// XLNet (Yang et al. 2019, section 2). Differs: a query that may attend to nothing gets zeros (there the mean of all
/// values, its own token's included); the dropout of the distance embeddings is drawn once for all rows of a batch;
/// mask_emb is initialised like other weights (there Glorot uniform).
struct TwoStream final : Backbone {
  explicit TwoStream(const TwoStreamConfig& c) : config(c) {
    auto tables = c;
    tables.token_types = false;
    embeddings = own("embeddings", make_embeddings(tables, {}));
    mask_emb = own_param("mask_emb", {1, 1, c.hidden_size}, Init::weight);
    stack = own("stack", std::make_shared<Layer>());
    for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
      blocks.push_back(stack->own(std::to_string(i), std::make_shared<TwoStreamBlock>(c)));
      set_depth(*blocks.back(), i + 1);
    }
  }

  Tensor hidden(const Inputs& in, Traces* traces) override {
    require<ShapeError>(in.mems.empty() || in.mems.size() == blocks.size(), "the model has ", blocks.size(),
                        " layers, but mems has ", in.mems.size(), " tensors; give one for each layer");
    const auto drop_at = [&](uint32_t site) {
      return Dropout{.p = config.hidden_dropout_prob, .key = in.dropout_key, .site = site, .active = is_training()};
    };
    auto shared = attention_inputs(in);
    shared.distances = dropout(shared.distances, drop_at(1));
    Streams x{embeddings->forward({.ids = in.input_ids, .vectors = in.input_embeddings}, drop_at(0)), {}};
    if (in.target_positions.defined())
      x.g = dropout(plain::weight(mask_emb, x.h.scalar_type()) +
                        at::zeros_like(in.target_positions, x.h.scalar_type()).unsqueeze(-1),
                    drop_at(2));
    const auto record = [&] {
      for (const auto& state : {x.h, x.g})
        if (traces && state.defined()) traces->encoder.hidden_states.push_back(state);
    };
    record();
    auto* probabilities = traces && traces->encoder.keeps_attentions ? &traces->encoder.attentions : nullptr;
    if (in.new_mems) in.new_mems->clear();
    uint32_t site = 4;
    for (size_t i = 0; i < blocks.size(); ++i, site += TwoStreamBlock::sites) {
      const auto mem = in.mems.empty() ? Tensor() : in.mems[i];
      if (in.new_mems) in.new_mems->push_back(updated_mem(mem, x.h));
      const bool content = i + 1 < blocks.size() || !x.g.defined() || traces;
      if (gradient_checkpointing && at::GradMode::is_enabled()) {
        const auto again = [block = blocks[i], content, mem, shared,
                            drop = drop_at(site)](const std::vector<Tensor>& streams) {
          const auto out = block->forward({streams[0], streams[1]}, content, mem, shared, drop, nullptr);
          return !out.g.defined() ? std::vector{out.h} : content ? std::vector{out.h, out.g} : std::vector{out.g};
        };
        const auto out = recompute(again, {x.h, x.g}, *blocks[i]);
        x = {content ? out[0] : Tensor(), x.g.defined() ? out.back() : Tensor()};
      } else {
        x = blocks[i]->forward(x, content, mem, shared, drop_at(site), probabilities);
      }
      record();
    }
    return dropout(x.g.defined() ? x.g : x.h, drop_at(3));
  }

  /// A text after the tokens of its mems: queries are its own tokens, keys all.
  struct TokenPlaces {
    TokenPlaces(const Inputs& in, const Tensor& zeros)
        : past(zeros), queries(position_range(in.input_ids)), keys(position_range(after_mems(in.input_ids))) {
      count = queries.slice(0, -1) + 1;
      distance = (keys.slice(0, -1) + 1 - count + queries).unsqueeze(1) - keys.unsqueeze(0);
    }
    /// x [B, T] of the text, preceded by the zeros of `past`.
    Tensor after_mems(const Tensor& x) const { return past.defined() ? at::cat({past.to(x.scalar_type()), x}, 1) : x; }
    Tensor past;           // int64 [B, M], zeros; undefined: there are no mems
    Tensor queries, keys;  // [T], [S]
    Tensor count;          // [1]: T
    Tensor distance;       // [T, S]: query minus key
  };

  /// Masks, segments and distances for all layers.
  AttentionInputs attention_inputs(const Inputs& in) const {
    const TokenPlaces place(in, in.mems.empty() ? Tensor() : at::zeros_like(in.mems[0].select(-1, 0), at::kLong));
    AttentionInputs inputs;
    inputs.distances = distance_embeddings(in, place);
    if (in.backward.defined()) inputs.backward = in.backward.to(at::kLong);
    const auto target = in.target_positions.defined() ? in.target_positions.clamp_min(0) : Tensor();  // [B, N]
    const auto of_targets = [&](const Tensor& pairs) {
      return at::gather(pairs, 1, target.unsqueeze(-1) + at::zeros_like(pairs.slice(1, 0, 1), at::kLong));
    };  // [B, T, S] to [B, N, S]
    if (target.defined()) inputs.query.distance_offset = place.count - target;
    if (in.attention_mask.defined() || in.visible.defined() || is_causal() || target.defined()) {
      const auto visible = visible_pairs(in, place);
      inputs.content.visible = visible.logical_or(place.distance.eq(0));  // the content stream attends to its own token
      if (target.defined())
        inputs.query.visible = of_targets(visible).logical_and(in.target_positions.ge(0).unsqueeze(-1));
    }
    if (in.token_type_ids.defined()) {
      const auto differ = in.token_type_ids.unsqueeze(-1).ne(
          place.after_mems(in.token_type_ids).unsqueeze(1));  // [B, T, S]; the mems are segment 0
      inputs.content.segments_differ = differ;
      if (target.defined()) inputs.query.segments_differ = of_targets(differ);
    }
    return inputs;
  }

  bool is_causal() const { return config.attn_type == AttentionDirection::uni; }

  /// Sinusoids of the distances S, ..., 1, 0, ..., 1 - T, and of their negatives where some rows are read backwards.
  Tensor distance_embeddings(const Inputs& in, const TokenPlaces& place) const {
    auto distances = at::cat({(place.keys + 1).flip(0), -place.queries});
    if (config.clamp_len > 0) distances = distances.clamp(-config.clamp_len, config.clamp_len);
    return sinusoids(in.backward.defined() ? at::stack({distances, -distances}) : distances.unsqueeze(0),
                     position_range(mask_emb.value().flatten(0, 1)));
  }

  /// Which keys a query may attend to, its own token's apart: bool [B, T, S].
  Tensor visible_pairs(const Inputs& in, const TokenPlaces& place) const {
    const auto real = in.attention_mask.defined() ? in.attention_mask : at::ones_like(in.input_ids, at::kBool);
    const auto mems = place.past.defined() ? place.past.eq(0) : Tensor();  // [B, M], all true
    auto visible = mems.defined() ? at::cat({mems, real}, 1) : real;
    visible = visible.unsqueeze(1).logical_and(at::ones_like(place.distance, at::kBool));  // [B, T, S]
    if (in.visible.defined()) {
      const auto ones = at::ones_like(in.visible.narrow(-1, 0, 1));
      visible = visible.logical_and(mems.defined() ? at::cat({mems.unsqueeze(1).logical_and(ones), in.visible}, -1)
                                                   : in.visible);
    }
    if (is_causal()) visible = visible.logical_and(place.distance.ge(0));
    if (is_causal() && config.same_length)  // as far back as the mems reach
      visible = visible.logical_and(place.keys.unsqueeze(0).ge(place.queries.unsqueeze(1)));
    return visible;
  }

  /// A layer's mem for the next segment: the states that enter the layer, not those that leave it.
  Tensor updated_mem(const Tensor& mem, const Tensor& h) const {
    const auto kept = config.reuse_len > 0 ? h.slice(1, 0, config.reuse_len) : h;
    const auto all = mem.defined() ? at::cat({mem.to(h.scalar_type()), kept}, 1) : kept;
    return (config.mem_len > 0 ? all.slice(1, -config.mem_len).contiguous() : all).detach();
  }

  /// Multiply-adds of training. All keys count: the order of a permutation hides single pairs, which are masked after
  /// they were scored. The embeddings of distances are projected once for all rows of a batch.
  double multiply_adds(const std::vector<RowSizes>& rows) const override {
    const double mem_length = config.carries_mems() ? static_cast<double>(config.mem_len) : 0;
    const bool targets = total(rows, &RowSizes::predicted) > 0;
    double longest = 0;
    for (const auto& row : rows) longest = std::max(longest, row.length);
    double sum = 0;
    for (const auto& block : blocks) {
      const auto& attention = *block->attention;
      const double feed_forward = block->intermediate->multiply_adds() + block->output->multiply_adds();
      sum += (2 * longest + mem_length) * (config.bi_data ? 2 : 1) * attention.position->multiply_adds();
      for (const auto& row : rows) {
        const double keys = row.length + mem_length;
        const auto stream = [&](double queries) {
          return attention.multiply_adds(queries, keys) + queries * feed_forward;
        };
        const bool content = block != blocks.back() || !targets || row.is_whole;
        sum += row.count * (keys * attention.key_value->multiply_adds() + stream(row.predicted) +
                            (content ? stream(row.length) : 0));
      }
    }
    return sum;
  }

  Tensor pooled(const Tensor&) override { fail<ShapeError>("a model of two streams has no pooler"); }
  const Param& token_embedding() const override { return embeddings->word; }
  const std::shared_ptr<Embeddings>& embedding_tables() const override { return embeddings; }
  bool has_pooler() const override { return false; }
  void set_gradient_checkpointing(bool on) override { gradient_checkpointing = on; }

  TwoStreamConfig config;
  std::shared_ptr<Embeddings> embeddings;
  Param mask_emb;  // [1, 1, D], the initial state of every query
  std::shared_ptr<Layer> stack;
  std::vector<std::shared_ptr<TwoStreamBlock>> blocks;
  bool gradient_checkpointing = false;
};

}  // namespace

std::shared_ptr<Backbone> make_two_stream(const TwoStreamConfig& c) {
  const auto require_default = [](const char* name, bool is_default) {
    require<ConfigError>(is_default, "model.", name, " is not for models of two streams; leave it out");
  };
  require_default("norm_place", c.norm_place == NormPlacement::post);
  require_default("norm_kind", c.norm_kind == NormKind::layer);
  require_default("feed_forward", c.feed_forward == FeedForward::plain);
  const auto positions = keys_of(c.positions);
  require_default("position_embeddings", positions.position_embeddings == PositionEmbeddings::none);
  require_default("relative_positions", positions.relative_positions == 0);
  require_default("architecture", c.is_two_stream());
  require_default("attention", is_full(c.attention));
  require<ConfigError>(c.hidden_size % c.num_attention_heads == 0, "hidden_size ", c.hidden_size,
                       " is not a multiple of num_attention_heads ", c.num_attention_heads,
                       "; choose a width that the heads divide");
  require<ConfigError>(c.hidden_size % 2 == 0, "model.hidden_size ", c.hidden_size,
                       " is odd; sines and cosines need an even width");
  auto made = std::make_shared<TwoStream>(c);
  set_init_ranges(*made, c);
  return made;
}

}  // namespace cloze

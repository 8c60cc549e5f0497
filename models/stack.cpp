#include "models/stack.h"

#include <algorithm>

#include "core/error.h"
#include "core/tensor/recompute.h"

namespace cloze {

namespace {

Dropout at_site(Dropout drop, double p, uint32_t site) {
  drop.p = p;
  drop.site = site;
  return drop;
}

Dropout without_rows(Dropout drop) {
  drop.rows = Tensor();
  return drop;
}

/// The states after a block, which the backward pass computes again instead of keeping what led to them.
Tensor recomputed(const std::shared_ptr<Block>& block, const Tensor& x, const AttentionContext& context,
                  const Dropout& drop, uint32_t site, const EncoderOutput* encoded, const Tensor& read_positions) {
  const auto again = [block, context, drop, site, mask = encoded ? encoded->mask : Tensor(),
                      read_positions](const std::vector<Tensor>& in) {
    auto biased = context;
    biased.distance_bias = in[1];
    if (in[1].defined()) biased.made = nullptr;  // its gradients belong to this layer
    const EncoderOutput source{in[2], mask};
    return std::vector{
        block->forward(in[0], biased, drop, site, in[2].defined() ? &source : nullptr, {}, read_positions)};
  };
  return recompute(again, {x, context.distance_bias, encoded ? encoded->states : Tensor()}, *block)[0];
}

}  // namespace

Block::Block(const StackConfig& c, int64_t layer, PositionScheme& positions, const Block* from, Sharing share)
    : config(c) {
  const auto norm = [&](const char* name) { return own(name, std::make_shared<Norm>(c.hidden_size, c)); };
  if (from && share == Sharing::attention) {
    attention = from->attention;
    attention_norm = from->attention_norm;
  } else {
    attention = own("attention", make_attention(c, layer, positions));
    if (layer > 0 || c.first_attention_norm || c.norm_place == NormPlacement::post)
      attention_norm = norm("attention_norm");
  }
  if (c.cross_attention) {
    cross_attention = own("cross_attention", std::make_shared<CrossAttention>(c));
    cross_norm = norm("cross_norm");
  }
  if (from && share == Sharing::ffn) {
    intermediate = from->intermediate;
    gate = from->gate;
    output = from->output;
    output_norm = from->output_norm;
  } else {
    output_norm = norm("output_norm");
    intermediate = own("intermediate", std::make_shared<Linear>(c.hidden_size, c.intermediate_size, c.mlp_bias));
    if (c.feed_forward == FeedForward::gated)
      gate = own("gate", std::make_shared<Linear>(c.hidden_size, c.intermediate_size, c.mlp_bias));
    output = own("output", std::make_shared<Linear>(c.intermediate_size, c.hidden_size, c.mlp_bias));
    output->weight.set_projection(Projection::residual);
  }
}

Tensor Block::gated(const Tensor& x, const Dropout& inside) const {
  const auto inner = linear_activation(x, intermediate->weight, intermediate->bias, config.hidden_act);
  return dropout(inner * gate->forward(x), inside);
}

Tensor Block::forward(const Tensor& x, const AttentionContext& context, const Dropout& drop, uint32_t site,
                      const EncoderOutput* encoded, const BlockCache& cache, const Tensor& indices) const {
  const auto narrow_drop = indices.defined() ? without_rows(drop) : drop;
  const auto on_scores = [&](uint32_t k) {
    return at_site(without_rows(drop), config.attention_probs_dropout_prob, site + k);
  };
  const auto on_branch = [&](uint32_t k) { return at_site(narrow_drop, config.hidden_dropout_prob, site + k); };
  const bool pre = config.norm_place == NormPlacement::pre;
  // The input of a sublayer, and the residual connection after it.
  using NormPointer = std::shared_ptr<Norm>;
  const auto input_of = [&](const Tensor& stream, const NormPointer& norm) {
    return pre && norm ? norm->forward(stream) : stream;
  };
  const auto join = [&](const Tensor& branch, const Linear& project, const Dropout& at, const Tensor& stream,
                        const NormPointer& norm, const FirstLayer* first = nullptr) {
    return pre ? linear_dropout_add(branch, project.weight, project.bias, at, stream, first)
               : linear_dropout_add_norm(branch, project.weight, project.bias, at, stream, norm->params, first);
  };
  const auto narrowed = [&](const Tensor& of_all) {
    return indices.defined() ? take_rows(of_all.flatten(0, 1), indices) : of_all;
  };
  auto in = input_of(x, attention_norm);
  const auto mixed =
      cache.self ? attention->mix_cached(in, *cache.self, context) : attention->mix(in, context, on_scores(0));
  auto stream = join(narrowed(mixed), *attention->output, on_branch(1), narrowed(x), attention_norm);
  if (cross_attention) {
    require<ShapeError>(encoded != nullptr && !indices.defined(),
                        "a decoder with cross-attention was run without an encoder's output, or with read_positions");
    if (cache.cross && !cache.cross->defined()) *cache.cross = cross_attention->keys_and_values(*encoded);
    in = input_of(stream, cross_norm);
    stream = join(cross_attention->mix(in, *encoded, cache.cross ? *cache.cross : Tensor(), context, on_scores(3)),
                  *cross_attention->output, on_branch(4), stream, cross_norm);
  }
  const auto inside = at_site(narrow_drop, config.activation_dropout, site + 5);
  in = input_of(stream, output_norm);
  if (gate) return join(gated(in, inside), *output, on_branch(2), stream, output_norm);
  const FirstLayer first{intermediate->weight, intermediate->bias, config.hidden_act, inside};
  return join(in, *output, on_branch(2), stream, output_norm, &first);
}

double Block::multiply_adds(const RowSizes& row, double outputs, double encoded) const {
  double after = attention->output->multiply_adds() + intermediate->multiply_adds() + output->multiply_adds();
  if (gate) after += gate->multiply_adds();
  double sum = attention->multiply_adds(row, config.causal) + outputs * after;
  if (cross_attention)
    sum += cross_attention->multiply_adds(outputs, encoded) + outputs * cross_attention->output->multiply_adds();
  return sum;
}

Stack::Stack(const StackConfig& c, const StackParts& parts, int64_t below)
    : config(c), top(below), positions(make_positions(c, c.causal, *this)) {
  const auto& sharing = parts.sharing;
  // A layer shares its blocks, or one of their sublayers, with the first layer of its group.
  const int64_t count = c.num_hidden_layers, groups = sharing.groups_of(count);
  std::vector<int64_t> first(static_cast<size_t>(groups), -1);
  for (int64_t i = 0; i < count; ++i) {
    auto& leader = first[static_cast<size_t>(i * groups / count)];
    auto& layer = layers.emplace_back();
    if (leader >= 0 && sharing.share == Sharing::all) {
      layer = layers[static_cast<size_t>(leader)];
      continue;
    }
    for (int64_t j = 0; j < sharing.inner_group_num; ++j) {
      const Block* from = leader < 0 ? nullptr : layers[static_cast<size_t>(leader)][static_cast<size_t>(j)].get();
      layer.push_back(
          own(std::to_string(children().size()), std::make_shared<Block>(c, i, *positions, from, sharing.share)));
      set_depth(*layer.back(), ++top);
    }
    if (leader < 0) leader = i;
  }
  if (c.norm_place != NormPlacement::pre) return;
  final_norm = own("final_norm", std::make_shared<Norm>(c.hidden_size, c));
  set_depth(*final_norm, top);
}

int64_t Stack::depth() const {
  int64_t blocks = 0;
  for (const auto& layer : layers) blocks += static_cast<int64_t>(layer.size());
  return blocks;
}

void Stack::begin(DecoderState& state) const {
  state.of_tokens.resize(static_cast<size_t>(depth()));
  state.of_source.resize(static_cast<size_t>(depth()));
}

bool Stack::has_cache() const {
  const auto cached = [](const auto& block) { return block->attention->has_cache(); };
  return depth() > 0 &&
         std::ranges::all_of(layers, [&](const auto& layer) { return std::ranges::all_of(layer, cached); });
}

double Stack::multiply_adds(const RowSizes& row, double encoded) const {
  double sum = 0;
  for (const auto& layer : layers)
    for (const auto& block : layer) {
      const bool last = &layer == &layers.back() && &block == &layer.back();
      sum += block->multiply_adds(row, last && !row.is_whole ? row.read : row.length, encoded);
    }
  return sum;
}

StackInput Stack::input(const Inputs& in, const EmbeddingIds& ids, const Dropout& drop, const Trace* trace) const {
  const bool unpads = in.padding_is_unread && !trace && !layers.empty() &&
                      takes_unpadded_rows(config.attention, config.positions.relative) &&
                      unpads_rows(layers[0][0]->attention->qkv->weight.compute());
  const auto without_padding = unpads && !in.unpadded ? unpad_rows(in.attention_mask) : in.unpadded;
  const auto rows = unpads ? without_padding : nullptr;
  StackInput input{.ids = ids, .context = {.unpadded = rows}, .drop = drop};
  if (rows) {
    const auto unpadded = [&](const Tensor& padded) { return padded.defined() ? rows->unpad(padded) : Tensor(); };
    input.ids = {unpadded(ids.ids), unpadded(ids.types), unpadded(ids.positions), unpadded(ids.vectors)};
    if (!ids.positions.defined()) input.ids.positions = rows->positions.unsqueeze(0);
    input.drop.rows = rows->index;
  } else {
    input.context.key_mask = in.attention_mask;
  }
  return input;
}

Tensor Stack::forward(Tensor x, AttentionContext context, const Dropout& drop, Trace* trace,
                      const EncoderOutput* encoded, DecoderState* state, const Tensor& read_positions) const {
  context.causal = config.causal;
  context.made = std::make_shared<std::vector<MadeMask>>();
  if (trace && trace->keeps_attentions) context.probabilities = &trace->attentions;
  if (trace && trace->keeps_projections) context.projections = &trace->projections;
  const auto* unpadded = context.unpadded.get();
  context.distance_bias = positions->distance_bias(unpadded ? x.new_empty({1, unpadded->length, 1}) : x,
                                                   state ? state->of_tokens.at(0) : Tensor());
  const auto record = [&](const Tensor& states) {
    if (trace) trace->hidden_states.push_back(states);
  };
  record(x);
  auto sizes = x.sizes().vec();
  if (unpadded) sizes = {unpadded->rows, unpadded->length, sizes[2]};
  const bool narrow = read_positions.defined() && !layers.empty();
  const auto narrowed = narrow && unpadded ? unpadded->unpadded_indices(read_positions) : read_positions;
  uint32_t site = drop.site + 1;  // drop.site itself belongs to the embeddings
  size_t number = 0;
  for (const auto& layer : layers) {
    for (const auto& block : layer) {
      const bool last = &layer == &layers.back() && &block == &layer.back();
      BlockCache cache;
      if (state) cache = {&state->of_tokens.at(number), &state->of_source.at(number)};
      ++number;
      const auto indices = narrow && last ? narrowed : Tensor();
      const bool recomputes = gradient_checkpointing && !state && at::GradMode::is_enabled();
      x = recomputes ? recomputed(block, x, context, drop, site, encoded, indices)
                     : block->forward(x, context, drop, site, encoded, cache, indices);
      site += Block::sites;
      record(x);
    }
  }
  if (final_norm) {
    x = final_norm->forward(x);
    if (config.final_dropout)
      x = dropout(x, at_site(narrow ? without_rows(drop) : drop, config.hidden_dropout_prob, site));
    if (trace) trace->hidden_states.back() = x;
  }
  if (narrow)
    return at::zeros({sizes[0] * sizes[1], sizes[2]}, x.options()).index_copy(0, read_positions, x).view(sizes);
  return unpadded ? unpadded->pad(x) : x;
}

}  // namespace cloze

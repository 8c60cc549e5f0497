#include "models/stack.h"

#include "core/tensor/recompute.h"

namespace cloze {

namespace {

Dropout at_site(Dropout drop, double p, uint32_t site) {
  drop.p = p;
  drop.site = site;
  return drop;
}

}  // namespace

Block::Block(const StackConfig& c, int64_t layer, const Block* from, const std::string& share) : config(c) {
  if (from && share == "attention") {
    attention = from->attention, attention_norm = from->attention_norm;
  } else {
    attention = own("attention", make_attention(c.attention, c.hidden_size, c.num_heads, layer));
    attention_norm = own("attention_norm", std::make_shared<Norm>(c.hidden_size, c.norm_eps));
  }
  if (from && share == "ffn") {
    intermediate = from->intermediate, output = from->output, output_norm = from->output_norm;
  } else {
    output_norm = own("output_norm", std::make_shared<Norm>(c.hidden_size, c.norm_eps));
    intermediate = own("intermediate", std::make_shared<Linear>(c.hidden_size, c.intermediate_size));
    output = own("output", std::make_shared<Linear>(c.intermediate_size, c.hidden_size));
  }
}

Tensor Block::forward(const Tensor& x, const AttentionContext& context, const Dropout& drop, uint32_t site) const {
  const auto join = [&](const Tensor& branch, const Linear& project, const Tensor& residual, const Norm& norm, uint32_t at) {
    return linear_dropout_add_norm(branch, project.weight, project.bias, at_site(drop, config.hidden_dropout, at), residual,
                                   norm.weight, norm.bias, norm.eps);
  };
  const auto mixed = attention->mix(x, context, at_site(drop, config.attention_dropout, site));
  const auto attended = join(mixed, *attention->output, x, *attention_norm, site + 1);
  const auto inner = linear_activation(attended, intermediate->weight, intermediate->bias, config.activation);   // [B, T, F]
  return join(inner, *output, attended, *output_norm, site + 2);
}

Stack::Stack(const StackConfig& c) : config(c) {
  // Layer i belongs to group floor(i groups / layers). Its blocks are those of the group's first layer, or share a half with them.
  const int64_t groups = c.groups > 0 && c.share != "none" ? std::min(c.groups, c.num_layers) : c.num_layers;
  std::vector<int64_t> first(static_cast<size_t>(groups), -1);
  for (int64_t i = 0; i < c.num_layers; ++i) {
    auto& head = first[static_cast<size_t>(i * groups / c.num_layers)];
    auto& layer = layers.emplace_back();
    if (head >= 0 && c.share == "all") {
      layer = layers[static_cast<size_t>(head)];
      continue;
    }
    for (int64_t j = 0; j < c.inner; ++j) {
      const Block* from = head < 0 ? nullptr : layers[static_cast<size_t>(head)][static_cast<size_t>(j)].get();
      layer.push_back(own(std::to_string(children().size()), std::make_shared<Block>(c, i, from, c.share)));
    }
    if (head < 0) head = i;
  }
}

Tensor Stack::forward(Tensor x, AttentionContext context, const Dropout& drop, Trace* trace) const {
  context.causal = config.causal;
  if (trace) trace->hidden_states.push_back(x);
  uint32_t site = 1;   // 0 is the embedding's
  for (const auto& layer : layers) {
    for (const auto& block : layer) {
      const auto run = [&block, context, drop, site](const Tensor& in) { return block->forward(in, context, drop, site); };
      x = gradient_checkpointing && at::GradMode::is_enabled() ? recompute(run, x) : run(x);
      site += 3;
      if (trace) trace->hidden_states.push_back(x);
    }
  }
  return x;
}

}  // namespace cloze

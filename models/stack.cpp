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

Block::Block(const StackConfig& c, int64_t layer, const Block* from) : config(c) {
  if (from && c.share == "attention") {
    attention = from->attention, attention_norm = from->attention_norm;
  } else {
    attention = own("attention", make_attention(c, layer));
    attention_norm = own("attention_norm", std::make_shared<Norm>(c.hidden_size, c.layer_norm_eps, c.norm_kind));
  }
  if (from && c.share == "ffn") {
    intermediate = from->intermediate, gate = from->gate, output = from->output, output_norm = from->output_norm;
  } else {
    output_norm = own("output_norm", std::make_shared<Norm>(c.hidden_size, c.layer_norm_eps, c.norm_kind));
    intermediate = own("intermediate", std::make_shared<Linear>(c.hidden_size, c.intermediate_size));
    if (c.feed_forward == "gated") gate = own("gate", std::make_shared<Linear>(c.hidden_size, c.intermediate_size));
    output = own("output", std::make_shared<Linear>(c.intermediate_size, c.hidden_size));
  }
}

Tensor Block::feed_forward(const Tensor& x) const {
  const auto inner = linear_activation(x, intermediate->weight, intermediate->bias, config.hidden_act);
  return gate ? inner * gate->forward(x) : inner;
}

Tensor Block::forward(const Tensor& x, const AttentionContext& context, const Dropout& drop, uint32_t site) const {
  const auto look = at_site(drop, config.attention_probs_dropout_prob, site), first = at_site(drop, config.hidden_dropout_prob, site + 1), second = at_site(drop, config.hidden_dropout_prob, site + 2);
  if (config.norm_place == "pre") {
    const auto add = [](const Tensor& branch, const Linear& project, const Dropout& at, const Tensor& residual) { return linear_dropout_add(branch, project.weight, project.bias, at, residual); };
    const auto attended = add(attention->mix(attention_norm->forward(x), context, look), *attention->output, first, x);
    return add(feed_forward(output_norm->forward(attended)), *output, second, attended);
  }
  const auto join = [](const Tensor& branch, const Linear& project, const Dropout& at, const Tensor& residual, const Norm& norm) {
    return linear_dropout_add_norm(branch, project.weight, project.bias, at, residual, norm.weight, norm.bias, norm.eps);
  };
  const auto attended = join(attention->mix(x, context, look), *attention->output, first, x, *attention_norm);
  return join(feed_forward(attended), *output, second, attended, *output_norm);
}

Stack::Stack(const StackConfig& c) : config(c) {
  // Layer i belongs to group floor(i groups / layers). Its blocks are those of the group's first layer, or share a half with them.
  const int64_t count = c.num_hidden_layers, groups = c.num_hidden_groups > 0 && c.share != "none" ? std::min(c.num_hidden_groups, count) : count;
  std::vector<int64_t> first(static_cast<size_t>(groups), -1);
  for (int64_t i = 0; i < count; ++i) {
    auto& head = first[static_cast<size_t>(i * groups / count)];
    auto& layer = layers.emplace_back();
    if (head >= 0 && c.share == "all") {
      layer = layers[static_cast<size_t>(head)];
      continue;
    }
    for (int64_t j = 0; j < c.inner_group_num; ++j) {
      const Block* from = head < 0 ? nullptr : layers[static_cast<size_t>(head)][static_cast<size_t>(j)].get();
      layer.push_back(own(std::to_string(children().size()), std::make_shared<Block>(c, i, from)));
    }
    if (head < 0) head = i;
  }
  if (c.norm_place == "pre") final_norm = own("final_norm", std::make_shared<Norm>(c.hidden_size, c.layer_norm_eps, c.norm_kind));
}

Tensor Stack::forward(Tensor x, AttentionContext context, const Dropout& drop, Trace* trace) const {
  context.causal = config.is_decoder;
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
  return final_norm ? final_norm->forward(x) : x;
}

}  // namespace cloze

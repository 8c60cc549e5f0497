#include "models/initialization.h"

#include <cmath>

#include "models/backbone.h"

namespace cloze {

namespace {

double root(double n) { return 1 / std::sqrt(n); }

/// Parameters of `layer` and of its parts, but for those of networks among them.
void collect_own(const Layer& layer, const std::string& path, std::vector<NamedParam>& found) {
  for (const auto& [name, param] : layer.own_params()) found.push_back({path + name, param});
  for (const auto& [name, child] : layer.children())
    if (!dynamic_cast<const Backbone*>(child.get())) collect_own(*child, path + name + ".", found);
}

/// Glorot and Bengio 2010, equation 16, of each of the matrices that lie stacked here; where tokens are compressed
/// (Linformer), of half the variance.
void set_xavier_of(const NamedParam& named) {
  const bool compresses = named.name.find("compress_") != std::string::npos;
  set_xavier(named.param, compresses ? root(2) : 1);
}

void set_fan_in(const NamedParam& named, const BackboneConfig& c) {
  auto param = named.param;
  const auto inputs = static_cast<double>(param.value().size(-1));
  const auto part = [&](const char* words) { return named.name.find(words) != std::string::npos; };
  if (param.init() == Init::embedding)
    param.set_init_range(1);
  else if (param.role() == Role::score_bias)
    param.set_init_range(root(static_cast<double>(c.hidden_size)));
  else
    param.set_init_range(root(inputs));
  // Scores are not scaled: the queries' weights start smaller by as much.
  const bool queries = part("attention.qkv.weight") || part("cross_attention.query.weight");
  if (queries) param.set_init_rows(c.heads_width(), root(static_cast<double>(c.head_width())));
}

/// Products into the residual stream: the outputs of attention and of feed-forward layers.
bool ends_a_branch(const std::string& name) {
  const auto part = [&](const char* words) { return name.find(words) != std::string::npos; };
  return part("attention.output.") || (part(".output.") && !part("attention"));
}

}  // namespace

void set_xavier(Param weight, double gain) {
  const auto& sizes = weight.value().sizes();
  const auto inputs = static_cast<double>(sizes.back()), outputs = static_cast<double>(sizes[0] / weight.stacked());
  weight.set_init_range(gain * std::sqrt(2 / (inputs + outputs)), Spread::uniform);
}

void set_init_ranges(const Layer& root_layer, const BackboneConfig& c) {
  std::vector<NamedParam> params;
  collect_own(root_layer, "", params);
  for (auto& named : params) {
    auto& param = named.param;
    const bool drawn = param.init() == Init::weight || param.init() == Init::embedding;
    const bool product = param.init() == Init::weight && param.role() == Role::weight && param.value().dim() == 2;
    if (!drawn) continue;
    if (c.initializer == Initializer::normal_scaled && product && ends_a_branch(named.name))
      param.set_init_range(c.initializer_range * root(2.0 * static_cast<double>(c.num_hidden_layers)));
    if (c.initializer == Initializer::xavier && product) set_xavier_of(named);
    if (c.initializer == Initializer::xavier && param.role() == Role::embedding)
      param.set_init_range(root(static_cast<double>(param.value().size(-1))));
    if (c.initializer == Initializer::fan_in) set_fan_in(named, c);
  }
}

}  // namespace cloze

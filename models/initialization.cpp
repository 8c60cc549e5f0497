#include "models/initialization.h"

#include <cmath>

#include "models/backbone.h"

namespace cloze {

namespace {

double inverse_sqrt(double n) { return 1 / std::sqrt(n); }

/// The parameters of `layer` and its children, except those of nested networks.
void collect_own(const Layer& layer, const std::string& path, std::vector<NamedParam>& found) {
  for (const auto& [name, param] : layer.own_params()) found.push_back({path + name, param});
  for (const auto& [name, child] : layer.children())
    if (!dynamic_cast<const Backbone*>(child.get())) collect_own(*child, path + name + ".", found);
}

/// Glorot and Bengio 2010, equation 16, for each of the stacked matrices; half the variance for Linformer's sequence
/// projections.
void set_xavier_of(const NamedParam& named) {
  const bool compresses = named.name.find("compress_") != std::string::npos;
  set_xavier(named.param, compresses ? inverse_sqrt(2) : 1);
}

void set_fan_in(const NamedParam& named, const BackboneConfig& c) {
  auto param = named.param;
  const auto inputs = static_cast<double>(param.value().size(-1));
  const auto contains = [&](const char* part) { return named.name.find(part) != std::string::npos; };
  if (param.init() == Init::embedding)
    param.set_init_range(1);
  else if (param.role() == Role::score_bias)
    param.set_init_range(inverse_sqrt(static_cast<double>(c.hidden_size)));
  else
    param.set_init_range(inverse_sqrt(inputs));
  // Scores are not scaled by 1 / sqrt(C), so the query projection is initialised smaller by that factor.
  const bool queries = contains("attention.qkv.weight") || contains("cross_attention.query.weight");
  if (queries) param.set_init_rows(c.heads_width(), inverse_sqrt(static_cast<double>(c.head_width())));
}

/// Projections into the residual stream: the outputs of attention and of feed-forward layers.
bool is_residual_projection(const std::string& name) {
  const auto contains = [&](const char* part) { return name.find(part) != std::string::npos; };
  return contains("attention.output.") || (contains(".output.") && !contains("attention"));
}

/// As many residual connections are summed as there are sublayers. Source: Radford et al. 2019, section 2.3.
void scale_by_depth(Param& param, const BackboneConfig& c) {
  param.set_init_range(c.initializer_range * inverse_sqrt(2.0 * static_cast<double>(c.num_hidden_layers)));
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
    const bool is_matrix = param.init() == Init::weight && param.role() == Role::weight && param.value().dim() == 2;
    const bool is_residual = is_matrix && is_residual_projection(named.name);
    if (!drawn) continue;
    switch (c.initializer) {
      case Initializer::truncated_normal:
      case Initializer::normal:
        break;
      case Initializer::normal_scaled:
        if (is_residual) scale_by_depth(param, c);
        break;
      case Initializer::truncated_normal_scaled:
        if (is_residual || (is_matrix && named.name == "head.transform.weight")) scale_by_depth(param, c);
        break;
      case Initializer::fan_in:
        set_fan_in(named, c);
        break;
      case Initializer::xavier:
        if (is_matrix) set_xavier_of(named);
        if (param.role() == Role::embedding)
          param.set_init_range(inverse_sqrt(static_cast<double>(param.value().size(-1))));
        break;
    }
  }
}

}  // namespace cloze

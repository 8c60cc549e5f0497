#include "models/initialization.h"

#include <cmath>

#include "models/backbone.h"

namespace cloze {

namespace {

double inverse_sqrt(double n) { return 1 / std::sqrt(n); }

/// The parameters of `layer` and its children, except those of nested networks.
void collect_own(const Layer& layer, std::vector<Param>& params) {
  for (const auto& [name, param] : layer.own_params()) params.push_back(param);
  for (const auto& [name, child] : layer.children())
    if (!dynamic_cast<const Backbone*>(child.get())) collect_own(*child, params);
}

void set_fan_in(Param& param, const BackboneConfig& c) {
  const auto inputs = static_cast<double>(param.value().size(-1));
  if (param.init() == Init::embedding)
    param.set_init_range(1);
  else if (param.role() == Role::score_bias)
    param.set_init_range(inverse_sqrt(static_cast<double>(c.hidden_size)));
  else
    param.set_init_range(inverse_sqrt(inputs));
  // Scores are not scaled by 1 / sqrt(C), so the query projection is initialised smaller by that factor.
  if (param.projection() == Projection::query)
    param.set_init_rows(param.value().size(0) / param.stacked(), inverse_sqrt(static_cast<double>(param.head_width())));
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
  std::vector<Param> params;
  collect_own(root_layer, params);
  for (auto& param : params) {
    const bool drawn = param.init() == Init::weight || param.init() == Init::embedding;
    const bool is_matrix = param.init() == Init::weight && param.role() == Role::weight && param.value().dim() == 2;
    const auto projection = param.projection();
    if (!drawn || param.init_range() > 0) continue;  // the layer has set its own
    switch (c.initializer) {
      case Initializer::truncated_normal:
      case Initializer::normal:
        break;
      case Initializer::normal_scaled:
        if (projection == Projection::residual) scale_by_depth(param, c);
        break;
      case Initializer::truncated_normal_scaled:
        if (projection == Projection::residual || projection == Projection::output) scale_by_depth(param, c);
        break;
      case Initializer::fan_in:
        set_fan_in(param, c);
        break;
      case Initializer::xavier:
        // Half the variance for Linformer's sequence projections.
        if (is_matrix) set_xavier(param, projection == Projection::sequence ? inverse_sqrt(2) : 1);
        if (param.role() == Role::embedding)
          param.set_init_range(inverse_sqrt(static_cast<double>(param.value().size(-1))));
        break;
    }
  }
}

}  // namespace cloze

#include "train/optimizers/optimizer.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/tensor/ops.h"
#include "core/tensor/param.h"
#include "train/optimizers/optimizers.h"

namespace cloze {

using optimizers::Chunk;
using optimizers::Matrix;
using optimizers::parallel_each;

namespace {

constexpr int64_t chunk_floats = 1 << 16;  // work is divided into chunks of about this size, for any number of threads
constexpr int64_t min_factored_size = 128;

/// Rows and columns of each stacked part of a tensor, as the optimizer treats it; a vector is one row.
struct Shape {
  Shape(at::IntArrayRef sizes, int64_t stacked) {
    int64_t numel = 1;
    for (const auto size : sizes) numel *= size;
    columns = sizes.size() > 1 ? sizes.back() : numel / stacked;
    rows = columns > 0 ? numel / stacked / columns : 0;
  }
  int64_t rows, columns;
};

/// True for moments in flat buffers, else in tensors of each parameter.
bool is_flat(const UpdateRule& rule) { return part_in<AdamMoments>(rule) != nullptr; }

std::vector<std::string> moments_of(const UpdateRule& rule) {
  return std::visit([](const auto& kind) { return optimizers::moments_of(kind); }, rule);
}

/// Whether a kind has its update with the kernels.
template <class Kind>
concept HasKernels = requires(const Kind& kind, const optimizers::Step& step, const optimizers::Buffers& buffers,
                              const optimizers::Memory& memory) { optimizers::update(kind, step, buffers, memory); };

bool has_kernels(const UpdateRule& rule) {
  return std::visit([]<class Kind>(const Kind&) { return HasKernels<Kind>; }, rule);
}

/// True for a matrix whose second moments are means of rows and columns.
bool factors(const UpdateRule& rule, const Shape& shape) {
  return part_in<Adafactor>(rule) && std::min(shape.rows, shape.columns) >= min_factored_size;
}

/// True if two matrices stand next to each other, and decay alike.
bool adjacent(const Matrix& a, const Matrix& b) {
  const auto padded = [](int64_t floats) { return (floats + 15) / 16 * 16; };
  return a.decays == b.decays && padded(a.offset + a.numel()) == padded(b.offset);
}

/// Adjacent matrices as one, for updates that are elementwise.
std::vector<Matrix> joined(const std::vector<Matrix>& matrices) {
  std::vector<Matrix> found;
  for (const auto& matrix : matrices) {
    if (!found.empty() && adjacent(found.back(), matrix))
      found.back().columns = matrix.offset + matrix.numel() - found.back().offset;
    else
      found.push_back({.param = matrix.param,
                       .part = 0,
                       .offset = matrix.offset,
                       .rows = 1,
                       .columns = matrix.numel(),
                       .decays = matrix.decays,
                       .factored = false});
  }
  return found;
}

bool is_in(const ParameterGroup& group, const NamedParam& named) {
  const auto role = [&] {
    switch (named.param.role()) {
      case Role::weight:
        return ParameterRole::weight;
      case Role::embedding:
        return ParameterRole::embedding;
      case Role::bias:
        return ParameterRole::bias;
      case Role::score_bias:
        return ParameterRole::score_bias;
      case Role::norm:
        return ParameterRole::norm;
    }
    return ParameterRole::any;
  };
  const auto matches = [&](const std::string& pattern) { return fnmatch(pattern.c_str(), named.name.c_str(), 0) == 0; };
  return (group.role == ParameterRole::any || group.role == role()) &&
         (group.names.empty() || std::any_of(group.names.begin(), group.names.end(), matches));
}

/// The number of the first group that a parameter is in, from 1 on; 0: it is in none.
size_t group_of(const OptimizerConfig& config, const NamedParam& named) {
  const auto found = std::find_if(config.groups.begin(), config.groups.end(),
                                  [&](const ParameterGroup& group) { return is_in(group, named); });
  return found == config.groups.end() ? 0 : static_cast<size_t>(found - config.groups.begin()) + 1;
}

/// The layer of a parameter in its stack, in `backbone.stack.3.attention...` 3; -1: it is in none.
int64_t layer_in(const std::string& name, const std::string& stack) {
  const auto prefix = "backbone." + stack + ".";
  if (!name.starts_with(prefix)) return -1;
  int64_t layer = 0;
  const auto* begin = name.data() + prefix.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
  return error == std::errc() && end != begin ? layer : -1;
}

void count_layer(const std::string& name, NetworkLayers& layers) {
  for (const auto* stack : {"stack", "encoder"}) layers.first = std::max(layers.first, layer_in(name, stack) + 1);
  layers.decoder = std::max(layers.decoder, layer_in(name, "decoder") + 1);
}

NetworkLayers layers_in(const FlatParameters& flat) {
  NetworkLayers layers;
  for (const auto& range : flat.ranges()) count_layer(range.param.name, layers);
  return layers;
}

bool is_of_head(const std::string& name) {
  return !name.starts_with("backbone.") || name.starts_with("backbone.pooler.");
}

bool is_updated(const Param& param) { return !param.frozen() && !param.fixed(); }

std::vector<Chunk> chunks_of(const std::vector<Matrix>& matrices) {
  std::vector<Chunk> chunks;
  for (size_t k = 0; k < matrices.size(); ++k) {
    const auto& matrix = matrices[k];
    const int64_t rows = std::max<int64_t>(1, chunk_floats / std::max<int64_t>(1, matrix.columns));
    for (int64_t row = 0; row < matrix.rows; row += rows) {
      const int64_t count = std::min(rows, matrix.rows - row);
      chunks.push_back({.matrix = k,
                        .offset = matrix.offset + row * matrix.columns,
                        .first_row = row,
                        .rows = count,
                        .numel = count * matrix.columns});
    }
  }
  return chunks;
}

/// The depth of a parameter of the network: of n layers, the embeddings have 0, what all layers share too, layer i has
/// i + 1, a norm after the layers that of the last one, and the head and the pooler n + 2. Layers of an encoder come
/// before those of its decoder. Source: google-research/electra, model/optimization.py, _get_layer_lrs.
int64_t depth_of(const std::string& name, const NetworkLayers& layers) {
  const auto all = layers.first + layers.decoder;
  if (is_of_head(name)) return all + 2;
  if (name.find(".final_norm.") != std::string::npos) return name.starts_with("backbone.encoder.") ? layers.first : all;
  if (const auto own = layer_in(name, "decoder"); own >= 0) return layers.first + own + 1;
  return std::max(layer_in(name, "stack"), layer_in(name, "encoder")) + 1;
}

}  // namespace

void freeze_layers(const std::vector<NamedParam>& params, int64_t layers) {
  NetworkLayers all;
  for (const auto& [name, param] : params) count_layer(name, all);
  for (auto [name, param] : params)
    if (depth_of(name, all) <= layers) param.set_frozen(true);
}

double depth_factor(const OptimizerConfig& config, const std::string& name, const NetworkLayers& layers) {
  if (is_of_head(name)) return config.head_rate > 0 ? config.head_rate / config.learning_rate : 1;
  const auto above = layers.first + layers.decoder + 2 - depth_of(name, layers);
  return std::pow(config.layer_decay, static_cast<double>(above));
}

const UpdateOptions& update_options(const OptimizerConfig& config, const NamedParam& param) {
  const auto group = group_of(config, param);
  return group == 0 ? static_cast<const UpdateOptions&>(config) : config.groups[group - 1];
}

void check_groups(const OptimizerConfig& config, const std::vector<NamedParam>& params) {
  for (size_t k = 0; k < config.groups.size(); ++k) {
    bool is_empty = true;
    for (const auto& named : params) {
      if (!is_updated(named.param) || group_of(config, named) != k + 1) continue;
      is_empty = false;
      const Shape shape(named.param.value().sizes(), named.param.stacked());
      require<ConfigError>(!part_in<Muon>(config.groups[k].rule) || shape.rows > 1, "optimizer.groups.", k,
                           ": muon updates matrices, and ", named.name, " is none; give the group role: weight");
    }
    require<ConfigError>(
        !is_empty, "optimizer.groups.", k,
        ": no parameter that is trained is in it, or all of them are in groups before it; names are those of "
        "the weights.safetensors of a checkpoint");
  }
}

bool decays(const UpdateOptions& config, const Param& param) {
  switch (param.role()) {
    case Role::weight:
    case Role::embedding:
      return true;
    case Role::score_bias:
      return config.decay_score_biases || config.decay_norm_and_bias;
    case Role::bias:
    case Role::norm:
      return config.decay_norm_and_bias;
  }
  return true;
}

int64_t moment_bytes(const UpdateRule& rule, at::IntArrayRef sizes, int64_t stacked) {
  const Shape shape(sizes, stacked);
  if (factors(rule, shape)) return 4 * stacked * (shape.rows + shape.columns);
  return 4 * static_cast<int64_t>(moments_of(rule).size()) * stacked * shape.rows * shape.columns;
}

/// Parameters that are updated alike.
struct Optimizer::Group {
  UpdateOptions options;
  double rate_factor = 1;  ///< on the learning rate of the optimizer
  size_t of = 0;           ///< the group that it is of, at another depth
  double depth = 1;        ///< its factor by depth; 1: it is one of the config
  /// The matrices of its parameters that are not frozen, as published code stores them.
  std::vector<Matrix> matrices(const FlatParameters& flat, const std::vector<size_t>& group_of_param,
                               size_t number) const {
    std::vector<Matrix> found;
    for (size_t k = 0; k < flat.ranges().size(); ++k) {
      const auto& range = flat.ranges()[k];
      const auto& param = range.param.param;
      if (!is_updated(param) || group_of_param[k] != number) continue;
      const Shape shape(param.value().sizes(), param.stacked());
      for (int64_t part = 0; part < param.stacked(); ++part)
        found.push_back({.param = k,
                         .part = part,
                         .offset = range.offset + part * shape.rows * shape.columns,
                         .rows = shape.rows,
                         .columns = shape.columns,
                         .decays = decays(options, param),
                         .factored = factors(options.rule, shape)});
    }
    return found;
  }
};

Optimizer::Optimizer(const OptimizerConfig& config, FlatParameters& flat) : flat_(flat) {
  groups_.push_back({.options = config});
  for (const auto& group : config.groups) {
    const double factor = config.learning_rate > 0 ? group.learning_rate / config.learning_rate : 0;
    groups_.push_back({.options = group, .rate_factor = factor});
  }
  if (std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return is_flat(group.options.rule); }))
    for (const auto& name : optimizers::moments_of(AdamMoments{}))
      flat_moments_[name] = lazy_zeros(flat.values.numel(), flat.values.device());
  const auto layers = layers_in(flat);
  for (const auto& range : flat.ranges()) {
    const auto own = group_of(config, range.param);
    group_of_param_.push_back(group_at(own, depth_factor(config, range.param.name, layers)));
    const auto& rule = groups_[group_of_param_.back()].options.rule;
    const auto sizes = range.param.param.value().sizes();
    const int64_t stacked = range.param.param.stacked();
    const Shape shape(sizes, stacked);
    const auto view = [&](const Tensor& t) { return t.narrow(0, range.offset, range.numel).view(sizes); };
    const auto zeros = [&](at::IntArrayRef of) { return at::zeros(of, flat.values.options()); };
    auto& moments = moments_.emplace_back();
    if (factors(rule, shape))
      moments = {{"exp_avg_sq_row", zeros({stacked, shape.rows})}, {"exp_avg_sq_col", zeros({stacked, shape.columns})}};
    else
      for (const auto& name : moments_of(rule))
        moments[name] = is_flat(rule) ? view(flat_moments_.at(name)) : zeros(sizes);
  }
}

Optimizer::~Optimizer() = default;

/// The number of the group that updates as group `own` does, at a rate of so many times its own.
size_t Optimizer::group_at(size_t own, double factor) {
  if (factor == 1) return own;
  for (size_t number = 0; number < groups_.size(); ++number)
    if (groups_[number].of == own && groups_[number].depth == factor) return number;
  auto group = groups_[own];
  group.of = own;
  group.depth = factor;
  group.rate_factor *= factor;
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

void Optimizer::step(double learning_rate, double grad_scale) {
  at::NoGradGuard no_grad;
  ++updates;
  const bool fused = use_fused(flat_.values);
  bool keeps_shadow = true;
  for (size_t number = 0; number < groups_.size(); ++number) {
    const auto& group = groups_[number];
    const auto matrices = group.matrices(flat_, group_of_param_, number);
    const optimizers::Step step{updates, group.rate_factor == 1 ? learning_rate : learning_rate * group.rate_factor,
                                grad_scale, group.options.weight_decay};
    if (fused && has_kernels(group.options.rule)) {
      step_fused(group.options.rule, step, matrices);
    } else {
      step_generic(group.options.rule, step, matrices);
      keeps_shadow = false;
    }
  }
  if (!keeps_shadow) flat_.refresh_shadow();
}

void Optimizer::step_fused(const UpdateRule& rule, const optimizers::Step& step, const std::vector<Matrix>& matrices) {
  const auto& shadow = flat_.shadow;
  const optimizers::Buffers buffers{
      .matrices = matrices,
      .chunks = chunks_of(matrices),
      .values = flat_.values.data_ptr<float>(),
      .grads = flat_.grads.data_ptr<float>(),
      .shadow = shadow.defined() ? reinterpret_cast<uint16_t*>(shadow.data_ptr<at::BFloat16>()) : nullptr};
  const auto flat = [&](const char* name) {
    return flat_moments_.contains(name) ? flat_moments_.at(name).data_ptr<float>() : nullptr;
  };
  const optimizers::Memory memory{.exp_avg = flat("exp_avg"), .exp_avg_sq = flat("exp_avg_sq"), .of_params = moments_};
  std::visit(
      [&]<class Kind>(const Kind& kind) {
        if constexpr (HasKernels<Kind>) optimizers::update(kind, step, buffers, memory);
      },
      rule);
}

void Optimizer::step_generic(const UpdateRule& rule, const optimizers::Step& step,
                             const std::vector<Matrix>& matrices) {
  for (const auto& matrix : part_in<AdamW>(rule) ? joined(matrices) : matrices) {
    const auto of = [&](const Tensor& flat) {
      return flat.narrow(0, matrix.offset, matrix.numel()).view({matrix.rows, matrix.columns});
    };
    const auto part_of = [&](const Tensor& t) {
      return (matrix.factored ? t : t.view({-1, matrix.rows, matrix.columns})).select(0, matrix.part);
    };
    Moments moments;
    for (const auto& [name, tensor] : moments_[matrix.param])
      moments[name] = is_flat(rule) ? of(flat_moments_.at(name)) : part_of(tensor);
    const auto gradient = of(flat_.grads) * step.grad_scale;
    std::visit(
        [&](const auto& kind) { optimizers::update(kind, step, matrix.decays, of(flat_.values), gradient, moments); },
        rule);
    of(flat_.grads).zero_();
  }
}

StateDict Optimizer::state() const {
  StateDict found;
  for (size_t k = 0; k < moments_.size(); ++k)
    for (const auto& [moment, tensor] : moments_[k])
      found.emplace_back(moment + "." + flat_.ranges()[k].param.name, tensor);
  return found;
}

void Optimizer::load(const StateDict& saved) {
  at::NoGradGuard no_grad;
  for (auto& [name, target] : state()) {
    const auto found =
        std::find_if(saved.begin(), saved.end(), [&, key = name](const auto& s) { return s.first == key; });
    require<CheckpointError>(found != saved.end() && found->second.sizes() == target.sizes(),
                             "the optimizer's state has no tensor '", name,
                             "' of the right shape; the checkpoint belongs to another model or another optimizer");
    target.copy_(found->second);
  }
}

double global_norm(const Tensor& grads) {
  if (!grads.is_cpu()) return grads.norm().item<double>();
  const auto* g = grads.data_ptr<float>();
  const int64_t n = grads.numel();
  std::vector<double> sums(static_cast<size_t>((n + chunk_floats - 1) / chunk_floats));
  parallel_each(sums.size(), [&](size_t i) {
    const int64_t first = static_cast<int64_t>(i) * chunk_floats;
    sums[i] = kernels::table().updates.sum_of_squares(std::min(chunk_floats, n - first), g + first);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

}  // namespace cloze

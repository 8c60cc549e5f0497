#include "optimizers/optimizer.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/tensor/device_support.h"
#include "core/tensor/ops.h"

namespace cloze {

using optimizers::Buffers;
using optimizers::Chunk;
using optimizers::DeviceBuffers;
using optimizers::Matrix;
using optimizers::parallel_each;
using optimizers::Step;

namespace {

constexpr int64_t chunk_floats = 1 << 16;  // work is divided into chunks of about this size, for any number of threads

/// Each stacked part of a parameter as the optimizer treats it; a vector is one row.
MatrixShape shape_of(const Param& param) {
  const auto& value = param.value();
  const int64_t numel = value.numel() / param.stacked(), columns = value.dim() > 1 ? value.sizes().back() : numel;
  return {.rows = columns > 0 ? numel / columns : 0, .columns = columns};
}

/// Whether a rule has an update with the kernels.
template <class Kind>
concept HasKernels =
    requires(const Kind& kind, const Step& step, const Buffers& buffers) { kind.update(step, buffers); };

bool has_kernels(const UpdateRule& rule) {
  return std::visit([]<class Kind>(const Kind&) { return HasKernels<Kind>; }, rule);
}

/// Whether a rule has an update with the kernels of a GPU.
template <class Kind>
concept HasDeviceKernels =
    requires(const Kind& kind, const Step& step, const DeviceBuffers& buffers) { kind.update(step, buffers); };

bool has_device_kernels(const UpdateRule& rule) {
  return std::visit([]<class Kind>(const Kind&) { return HasDeviceKernels<Kind>; }, rule);
}

bool is_elementwise(const UpdateRule& rule) {
  return std::visit([]<class Kind>(const Kind&) { return requires { Kind::elementwise; }; }, rule);
}

/// The view of a matrix in a flat buffer [n].
Tensor part_of(const Tensor& flat, const Matrix& matrix) {
  return flat.narrow(0, matrix.offset, matrix.numel()).view({matrix.rows, matrix.columns});
}

/// True if two matrices stand next to each other, and decay alike.
bool adjacent(const Matrix& a, const Matrix& b) {
  const auto padded = [](int64_t floats) { return (floats + 15) / 16 * 16; };
  return a.decays == b.decays && padded(a.offset + a.numel()) == padded(b.offset);
}

/// Adjacent matrices as one, for updates that are elementwise.
std::vector<Matrix> joined(const std::vector<Matrix>& matrices) {
  std::vector<Matrix> merged;
  for (const auto& matrix : matrices) {
    if (!merged.empty() && adjacent(merged.back(), matrix))
      merged.back().columns = matrix.offset + matrix.numel() - merged.back().offset;
    else
      merged.push_back({.param = matrix.param,
                        .part = 0,
                        .parts = 1,
                        .offset = matrix.offset,
                        .rows = 1,
                        .columns = matrix.numel(),
                        .decays = matrix.decays});
  }
  return merged;
}

bool is_in(const ParameterGroup& group, const NamedParam& named) {
  const auto matches = [&](const std::string& pattern) { return fnmatch(pattern.c_str(), named.name.c_str(), 0) == 0; };
  return (group.role == Role::any || group.role == named.param.role()) &&
         (group.names.empty() || std::any_of(group.names.begin(), group.names.end(), matches));
}

/// The number of the first group that a parameter is in, from 1 on; 0: it is in none.
size_t group_of(const OptimizerConfig& config, const NamedParam& named) {
  const auto found = std::find_if(config.groups.begin(), config.groups.end(),
                                  [&](const ParameterGroup& group) { return is_in(group, named); });
  return found == config.groups.end() ? 0 : static_cast<size_t>(found - config.groups.begin()) + 1;
}

/// The layers of a network with these parameters.
int64_t layers_of(const std::vector<NamedParam>& params) {
  int64_t layers = 0;
  for (const auto& [name, param] : params)
    if (!param.is_of_head()) layers = std::max(layers, param.depth());
  return layers;
}

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

}  // namespace

void freeze_layers(const std::vector<NamedParam>& params, int64_t layers) {
  for (auto [name, param] : params)
    if (param.depth() <= layers && param.init() != Init::fixed_features) param.set_base();
}

void thaw_layers(const std::vector<NamedParam>& params, int64_t layers) {
  const auto below = layers_of(params) - layers;
  for (auto [name, param] : params)
    if (!param.is_of_head()) param.set_frozen(param.depth() <= below);
}

double depth_factor(const OptimizerConfig& config, const Param& param, int64_t layers) {
  if (param.is_of_head()) return config.head_rate > 0 ? config.head_rate / config.learning_rate : 1;
  return std::pow(config.layer_decay, static_cast<double>(layers + 2 - param.depth()));
}

const UpdateOptions& update_options(const OptimizerConfig& config, const NamedParam& param) {
  const auto group = group_of(config, param);
  return group == 0 ? static_cast<const UpdateOptions&>(config) : config.groups[group - 1];
}

void check_groups(const OptimizerConfig& config, const std::vector<NamedParam>& params) {
  for (size_t k = 0; k < config.groups.size(); ++k) {
    bool is_empty = true;
    for (const auto& named : params) {
      if (!named.param.is_trained() || group_of(config, named) != k + 1) continue;
      is_empty = false;
      const auto& rule = config.groups[k].rule;
      require<ConfigError>(!updates_matrices_alone(rule) || shape_of(named.param).rows > 1, "optimizer.groups.", k,
                           ": ", kind_in(rule), " updates matrices, and ", named.name,
                           " is none; give the group role: weight");
    }
    require<ConfigError>(
        !is_empty, "optimizer.groups.", k,
        ": no parameter that is trained is in it, or all of them are in groups before it; names are those of "
        "the weights.safetensors of a checkpoint");
  }
}

bool decays(const UpdateOptions& config, const Param& param) {
  switch (param.role()) {
    case Role::any:
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

int64_t moment_bytes(const UpdateRule& rule, const Param& param) {
  return 4 * param.stacked() * moment_numbers(rule, shape_of(param));
}

/// Parameters that are updated alike.
struct Optimizer::Group {
  UpdateOptions options;
  double rate_factor = 1;        ///< on the learning rate of the optimizer
  size_t of = 0;                 ///< the group that it is of, at another depth
  double depth = 1;              ///< its factor by depth; 1: it is one of the config
  std::vector<int64_t> table{};  ///< of the matrices, as a GPU was given it
  Tensor device_table{};
  /// The matrices of its parameters that are not frozen, as published code stores them.
  std::vector<Matrix> matrices(const FlatParameters& flat, const std::vector<size_t>& group_of_param, size_t number,
                               const PartRange& own) const {
    std::vector<Matrix> list;
    for (size_t k = 0; k < flat.ranges().size(); ++k) {
      const auto& range = flat.ranges()[k];
      const auto& param = range.param.param;
      if (!param.is_trained() || group_of_param[k] != number || !own.contains(range.offset)) continue;
      const auto shape = shape_of(param);
      for (int64_t part = 0; part < param.stacked(); ++part)
        list.push_back({.param = k,
                        .part = part,
                        .parts = param.stacked(),
                        .offset = range.offset + part * shape.numel(),
                        .rows = shape.rows,
                        .columns = shape.columns,
                        .decays = decays(options, param)});
    }
    return list;
  }
};

Optimizer::Optimizer(const OptimizerConfig& config, FlatParameters& flat) : flat_(flat) {
  groups_.push_back({.options = config});
  for (const auto& group : config.groups) {
    const double factor = config.learning_rate > 0 ? group.learning_rate / config.learning_rate : 0;
    groups_.push_back({.options = group, .rate_factor = factor});
  }
  std::vector<NamedParam> params;
  for (const auto& range : flat.ranges()) params.push_back(range.param);
  const auto layers = layers_of(params);
  for (const auto& range : flat.ranges()) {
    const auto own = group_of(config, range.param);
    group_of_param_.push_back(group_at(own, depth_factor(config, range.param.param, layers)));
    const auto& rule = groups_[group_of_param_.back()].options.rule;
    auto& kept = moments_.emplace_back();
    for (const auto& moment : moments_of(rule, shape_of(range.param.param)))
      kept[moment.name] = zeros_of(moment, range);
  }
}

/// A moment of a parameter, zero at first.
Tensor Optimizer::zeros_of(const Moment& moment, const FlatParameters::Range& range) {
  const auto& param = range.param.param;
  const auto zeros = [&](at::IntArrayRef sizes) { return at::zeros(sizes, flat_.values.options()); };
  switch (moment.extent) {
    case Extent::flat: {
      auto& flat = flat_moments_[moment.name];
      if (!flat.defined()) flat = lazy_zeros(flat_.values.numel(), flat_.values.device());
      return flat.narrow(0, range.offset, range.numel).view(param.value().sizes());
    }
    case Extent::elements:
      return zeros(param.value().sizes());
    case Extent::rows:
      return zeros({param.stacked(), shape_of(param).rows});
    case Extent::columns:
      return zeros({param.stacked(), shape_of(param).columns});
  }
  return {};
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

void Optimizer::step(double learning_rate, double grad_scale, const PartRange& own) {
  at::NoGradGuard no_grad;
  ++updates;
  const bool fused = use_fused(flat_.values), on_device = device::is_used(flat_.values);
  bool keeps_shadow = true;
  for (size_t number = 0; number < groups_.size(); ++number) {
    auto& group = groups_[number];
    const auto matrices = group.matrices(flat_, group_of_param_, number, own);
    const Step step{updates, group.rate_factor == 1 ? learning_rate : learning_rate * group.rate_factor, grad_scale,
                    group.options.weight_decay};
    if (fused && has_kernels(group.options.rule)) {
      step_fused(group.options.rule, step, matrices);
    } else if (on_device && has_device_kernels(group.options.rule)) {
      step_on_device(group, step, is_elementwise(group.options.rule) ? joined(matrices) : matrices);
    } else {
      step_generic(group.options.rule, step, matrices);
      keeps_shadow = false;
    }
  }
  if (!keeps_shadow) flat_.refresh_shadow();
}

void Optimizer::forget_others(const PartRange& own) {
  for (const auto& [name, moment] : flat_moments_) {
    forget(moment.narrow(0, 0, own.begin));
    forget(moment.narrow(0, own.end, moment.numel() - own.end));
  }
}

void Optimizer::step_fused(const UpdateRule& rule, const Step& step, std::vector<Matrix> matrices) {
  const auto& shadow = flat_.shadow;
  auto chunks = chunks_of(matrices);
  const Buffers buffers{
      .matrices = std::move(matrices),
      .chunks = std::move(chunks),
      .moments = moments_,
      .values = flat_.values.data_ptr<float>(),
      .grads = flat_.grads.data_ptr<float>(),
      .shadow = shadow.defined() ? reinterpret_cast<uint16_t*>(shadow.data_ptr<at::BFloat16>()) : nullptr};
  std::visit(
      [&]<class Kind>(const Kind& kind) {
        if constexpr (HasKernels<Kind>) kind.update(step, buffers);
      },
      rule);
}

/// The numbers that a rule keeps of one matrix alone, up to two moments; null: it has no such moment.
std::array<float*, 2> Optimizer::own_moments(const Matrix& matrix, const UpdateRule& rule) const {
  std::array<float*, 2> pointers{};
  const auto kinds = moments_of(rule, matrix.shape());
  for (size_t k = 0; k < std::min(kinds.size(), pointers.size()); ++k) {
    if (kinds[k].extent == Extent::flat) continue;
    const auto& kept = moments_[matrix.param].at(kinds[k].name);
    pointers[k] = kept.data_ptr<float>() + matrix.part * (kept.numel() / matrix.parts);
  }
  return pointers;
}

void Optimizer::step_on_device(Group& group, const Step& step, const std::vector<Matrix>& matrices) {
  constexpr int64_t width = 256;  // tile_width of kernels.cu
  const auto parts = [](int64_t size) { return (size + width - 1) / width; };
  DeviceBuffers buffers{.matrices = matrices,
                        .values = flat_.values,
                        .grads = flat_.grads,
                        .shadow = flat_.shadow,
                        .flat_moments = flat_moments_,
                        .moments = moments_};
  std::vector<int64_t> table;
  for (const auto& matrix : matrices) {
    table.insert(table.end(), {buffers.tiles, buffers.rows, buffers.blocks, matrix.offset,
                               matrix.offset + matrix.numel(), matrix.decays, matrix.rows, matrix.columns});
    for (const auto* moment : own_moments(matrix, group.options.rule))
      table.push_back(reinterpret_cast<intptr_t>(moment));
    buffers.tiles += parts(matrix.numel());
    buffers.rows += matrix.rows;
    buffers.blocks += parts(matrix.rows) * parts(matrix.columns);
  }
  if (table != group.table) {  // parameters freeze
    group.device_table = at::tensor(table, at::kLong).to(flat_.values.device());
    group.table = std::move(table);
  }
  buffers.table = group.device_table;
  std::visit(
      [&]<class Kind>(const Kind& kind) {
        if constexpr (HasDeviceKernels<Kind>) kind.update(step, buffers);
      },
      group.options.rule);
}

/// What a rule keeps of one matrix.
Moments Optimizer::moments_in(const Matrix& matrix, const UpdateRule& rule) const {
  Moments moments;
  for (const auto& [name, extent] : moments_of(rule, matrix.shape()))
    if (extent == Extent::flat) {
      moments[name] = part_of(flat_moments_.at(name), matrix);
    } else {
      const auto& kept = moments_[matrix.param].at(name);
      const auto parts = extent == Extent::elements ? kept.view({-1, matrix.rows, matrix.columns}) : kept;
      moments[name] = parts.select(0, matrix.part);
    }
  return moments;
}

void Optimizer::step_generic(const UpdateRule& rule, const Step& step, const std::vector<Matrix>& matrices) {
  for (const auto& matrix : is_elementwise(rule) ? joined(matrices) : matrices) {
    const auto values = part_of(flat_.values, matrix), gradient = part_of(flat_.grads, matrix);
    const auto scaled = gradient * step.grad_scale;
    const auto moments = moments_in(matrix, rule);
    std::visit([&](const auto& kind) { kind.update(step, {matrix.decays, values, scaled, moments}); }, rule);
    gradient.zero_();
  }
}

void optimizers::descend(const DeviceBuffers& buffers, const Tensor& factors, double rate, double weight_decay) {
  device::run(buffers.values, "descend", buffers.tiles, buffers.count(), buffers.tiles, device::data(buffers.table),
              device::data(factors), static_cast<float>(rate), static_cast<float>(weight_decay),
              device::data(buffers.values), device::data(buffers.grads), device::data(buffers.shadow));
}

StateDict Optimizer::state() const {
  StateDict tensors;
  for (size_t k = 0; k < moments_.size(); ++k)
    for (const auto& [moment, tensor] : moments_[k])
      tensors.emplace_back(moment + "." + flat_.ranges()[k].param.name, tensor);
  return tensors;
}

void Optimizer::load(const StateDict& saved) {
  at::NoGradGuard no_grad;
  for (auto& [name, target] : state()) {
    const auto moment =
        std::find_if(saved.begin(), saved.end(), [&, key = name](const auto& s) { return s.first == key; });
    require<CheckpointError>(moment != saved.end() && moment->second.sizes() == target.sizes(),
                             "the optimizer's state has no tensor '", name,
                             "' of the right shape; the checkpoint belongs to another model or another optimizer");
    target.copy_(moment->second);
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

std::vector<double> norms_of(const std::vector<Tensor>& gradients) {
  std::vector<double> norms;
  if (gradients.empty()) return norms;
  if (gradients[0].is_cpu()) {
    for (const auto& one : gradients) norms.push_back(global_norm(one));
    return norms;
  }
  const auto all = at::stack(at::_foreach_norm(gradients)).to(at::kCPU, at::kDouble);  // one wait for the device
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

}  // namespace cloze

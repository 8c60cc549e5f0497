#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/tensor/ops.h"
#include "train/optimizers.h"

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

/// True for both moments of Adam, in flat buffers; else the second ones alone, of each parameter.
bool has_adam_moments(const UpdateRule& rule) { return part_in<AdamMoments>(rule) != nullptr; }

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

/// The unfrozen parameters as published code stores them.
std::vector<Matrix> matrices_of(const OptimizerConfig& config, const FlatParameters& flat) {
  std::vector<Matrix> found;
  for (size_t k = 0; k < flat.ranges().size(); ++k) {
    const auto& range = flat.ranges()[k];
    const auto& param = range.param.param;
    if (param.frozen() || param.fixed()) continue;
    const Shape shape(param.value().sizes(), param.stacked());
    for (int64_t part = 0; part < param.stacked(); ++part)
      found.push_back({.param = k,
                       .part = part,
                       .offset = range.offset + part * shape.rows * shape.columns,
                       .rows = shape.rows,
                       .columns = shape.columns,
                       .decays = decays(config, param),
                       .factored = factors(config.rule, shape)});
  }
  return found;
}

std::vector<Chunk> chunks_of(const std::vector<Matrix>& matrices) {
  std::vector<Chunk> found;
  for (size_t k = 0; k < matrices.size(); ++k) {
    const auto& matrix = matrices[k];
    const int64_t rows = std::max<int64_t>(1, chunk_floats / std::max<int64_t>(1, matrix.columns));
    for (int64_t row = 0; row < matrix.rows; row += rows) {
      const int64_t count = std::min(rows, matrix.rows - row);
      found.push_back({.matrix = k,
                       .offset = matrix.offset + row * matrix.columns,
                       .first_row = row,
                       .rows = count,
                       .numel = count * matrix.columns});
    }
  }
  return found;
}

}  // namespace

bool decays(const OptimizerConfig& config, const Param& param) {
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
  return (has_adam_moments(rule) ? 8 : 4) * stacked * shape.rows * shape.columns;
}

Optimizer::Optimizer(const OptimizerConfig& config, FlatParameters& flat) : config_(config), flat_(flat) {
  const bool adam = has_adam_moments(config.rule);
  if (adam) {
    exp_avg_ = at::zeros_like(flat.values);
    exp_avg_sq_ = at::zeros_like(flat.values);
  }
  for (const auto& range : flat.ranges()) {
    const auto sizes = range.param.param.value().sizes();
    const int64_t stacked = range.param.param.stacked();
    const Shape shape(sizes, stacked);
    const auto view = [&](const Tensor& t) { return t.narrow(0, range.offset, range.numel).view(sizes); };
    const auto zeros = [&](at::IntArrayRef of) { return at::zeros(of, flat.values.options()); };
    auto& moments = moments_.emplace_back();
    if (adam) {
      moments.exp_avg = view(exp_avg_);
      moments.exp_avg_sq = view(exp_avg_sq_);
    } else if (factors(config.rule, shape)) {
      moments.exp_avg_sq_row = zeros({stacked, shape.rows});
      moments.exp_avg_sq_col = zeros({stacked, shape.columns});
    } else {
      moments.exp_avg_sq = zeros(sizes);
    }
  }
}

void Optimizer::step(double learning_rate, double grad_scale) {
  at::NoGradGuard no_grad;
  ++updates;
  const FusedScope kernels_wanted;
  if (!use_fused(flat_.values)) return step_generic(learning_rate, grad_scale);
  const auto matrices = matrices_of(config_, flat_);
  const optimizers::Step step{updates, learning_rate, grad_scale, config_.weight_decay};
  const auto& shadow = flat_.shadow;
  const optimizers::Buffers buffers{
      .matrices = matrices,
      .chunks = chunks_of(matrices),
      .values = flat_.values.data_ptr<float>(),
      .grads = flat_.grads.data_ptr<float>(),
      .shadow = shadow.defined() ? reinterpret_cast<uint16_t*>(shadow.data_ptr<at::BFloat16>()) : nullptr};
  const bool adam = exp_avg_.defined();
  const optimizers::Memory memory{.exp_avg = adam ? exp_avg_.data_ptr<float>() : nullptr,
                                  .exp_avg_sq = adam ? exp_avg_sq_.data_ptr<float>() : nullptr,
                                  .of_params = moments_};
  std::visit([&](const auto& rule) { optimizers::update(rule, step, buffers, memory); }, config_.rule);
}

void Optimizer::step_generic(double learning_rate, double grad_scale) {
  auto matrices = matrices_of(config_, flat_);
  if (part_in<AdamW>(config_.rule)) matrices = joined(matrices);
  for (const auto& matrix : matrices) {
    const auto of = [&](const Tensor& flat) {
      return flat.narrow(0, matrix.offset, matrix.numel()).view({matrix.rows, matrix.columns});
    };
    const auto& m = moments_[matrix.param];
    Moments moments{};
    if (has_adam_moments(config_.rule)) {
      moments.exp_avg = of(exp_avg_);
      moments.exp_avg_sq = of(exp_avg_sq_);
    } else if (matrix.factored) {
      moments.exp_avg_sq_row = m.exp_avg_sq_row.select(0, matrix.part);
      moments.exp_avg_sq_col = m.exp_avg_sq_col.select(0, matrix.part);
    } else {
      moments.exp_avg_sq = m.exp_avg_sq.view({-1, matrix.rows, matrix.columns}).select(0, matrix.part);
    }
    plain_update(config_, updates, learning_rate, grad_scale, matrix.decays, of(flat_.values), of(flat_.grads),
                 moments);
    of(flat_.grads).zero_();
  }
  flat_.refresh_shadow();
}

void plain_update(const OptimizerConfig& config, int64_t update, double learning_rate, double grad_scale, bool decays,
                  const Tensor& p, const Tensor& g, const Moments& m) {
  const optimizers::Step step{update, learning_rate, grad_scale, config.weight_decay};
  const auto gradient = g * grad_scale;
  std::visit([&](const auto& rule) { optimizers::update(rule, step, decays, p, gradient, m); }, config.rule);
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, Tensor>> found;
  for (size_t k = 0; k < moments_.size(); ++k) {
    const auto& m = moments_[k];
    const auto& name = flat_.ranges()[k].param.name;
    for (const auto& [kind, tensor] : {std::pair{"exp_avg.", m.exp_avg},
                                       {"exp_avg_sq.", m.exp_avg_sq},
                                       {"exp_avg_sq_row.", m.exp_avg_sq_row},
                                       {"exp_avg_sq_col.", m.exp_avg_sq_col}})
      if (tensor.defined()) found.emplace_back(kind + name, tensor);
  }
  return found;
}

void Optimizer::load(const std::vector<std::pair<std::string, Tensor>>& saved) {
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

#include "train/optimizer.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/kernels/kernels.h"
#include "core/tensor/ops.h"

namespace cloze {

namespace {

constexpr int64_t chunk_floats = 1 << 16;  // work is divided into chunks of about this size, for any number of threads
constexpr double min_scale = 1e-3, square_epsilon = 1e-30;  // epsilon_2 and epsilon_1 of Adafactor
constexpr int64_t min_factored_size = 128;

/// Calls f(i) for each i below `count`, distributed over the threads in turn, since neighbouring chunks differ in size.
/// The chunks themselves do not depend on the number of threads.
template <class F>
void parallel_each(size_t count, const F& f) {
  const int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
    for (auto t = first; t < last; ++t)
      for (auto i = static_cast<size_t>(t); i < count; i += static_cast<size_t>(threads)) f(i);
  });
}

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

bool factors(const OptimizerConfig& config, const Shape& shape) {
  return config.kind == OptimizerKind::adafactor && std::min(shape.rows, shape.columns) >= min_factored_size;
}

double root_mean_square(double sum, int64_t rows, int64_t columns) {
  return std::sqrt(sum / static_cast<double>(rows * columns));
}

/// 1 - beta^t, the bias correction of a moving average that starts at zero.
double correction(const OptimizerConfig& config, double beta, int64_t update) {
  return config.bias_correction ? 1 - std::pow(beta, static_cast<double>(update)) : 1;
}

/// The term added to the square root of the corrected second moment.
double epsilon(const OptimizerConfig& config, int64_t update) {
  return config.epsilon_hat ? config.epsilon / std::sqrt(correction(config, config.beta2, update)) : config.epsilon;
}

/// Adafactor's decay of second moments. Source: Shazeer and Stern 2018, section 7.2.
double second_decay(int64_t update) { return 1 - std::pow(static_cast<double>(update), -0.8); }

double trust_ratio(double weights, double updates) { return weights > 0 && updates > 0 ? weights / updates : 1; }

}  // namespace

/// A tensor as published code stores it: one of the stacked parts of a parameter.
struct Optimizer::Matrix {
  size_t param;
  int64_t part, offset, rows, columns;
  bool decays, factored;  // decays: weight decay and LAMB's trust ratio apply
  int64_t numel() const { return rows * columns; }
};
/// Consecutive rows of a matrix.
struct Optimizer::Chunk {
  size_t matrix;
  int64_t offset, first_row, rows, numel;
};

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

int64_t moment_bytes(const OptimizerConfig& config, at::IntArrayRef sizes, int64_t stacked) {
  const Shape shape(sizes, stacked);
  if (factors(config, shape)) return 4 * stacked * (shape.rows + shape.columns);
  return (config.kind == OptimizerKind::adafactor ? 4 : 8) * stacked * shape.rows * shape.columns;
}

Optimizer::Optimizer(const OptimizerConfig& config, FlatParameters& flat) : config_(config), flat_(flat) {
  if (config.kind != OptimizerKind::adafactor)
    exp_avg_ = at::zeros_like(flat.values), exp_avg_sq_ = at::zeros_like(flat.values);
  for (const auto& range : flat.ranges()) {
    const auto sizes = range.param.param.value().sizes();
    const int64_t stacked = range.param.param.stacked();
    const Shape shape(sizes, stacked);
    const auto view = [&](const Tensor& t) { return t.narrow(0, range.offset, range.numel).view(sizes); };
    const auto zeros = [&](at::IntArrayRef of) { return at::zeros(of, flat.values.options()); };
    if (config.kind != OptimizerKind::adafactor)
      moments_.push_back({.exp_avg = view(exp_avg_), .exp_avg_sq = view(exp_avg_sq_)});
    else if (factors(config, shape))
      moments_.push_back({.exp_avg = {},
                          .exp_avg_sq = {},
                          .exp_avg_sq_row = zeros({stacked, shape.rows}),
                          .exp_avg_sq_col = zeros({stacked, shape.columns})});
    else
      moments_.push_back({.exp_avg = {}, .exp_avg_sq = zeros(sizes)});
  }
}

std::vector<Optimizer::Matrix> Optimizer::matrices() const {
  std::vector<Matrix> found;
  for (size_t k = 0; k < flat_.ranges().size(); ++k) {
    const auto& range = flat_.ranges()[k];
    const auto& param = range.param.param;
    if (param.frozen() || param.fixed()) continue;
    const Shape shape(param.value().sizes(), param.stacked());
    const bool decayed = decays(config_, param);
    for (int64_t part = 0; part < param.stacked(); ++part)
      found.push_back({k, part, range.offset + part * shape.rows * shape.columns, shape.rows, shape.columns, decayed,
                       factors(config_, shape)});
  }
  return found;
}

void Optimizer::step(double learning_rate, double grad_scale) {
  at::NoGradGuard no_grad;
  ++updates;
  const FusedScope kernels_wanted;
  if (!use_fused(flat_.values)) {
    step_generic(learning_rate, grad_scale);
  } else if (config_.kind == OptimizerKind::adafactor) {
    adafactor(learning_rate, grad_scale);
  } else {
    adam(learning_rate, grad_scale);
  }
}

void Optimizer::step_generic(double learning_rate, double grad_scale) {
  auto matrices = this->matrices();
  if (config_.kind == OptimizerKind::adamw) {  // elementwise, so that adjacent matrices can be updated together
    std::vector<Matrix> joined;
    for (const auto& matrix : matrices) {
      if (!joined.empty() && joined.back().decays == matrix.decays &&
          (joined.back().offset + joined.back().numel() + 15) / 16 * 16 == (matrix.offset + 15) / 16 * 16)
        joined.back().columns = matrix.offset + matrix.numel() - joined.back().offset;
      else
        joined.push_back({.param = matrix.param,
                          .part = 0,
                          .offset = matrix.offset,
                          .rows = 1,
                          .columns = matrix.numel(),
                          .decays = matrix.decays,
                          .factored = false});
    }
    matrices = std::move(joined);
  }
  for (const auto& matrix : matrices) {
    const auto& m = moments_[matrix.param];
    const auto of = [&](const Tensor& flat) {
      return flat.narrow(0, matrix.offset, matrix.numel()).view({matrix.rows, matrix.columns});
    };
    Moments moments{};
    if (config_.kind != OptimizerKind::adafactor)
      moments = {of(exp_avg_), of(exp_avg_sq_)};
    else if (matrix.factored)
      moments = {.exp_avg = {},
                 .exp_avg_sq = {},
                 .exp_avg_sq_row = m.exp_avg_sq_row.select(0, matrix.part),
                 .exp_avg_sq_col = m.exp_avg_sq_col.select(0, matrix.part)};
    else
      moments = {.exp_avg = {},
                 .exp_avg_sq = m.exp_avg_sq.view({-1, matrix.rows, matrix.columns}).select(0, matrix.part)};
    plain_update(config_, updates, learning_rate, grad_scale, matrix.decays, of(flat_.values), of(flat_.grads),
                 moments);
    of(flat_.grads).zero_();
  }
  flat_.refresh_shadow();
}

std::vector<Optimizer::Chunk> Optimizer::chunks(const std::vector<Matrix>& matrices) const {
  std::vector<Chunk> found;
  for (size_t k = 0; k < matrices.size(); ++k) {
    const auto& matrix = matrices[k];
    const int64_t rows = std::max<int64_t>(1, chunk_floats / std::max<int64_t>(1, matrix.columns));
    for (int64_t row = 0; row < matrix.rows; row += rows) {
      const int64_t count = std::min(rows, matrix.rows - row);
      found.push_back({k, matrix.offset + row * matrix.columns, row, count, count * matrix.columns});
    }
  }
  return found;
}

/// Root mean square of the weights of each matrix, at least epsilon_2.
std::vector<double> Optimizer::scales(const std::vector<Matrix>& matrices, const std::vector<Chunk>& chunks) const {
  std::vector<double> found(matrices.size()), sums(chunks.size());
  const auto* p = flat_.values.data_ptr<float>();
  parallel_each(chunks.size(), [&](size_t i) {
    sums[i] = kernels::table().updates.sum_of_squares(chunks[i].numel, p + chunks[i].offset);
  });
  for (size_t i = 0; i < chunks.size(); ++i) found[chunks[i].matrix] += sums[i];
  for (size_t k = 0; k < matrices.size(); ++k)
    found[k] = std::max(min_scale, root_mean_square(found[k], matrices[k].rows, matrices[k].columns));
  return found;
}

void Optimizer::adam(double learning_rate, double grad_scale) {
  const auto matrices = this->matrices();
  const auto chunks = this->chunks(matrices);
  const auto& update = kernels::table().updates;
  const kernels::Adam adam{.beta1 = static_cast<float>(config_.beta1),
                           .beta2 = static_cast<float>(config_.beta2),
                           .epsilon = static_cast<float>(epsilon(config_, updates)),
                           .correction1 = static_cast<float>(correction(config_, config_.beta1, updates)),
                           .correction2 = static_cast<float>(correction(config_, config_.beta2, updates)),
                           .grad_scale = static_cast<float>(grad_scale)};
  auto *p = flat_.values.data_ptr<float>(), *g = flat_.grads.data_ptr<float>(), *m = exp_avg_.data_ptr<float>(),
       *v = exp_avg_sq_.data_ptr<float>();
  auto* shadow = flat_.shadow.defined() ? reinterpret_cast<uint16_t*>(flat_.shadow.data_ptr<at::BFloat16>()) : nullptr;
  const auto shadow_at = [&](const Chunk& chunk) { return shadow ? shadow + chunk.offset : nullptr; };
  const auto decay = [&](const Chunk& chunk) { return matrices[chunk.matrix].decays ? config_.weight_decay : 0; };
  if (config_.kind == OptimizerKind::adamw) {
    parallel_each(chunks.size(), [&](size_t i) {
      const auto& chunk = chunks[i];
      update.adamw(adam, static_cast<float>(learning_rate), static_cast<float>(learning_rate * decay(chunk)),
                   chunk.numel, p + chunk.offset, g + chunk.offset, m + chunk.offset, v + chunk.offset,
                   shadow_at(chunk));
    });
    return;
  }
  std::vector<std::array<double, 2>> sums(chunks.size()), norms(matrices.size());  // squares of weights, of updates
  parallel_each(chunks.size(), [&](size_t i) {
    const auto& chunk = chunks[i];
    update.direction(adam, static_cast<float>(decay(chunk)), chunk.numel, p + chunk.offset, g + chunk.offset,
                     m + chunk.offset, v + chunk.offset);
    sums[i] = {update.sum_of_squares(chunk.numel, p + chunk.offset),
               update.sum_of_squares(chunk.numel, g + chunk.offset)};
  });
  for (size_t i = 0; i < chunks.size(); ++i)
    for (size_t side : {0, 1}) norms[chunks[i].matrix][side] += sums[i][side];
  parallel_each(chunks.size(), [&](size_t i) {
    const auto& chunk = chunks[i];
    const auto& [weights, steps] = norms[chunk.matrix];
    const double ratio = matrices[chunk.matrix].decays ? trust_ratio(std::sqrt(weights), std::sqrt(steps)) : 1;
    update.descend(static_cast<float>(learning_rate * ratio), 0, chunk.numel, p + chunk.offset, g + chunk.offset,
                   shadow_at(chunk));
  });
}

void Optimizer::adafactor(double learning_rate, double grad_scale) {
  const auto matrices = this->matrices();
  const auto chunks = this->chunks(matrices);
  const auto& update = kernels::table().updates;
  auto *p = flat_.values.data_ptr<float>(), *g = flat_.grads.data_ptr<float>();
  auto* shadow = flat_.shadow.defined() ? reinterpret_cast<uint16_t*>(flat_.shadow.data_ptr<at::BFloat16>()) : nullptr;
  const auto decay = static_cast<float>(second_decay(updates)), new_weight = 1 - decay;
  const double scale_squared = grad_scale * grad_scale;
  // Means of squares: those of rows are complete within a chunk, those of columns are summed over chunks.
  std::vector<std::vector<float>> row_sums(chunks.size()), column_sums(chunks.size());
  parallel_each(chunks.size(), [&](size_t i) {
    const auto& chunk = chunks[i];
    const auto& matrix = matrices[chunk.matrix];
    if (!matrix.factored) return;
    row_sums[i].resize(static_cast<size_t>(chunk.rows)), column_sums[i].assign(static_cast<size_t>(matrix.columns), 0);
    update.squares(chunk.rows, matrix.columns, g + chunk.offset, row_sums[i].data(), column_sums[i].data());
  });
  std::vector<std::vector<float>> row_factors(matrices.size()), column_factors(matrices.size());
  std::vector<std::vector<double>> columns(matrices.size());
  const auto data_of = [&](const Tensor& means, const Matrix& matrix) {
    return means.select(0, matrix.part).data_ptr<float>();
  };
  for (size_t i = 0; i < chunks.size(); ++i) {
    const auto& chunk = chunks[i];
    const auto& matrix = matrices[chunk.matrix];
    if (!matrix.factored) continue;
    auto* row = data_of(moments_[matrix.param].exp_avg_sq_row, matrix) + chunk.first_row;
    for (size_t r = 0; r < row_sums[i].size(); ++r)
      row[r] = decay * row[r] +
               new_weight * static_cast<float>(row_sums[i][r] * scale_squared / static_cast<double>(matrix.columns) +
                                               square_epsilon);
    columns[chunk.matrix].resize(static_cast<size_t>(matrix.columns));
    for (size_t c = 0; c < columns[chunk.matrix].size(); ++c) columns[chunk.matrix][c] += column_sums[i][c];
  }
  for (size_t k = 0; k < matrices.size(); ++k) {
    const auto& matrix = matrices[k];
    if (!matrix.factored) continue;
    const auto* row = data_of(moments_[matrix.param].exp_avg_sq_row, matrix);
    auto* column = data_of(moments_[matrix.param].exp_avg_sq_col, matrix);
    double mean = 0;
    for (int64_t r = 0; r < matrix.rows; ++r) mean += row[r] / static_cast<double>(matrix.rows);
    for (int64_t r = 0; r < matrix.rows; ++r)
      row_factors[k].push_back(static_cast<float>(grad_scale / std::sqrt(row[r] / mean)));
    for (int64_t c = 0; c < matrix.columns; ++c) {
      column[c] =
          decay * column[c] + new_weight * static_cast<float>(columns[k][static_cast<size_t>(c)] * scale_squared /
                                                                  static_cast<double>(matrix.rows) +
                                                              square_epsilon);
      column_factors[k].push_back(static_cast<float>(1 / std::sqrt(static_cast<double>(column[c]))));
    }
  }
  // The update overwrites the gradient; its root mean square is clipped to 1.
  std::vector<double> sums(chunks.size()), size(matrices.size());
  parallel_each(chunks.size(), [&](size_t i) {
    const auto& chunk = chunks[i];
    const auto& matrix = matrices[chunk.matrix];
    auto* at = g + chunk.offset;
    if (matrix.factored) {
      update.scale(chunk.rows, matrix.columns, row_factors[chunk.matrix].data() + chunk.first_row,
                   column_factors[chunk.matrix].data(), at);
    } else {
      auto* second = moments_[matrix.param].exp_avg_sq.data_ptr<float>() + matrix.part * matrix.numel() +
                     chunk.first_row * matrix.columns;
      for (int64_t k = 0; k < chunk.numel; ++k) {
        const auto x = static_cast<float>(grad_scale) * at[k];
        second[k] = decay * second[k] + new_weight * (x * x + static_cast<float>(square_epsilon));
        at[k] = x / std::sqrt(second[k]);
      }
    }
    sums[i] = update.sum_of_squares(chunk.numel, at);
  });
  for (size_t i = 0; i < chunks.size(); ++i) size[chunks[i].matrix] += sums[i];
  const auto scale = scales(matrices, chunks);
  parallel_each(chunks.size(), [&](size_t i) {
    const auto& chunk = chunks[i];
    const auto& matrix = matrices[chunk.matrix];
    const double rate = learning_rate * scale[chunk.matrix] /
                        std::max(1.0, root_mean_square(size[chunk.matrix], matrix.rows, matrix.columns));
    update.descend(static_cast<float>(rate),
                   static_cast<float>(learning_rate * (matrix.decays ? config_.weight_decay : 0)), chunk.numel,
                   p + chunk.offset, g + chunk.offset, shadow ? shadow + chunk.offset : nullptr);
  });
}

void plain_update(const OptimizerConfig& config, int64_t update, double learning_rate, double grad_scale, bool decays,
                  const Tensor& p, const Tensor& g, const Moments& m) {
  const double decay = decays ? config.weight_decay : 0;
  const auto size = [](const Tensor& t) { return t.square().mean().sqrt(); };
  const auto gradient = g * grad_scale;
  const auto squared = gradient.square();
  if (config.kind == OptimizerKind::adafactor) {
    const double decay_rate = second_decay(update);
    const auto average = [&](const Tensor& of, const Tensor& now) {
      return of.mul_(decay_rate).add_(now + square_epsilon, 1 - decay_rate);
    };
    Tensor step;
    if (m.exp_avg_sq.defined()) {
      step = gradient / average(m.exp_avg_sq, squared).sqrt();
    } else {
      const auto row = average(m.exp_avg_sq_row, squared.mean(1)), column = average(m.exp_avg_sq_col, squared.mean(0));
      step = gradient / (row / row.mean()).sqrt().unsqueeze(1) / column.sqrt();
    }
    const auto rate = learning_rate * size(p).clamp_min(min_scale) / size(step).clamp_min(1);
    p.mul_(1 - learning_rate * decay).sub_(rate * step);
    return;
  }
  m.exp_avg.mul_(config.beta1).add_(gradient, 1 - config.beta1);
  m.exp_avg_sq.mul_(config.beta2).add_(squared, 1 - config.beta2);
  auto step = m.exp_avg / correction(config, config.beta1, update) /
              ((m.exp_avg_sq / correction(config, config.beta2, update)).sqrt() + epsilon(config, update));
  if (config.kind == OptimizerKind::adamw) {
    p.mul_(1 - learning_rate * decay).sub_(step, learning_rate);
    return;
  }
  step = step + decay * p;
  if (decays) {
    const auto weights = p.norm(), steps = step.norm();
    step = step * at::where(weights.gt(0).logical_and(steps.gt(0)), weights / steps, at::ones_like(steps));
  }
  p.sub_(step, learning_rate);
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

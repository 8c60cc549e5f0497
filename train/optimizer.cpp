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

constexpr int64_t block_floats = 1 << 16;  // work is cut into pieces of about this size, whatever the threads
constexpr double smallest_scale = 1e-3, smallest_square = 1e-30;  // epsilon 2 and 1 of Adafactor
constexpr int64_t least_factored = 128;

/// f(i) for each i below `count`, spread over the threads in turns: neighbours differ in size, and what they are does
/// not depend on threads.
template <class F>
void each(size_t count, const F& f) {
  const int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
    for (auto t = first; t < last; ++t)
      for (auto i = static_cast<size_t>(t); i < count; i += static_cast<size_t>(threads)) f(i);
  });
}

/// Rows and columns of a tensor as an optimizer sees each of its stacked parts; a vector is one row.
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
  return config.kind == OptimizerKind::adafactor && std::min(shape.rows, shape.columns) >= least_factored;
}

double root_mean_square(double sum, int64_t rows, int64_t columns) {
  return std::sqrt(sum / static_cast<double>(rows * columns));
}

/// 1 - beta^t, by which an average that began at zero is divided.
double correction(const OptimizerConfig& config, double beta, int64_t update) {
  return config.bias_correction ? 1 - std::pow(beta, static_cast<double>(update)) : 1;
}

/// What is added to the root of the corrected second moment.
double epsilon(const OptimizerConfig& config, int64_t update) {
  return config.epsilon_hat ? config.epsilon / std::sqrt(correction(config, config.beta2, update)) : config.epsilon;
}

/// Adafactor's decay of second moments. Source: Shazeer and Stern 2018, section 7.2.
double second_decay(int64_t update) { return 1 - std::pow(static_cast<double>(update), -0.8); }

double trust_ratio(double weights, double updates) { return weights > 0 && updates > 0 ? weights / updates : 1; }

}  // namespace

/// A tensor as published code has it: one of the stacked ones of a slot.
struct Optimizer::Piece {
  size_t slot;
  int64_t part, offset, rows, columns;
  bool decays, factored;  // weight decay applies, and of LAMB the ratio
  int64_t numel() const { return rows * columns; }
};
/// Rows of a piece.
struct Optimizer::Block {
  size_t piece;
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
  for (const auto& slot : flat.slots()) {
    const auto sizes = slot.param.param.value().sizes();
    const int64_t stacked = slot.param.param.stacked();
    const Shape shape(sizes, stacked);
    const auto view = [&](const Tensor& t) { return t.narrow(0, slot.offset, slot.numel).view(sizes); };
    const auto fresh = [&](at::IntArrayRef of) { return at::zeros(of, flat.values.options()); };
    if (config.kind != OptimizerKind::adafactor)
      moments_.push_back({.exp_avg = view(exp_avg_), .exp_avg_sq = view(exp_avg_sq_)});
    else if (factors(config, shape))
      moments_.push_back({.exp_avg = {},
                          .exp_avg_sq = {},
                          .exp_avg_sq_row = fresh({stacked, shape.rows}),
                          .exp_avg_sq_col = fresh({stacked, shape.columns})});
    else
      moments_.push_back({.exp_avg = {}, .exp_avg_sq = fresh(sizes)});
  }
}

std::vector<Optimizer::Piece> Optimizer::pieces() const {
  std::vector<Piece> found;
  for (size_t k = 0; k < flat_.slots().size(); ++k) {
    const auto& slot = flat_.slots()[k];
    const auto& param = slot.param.param;
    if (param.resting() || param.fixed()) continue;
    const Shape shape(param.value().sizes(), param.stacked());
    const bool decayed = decays(config_, param);
    for (int64_t part = 0; part < param.stacked(); ++part)
      found.push_back({k, part, slot.offset + part * shape.rows * shape.columns, shape.rows, shape.columns, decayed,
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
  auto pieces = this->pieces();
  if (config_.kind == OptimizerKind::adamw) {  // every number on its own: neighbours go together
    std::vector<Piece> joined;
    for (const auto& piece : pieces) {
      if (!joined.empty() && joined.back().decays == piece.decays &&
          (joined.back().offset + joined.back().numel() + 15) / 16 * 16 == (piece.offset + 15) / 16 * 16)
        joined.back().columns = piece.offset + piece.numel() - joined.back().offset;
      else
        joined.push_back({.slot = piece.slot,
                          .part = 0,
                          .offset = piece.offset,
                          .rows = 1,
                          .columns = piece.numel(),
                          .decays = piece.decays,
                          .factored = false});
    }
    pieces = std::move(joined);
  }
  for (const auto& piece : pieces) {
    const auto& m = moments_[piece.slot];
    const auto of = [&](const Tensor& flat) {
      return flat.narrow(0, piece.offset, piece.numel()).view({piece.rows, piece.columns});
    };
    Moments moments{};
    if (config_.kind != OptimizerKind::adafactor)
      moments = {of(exp_avg_), of(exp_avg_sq_)};
    else if (piece.factored)
      moments = {.exp_avg = {},
                 .exp_avg_sq = {},
                 .exp_avg_sq_row = m.exp_avg_sq_row.select(0, piece.part),
                 .exp_avg_sq_col = m.exp_avg_sq_col.select(0, piece.part)};
    else
      moments = {.exp_avg = {}, .exp_avg_sq = m.exp_avg_sq.view({-1, piece.rows, piece.columns}).select(0, piece.part)};
    plain_update(config_, updates, learning_rate, grad_scale, piece.decays, of(flat_.values), of(flat_.grads), moments);
    of(flat_.grads).zero_();
  }
  flat_.refresh_shadow();
}

std::vector<Optimizer::Block> Optimizer::blocks(const std::vector<Piece>& pieces) const {
  std::vector<Block> found;
  for (size_t k = 0; k < pieces.size(); ++k) {
    const auto& piece = pieces[k];
    const int64_t rows = std::max<int64_t>(1, block_floats / std::max<int64_t>(1, piece.columns));
    for (int64_t row = 0; row < piece.rows; row += rows) {
      const int64_t count = std::min(rows, piece.rows - row);
      found.push_back({k, piece.offset + row * piece.columns, row, count, count * piece.columns});
    }
  }
  return found;
}

/// Root of the mean square of each piece's weights, at least epsilon 2.
std::vector<double> Optimizer::scales(const std::vector<Piece>& pieces, const std::vector<Block>& blocks) const {
  std::vector<double> found(pieces.size()), sums(blocks.size());
  const auto* p = flat_.values.data_ptr<float>();
  each(blocks.size(),
       [&](size_t b) { sums[b] = kernels::table().updates.sum_of_squares(blocks[b].numel, p + blocks[b].offset); });
  for (size_t b = 0; b < blocks.size(); ++b) found[blocks[b].piece] += sums[b];
  for (size_t k = 0; k < pieces.size(); ++k)
    found[k] = std::max(smallest_scale, root_mean_square(found[k], pieces[k].rows, pieces[k].columns));
  return found;
}

void Optimizer::adam(double learning_rate, double grad_scale) {
  const auto pieces = this->pieces();
  const auto blocks = this->blocks(pieces);
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
  const auto shadow_at = [&](const Block& b) { return shadow ? shadow + b.offset : nullptr; };
  const auto decay = [&](const Block& b) { return pieces[b.piece].decays ? config_.weight_decay : 0; };
  if (config_.kind == OptimizerKind::adamw) {
    each(blocks.size(), [&](size_t i) {
      const auto& b = blocks[i];
      update.adamw(adam, static_cast<float>(learning_rate), static_cast<float>(learning_rate * decay(b)), b.numel,
                   p + b.offset, g + b.offset, m + b.offset, v + b.offset, shadow_at(b));
    });
    return;
  }
  std::vector<std::array<double, 2>> sums(blocks.size()), norms(pieces.size());  // squares of weights, of updates
  each(blocks.size(), [&](size_t i) {
    const auto& b = blocks[i];
    update.direction(adam, static_cast<float>(decay(b)), b.numel, p + b.offset, g + b.offset, m + b.offset,
                     v + b.offset);
    sums[i] = {update.sum_of_squares(b.numel, p + b.offset), update.sum_of_squares(b.numel, g + b.offset)};
  });
  for (size_t i = 0; i < blocks.size(); ++i)
    for (size_t side : {0, 1}) norms[blocks[i].piece][side] += sums[i][side];
  each(blocks.size(), [&](size_t i) {
    const auto& b = blocks[i];
    const auto& [weights, steps] = norms[b.piece];
    const double ratio = pieces[b.piece].decays ? trust_ratio(std::sqrt(weights), std::sqrt(steps)) : 1;
    update.descend(static_cast<float>(learning_rate * ratio), 0, b.numel, p + b.offset, g + b.offset, shadow_at(b));
  });
}

void Optimizer::adafactor(double learning_rate, double grad_scale) {
  const auto pieces = this->pieces();
  const auto blocks = this->blocks(pieces);
  const auto& update = kernels::table().updates;
  auto *p = flat_.values.data_ptr<float>(), *g = flat_.grads.data_ptr<float>();
  auto* shadow = flat_.shadow.defined() ? reinterpret_cast<uint16_t*>(flat_.shadow.data_ptr<at::BFloat16>()) : nullptr;
  const auto keep = static_cast<float>(second_decay(updates)), fresh = 1 - keep;
  const double scale_squared = grad_scale * grad_scale;
  // Means of squares: of rows while a block is read, of columns from what its blocks found.
  std::vector<std::vector<float>> row_sums(blocks.size()), column_sums(blocks.size());
  each(blocks.size(), [&](size_t i) {
    const auto& b = blocks[i];
    const auto& piece = pieces[b.piece];
    if (!piece.factored) return;
    row_sums[i].resize(static_cast<size_t>(b.rows)), column_sums[i].assign(static_cast<size_t>(piece.columns), 0);
    update.squares(b.rows, piece.columns, g + b.offset, row_sums[i].data(), column_sums[i].data());
  });
  std::vector<std::vector<float>> row_factors(pieces.size()), column_factors(pieces.size());
  std::vector<std::vector<double>> columns(pieces.size());
  const auto place = [&](const Tensor& means, const Piece& piece) {
    return means.select(0, piece.part).data_ptr<float>();
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto& b = blocks[i];
    const auto& piece = pieces[b.piece];
    if (!piece.factored) continue;
    auto* row = place(moments_[piece.slot].exp_avg_sq_row, piece) + b.first_row;
    for (size_t r = 0; r < row_sums[i].size(); ++r)
      row[r] = keep * row[r] +
               fresh * static_cast<float>(row_sums[i][r] * scale_squared / static_cast<double>(piece.columns) +
                                          smallest_square);
    columns[b.piece].resize(static_cast<size_t>(piece.columns));
    for (size_t c = 0; c < columns[b.piece].size(); ++c) columns[b.piece][c] += column_sums[i][c];
  }
  for (size_t k = 0; k < pieces.size(); ++k) {
    const auto& piece = pieces[k];
    if (!piece.factored) continue;
    const auto* row = place(moments_[piece.slot].exp_avg_sq_row, piece);
    auto* column = place(moments_[piece.slot].exp_avg_sq_col, piece);
    double mean = 0;
    for (int64_t r = 0; r < piece.rows; ++r) mean += row[r] / static_cast<double>(piece.rows);
    for (int64_t r = 0; r < piece.rows; ++r)
      row_factors[k].push_back(static_cast<float>(grad_scale / std::sqrt(row[r] / mean)));
    for (int64_t c = 0; c < piece.columns; ++c) {
      column[c] = keep * column[c] + fresh * static_cast<float>(columns[k][static_cast<size_t>(c)] * scale_squared /
                                                                    static_cast<double>(piece.rows) +
                                                                smallest_square);
      column_factors[k].push_back(static_cast<float>(1 / std::sqrt(static_cast<double>(column[c]))));
    }
  }
  // The update takes the gradient's place; its size decides how far it goes.
  std::vector<double> sums(blocks.size()), size(pieces.size());
  each(blocks.size(), [&](size_t i) {
    const auto& b = blocks[i];
    const auto& piece = pieces[b.piece];
    auto* at = g + b.offset;
    if (piece.factored) {
      update.scale(b.rows, piece.columns, row_factors[b.piece].data() + b.first_row, column_factors[b.piece].data(),
                   at);
    } else {
      auto* second =
          moments_[piece.slot].exp_avg_sq.data_ptr<float>() + piece.part * piece.numel() + b.first_row * piece.columns;
      for (int64_t k = 0; k < b.numel; ++k) {
        const auto x = static_cast<float>(grad_scale) * at[k];
        second[k] = keep * second[k] + fresh * (x * x + static_cast<float>(smallest_square));
        at[k] = x / std::sqrt(second[k]);
      }
    }
    sums[i] = update.sum_of_squares(b.numel, at);
  });
  for (size_t i = 0; i < blocks.size(); ++i) size[blocks[i].piece] += sums[i];
  const auto scale = scales(pieces, blocks);
  each(blocks.size(), [&](size_t i) {
    const auto& b = blocks[i];
    const auto& piece = pieces[b.piece];
    const double rate =
        learning_rate * scale[b.piece] / std::max(1.0, root_mean_square(size[b.piece], piece.rows, piece.columns));
    update.descend(static_cast<float>(rate),
                   static_cast<float>(learning_rate * (piece.decays ? config_.weight_decay : 0)), b.numel, p + b.offset,
                   g + b.offset, shadow ? shadow + b.offset : nullptr);
  });
}

void plain_update(const OptimizerConfig& config, int64_t update, double learning_rate, double grad_scale, bool decays,
                  const Tensor& p, const Tensor& g, const Moments& m) {
  const double decay = decays ? config.weight_decay : 0;
  const auto size = [](const Tensor& t) { return t.square().mean().sqrt(); };
  const auto gradient = g * grad_scale;
  const auto squared = gradient.square();
  if (config.kind == OptimizerKind::adafactor) {
    const double keep = second_decay(update);
    const auto average = [&](const Tensor& of, const Tensor& now) {
      return of.mul_(keep).add_(now + smallest_square, 1 - keep);
    };
    Tensor step;
    if (m.exp_avg_sq.defined()) {
      step = gradient / average(m.exp_avg_sq, squared).sqrt();
    } else {
      const auto row = average(m.exp_avg_sq_row, squared.mean(1)), column = average(m.exp_avg_sq_col, squared.mean(0));
      step = gradient / (row / row.mean()).sqrt().unsqueeze(1) / column.sqrt();
    }
    const auto rate = learning_rate * size(p).clamp_min(smallest_scale) / size(step).clamp_min(1);
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
    const auto& name = flat_.slots()[k].param.name;
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
  for (auto& [name, place] : state()) {
    const auto found =
        std::find_if(saved.begin(), saved.end(), [&, wanted = name](const auto& s) { return s.first == wanted; });
    require<CheckpointError>(found != saved.end() && found->second.sizes() == place.sizes(),
                             "the optimizer's state has no tensor '", name,
                             "' of the right shape; the checkpoint belongs to another model or another optimizer");
    place.copy_(found->second);
  }
}

double global_norm(const Tensor& grads) {
  if (!grads.is_cpu()) return grads.norm().item<double>();
  const auto* g = grads.data_ptr<float>();
  const int64_t n = grads.numel();
  std::vector<double> sums(static_cast<size_t>((n + block_floats - 1) / block_floats));
  each(sums.size(), [&](size_t b) {
    const int64_t first = static_cast<int64_t>(b) * block_floats;
    sums[b] = kernels::table().updates.sum_of_squares(std::min(block_floats, n - first), g + first);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

}  // namespace cloze

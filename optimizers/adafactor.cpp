// Adafactor: second moments of a matrix as means of its rows and of its columns, no first moment, steps in proportion
// to the weights. Source: Shazeer and Stern 2018, algorithms 4 and 5 (arXiv 1804.04235).
#include "optimizers/adafactor.h"

#include <cmath>

#include "core/tensor/device_support.h"
#include "optimizers/update.h"

namespace cloze {

using namespace optimizers;

namespace {

constexpr double min_scale = 1e-3, square_epsilon = 1e-30;  // epsilon_2 and epsilon_1

/// The decay of second moments. Source: section 7.2.
double second_decay(int64_t update) { return 1 - std::pow(static_cast<double>(update), -0.8); }

double root_mean_square(double sum, const Matrix& matrix) {
  return std::sqrt(sum / static_cast<double>(matrix.rows * matrix.columns));
}

/// Sums of squared gradients of the rows and columns of each chunk.
struct SquareSums {
  std::vector<std::vector<float>> rows, columns;
};
SquareSums square_sums(const Buffers& buffers) {
  const size_t count = buffers.chunks.size();
  SquareSums sums{.rows = std::vector<std::vector<float>>(count), .columns = std::vector<std::vector<float>>(count)};
  parallel_each(count, [&](size_t i) {
    const auto& chunk = buffers.chunks[i];
    const auto& matrix = buffers.matrix_of(chunk);
    if (!Adafactor::factors(matrix.shape())) return;
    sums.rows[i].resize(static_cast<size_t>(chunk.rows));
    sums.columns[i].assign(static_cast<size_t>(matrix.columns), 0);
    kernels::table().updates.squares(chunk.rows, matrix.columns, buffers.grads + chunk.offset, sums.rows[i].data(),
                                     sums.columns[i].data());
  });
  return sums;
}

/// The decaying means of one update.
struct Averages {
  float decay, new_weight;
  double scale_squared;  ///< of the gradients

  explicit Averages(const Step& step)
      : decay(static_cast<float>(second_decay(step.update))),
        new_weight(1 - decay),
        scale_squared(step.grad_scale * step.grad_scale) {}
  /// Moves `mean` towards the mean of `count` squares.
  void add(float& mean, double sum, int64_t count) const {
    mean = decay * mean +
           new_weight * static_cast<float>(sum * scale_squared / static_cast<double>(count) + square_epsilon);
  }
};

/// The factors of rows and columns by which the gradient of each matrix becomes its update.
struct Factors {
  std::vector<std::vector<float>> rows, columns;
};

/// Updates the means of rows, which are complete within a chunk, and of columns, which are summed over chunks.
Factors update_means(const Step& step, const Buffers& buffers) {
  const auto& matrices = buffers.matrices;
  const Averages averages(step);
  const auto sums = square_sums(buffers);
  std::vector<std::vector<double>> columns(matrices.size());
  for (size_t i = 0; i < buffers.chunks.size(); ++i) {
    const auto& chunk = buffers.chunks[i];
    const auto& matrix = buffers.matrix_of(chunk);
    if (!Adafactor::factors(matrix.shape())) continue;
    auto* row = buffers.moment(matrix, "exp_avg_sq_row") + chunk.first_row;
    for (size_t r = 0; r < sums.rows[i].size(); ++r) averages.add(row[r], sums.rows[i][r], matrix.columns);
    columns[chunk.matrix].resize(static_cast<size_t>(matrix.columns));
    for (size_t c = 0; c < columns[chunk.matrix].size(); ++c) columns[chunk.matrix][c] += sums.columns[i][c];
  }
  Factors factors{.rows = std::vector<std::vector<float>>(matrices.size()),
                  .columns = std::vector<std::vector<float>>(matrices.size())};
  for (size_t k = 0; k < matrices.size(); ++k) {
    const auto& matrix = matrices[k];
    if (!Adafactor::factors(matrix.shape())) continue;
    const auto* row = buffers.moment(matrix, "exp_avg_sq_row");
    auto* column = buffers.moment(matrix, "exp_avg_sq_col");
    double mean = 0;
    for (int64_t r = 0; r < matrix.rows; ++r) mean += row[r] / static_cast<double>(matrix.rows);
    for (int64_t r = 0; r < matrix.rows; ++r)
      factors.rows[k].push_back(static_cast<float>(step.grad_scale / std::sqrt(row[r] / mean)));
    for (int64_t c = 0; c < matrix.columns; ++c) {
      averages.add(column[c], columns[k][static_cast<size_t>(c)], matrix.rows);
      factors.columns[k].push_back(static_cast<float>(1 / std::sqrt(static_cast<double>(column[c]))));
    }
  }
  return factors;
}

/// Turns the gradients of a chunk that is not factored into its update.
void normalise(const Step& step, const Chunk& chunk, float* second, float* gradient) {
  const Averages averages(step);
  for (int64_t k = 0; k < chunk.numel; ++k) {
    const auto x = static_cast<float>(step.grad_scale) * gradient[k];
    second[k] = averages.decay * second[k] + averages.new_weight * (x * x + static_cast<float>(square_epsilon));
    gradient[k] = x / std::sqrt(second[k]);
  }
}

/// Turns the gradients into updates; returns the root mean square of those of each matrix.
std::vector<double> make_updates(const Step& step, const Buffers& buffers) {
  const auto& update = kernels::table().updates;
  const auto factors = update_means(step, buffers);
  std::vector<double> sums(buffers.chunks.size()), sizes(buffers.matrices.size());
  parallel_each(sums.size(), [&](size_t i) {
    const auto& chunk = buffers.chunks[i];
    const auto& matrix = buffers.matrix_of(chunk);
    auto* gradient = buffers.grads + chunk.offset;
    if (Adafactor::factors(matrix.shape()))
      update.scale(chunk.rows, matrix.columns, factors.rows[chunk.matrix].data() + chunk.first_row,
                   factors.columns[chunk.matrix].data(), gradient);
    else
      normalise(step, chunk, buffers.moment(chunk, "exp_avg_sq"), gradient);
    sums[i] = update.sum_of_squares(chunk.numel, gradient);
  });
  for (size_t i = 0; i < sums.size(); ++i) sizes[buffers.chunks[i].matrix] += sums[i];
  for (size_t k = 0; k < sizes.size(); ++k) sizes[k] = root_mean_square(sizes[k], buffers.matrices[k]);
  return sizes;
}

/// Root mean square of the weights of each matrix, at least epsilon_2.
std::vector<double> scales(const Buffers& buffers) {
  std::vector<double> scale(buffers.matrices.size()), sums(buffers.chunks.size());
  parallel_each(sums.size(), [&](size_t i) {
    const auto& chunk = buffers.chunks[i];
    sums[i] = kernels::table().updates.sum_of_squares(chunk.numel, buffers.values + chunk.offset);
  });
  for (size_t i = 0; i < sums.size(); ++i) scale[buffers.chunks[i].matrix] += sums[i];
  for (size_t k = 0; k < scale.size(); ++k)
    scale[k] = std::max(min_scale, root_mean_square(scale[k], buffers.matrices[k]));
  return scale;
}

}  // namespace

void Adafactor::update(const Step& step, const Buffers& buffers) const {
  const auto sizes = make_updates(step, buffers);  // clipped to 1
  const auto scale = scales(buffers);
  parallel_each(buffers.chunks.size(), [&](size_t i) {
    const auto& chunk = buffers.chunks[i];
    const double rate = step.learning_rate * scale[chunk.matrix] / std::max(1.0, sizes[chunk.matrix]);
    const double decay = step.learning_rate * step.decay_of(buffers.matrix_of(chunk).decays);
    kernels::table().updates.descend(static_cast<float>(rate), static_cast<float>(decay), buffers.of(chunk));
  });
}

void Adafactor::update(const Step& step, const DeviceBuffers& buffers) const {
  const struct {
    float decay, fresh, scale_squared, epsilon;
  } averages{static_cast<float>(second_decay(step.update)), static_cast<float>(1 - second_decay(step.update)),
             static_cast<float>(step.grad_scale * step.grad_scale), static_cast<float>(square_epsilon)};
  const auto run = [&](const char* kernel, int64_t warps, auto... arguments) {
    device::run(buffers.values, kernel, warps, buffers.count(), arguments...);
  };
  using device::data;
  const auto sums = buffers.numbers(256 * buffers.blocks), squares = buffers.numbers(2 * buffers.tiles),
             means = buffers.numbers(buffers.count()), factors = buffers.numbers(buffers.count());
  auto *table = data(buffers.table), *values = data(buffers.values), *grads = data(buffers.grads);
  run("adafactor_rows", buffers.rows, buffers.rows, table, averages, grads);
  run("adafactor_blocks", buffers.blocks, buffers.blocks, table, grads, data(sums));
  run("adafactor_columns", buffers.blocks, buffers.blocks, table, averages, data(sums));
  run("adafactor_means", buffers.count(), table, data(means));
  run("adafactor_updates", buffers.tiles, buffers.tiles, table, averages, static_cast<float>(step.grad_scale),
      data(means), values, grads, data(squares));
  run("adafactor_factors", buffers.count(), table, static_cast<float>(min_scale), data(squares), data(factors));
  descend(buffers, factors, step.learning_rate, step.weight_decay);
}

void Adafactor::update(const Step& step, const Target& target) const {
  const auto &p = target.values, &gradient = target.gradient;
  const auto& m = target.moments;
  const double decay_rate = second_decay(step.update);
  const auto size = [](const Tensor& t) { return t.square().mean().sqrt(); };
  const auto average = [&](const Tensor& of, const Tensor& now) {
    return of.mul_(decay_rate).add_(now + square_epsilon, 1 - decay_rate);
  };
  const auto squared = gradient.square();
  Tensor direction;
  if (m.contains("exp_avg_sq")) {
    direction = gradient / average(m.at("exp_avg_sq"), squared).sqrt();
  } else {
    const auto row = average(m.at("exp_avg_sq_row"), squared.mean(1));
    const auto column = average(m.at("exp_avg_sq_col"), squared.mean(0));
    direction = gradient / (row / row.mean()).sqrt().unsqueeze(1) / column.sqrt();
  }
  const auto rate = step.learning_rate * size(p).clamp_min(min_scale) / size(direction).clamp_min(1);
  p.mul_(1 - step.learning_rate * step.decay_of(target.decays)).sub_(rate * direction);
}

}  // namespace cloze

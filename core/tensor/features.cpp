#include "core/tensor/features.h"

#include <cmath>

namespace cloze {

namespace {

double length(const std::vector<double>& x) {
  double total = 0;
  for (const double v : x) total += v * v;
  return std::sqrt(total);
}

}  // namespace

void draw_features(const Tensor& w, Stream stream) {
  at::NoGradGuard no_grad;
  const int64_t rows = w.size(0), width = w.size(1);
  auto drawn = at::empty({rows, width}, at::kFloat);
  std::vector<std::vector<double>> block;
  std::vector<double> row(static_cast<size_t>(width));
  for (int64_t r = 0; r < rows; ++r) {
    if (r % width == 0) block.clear();
    for (auto& x : row) x = stream.normal();
    for (int twice = 0; twice < 2; ++twice)  // Gram-Schmidt, repeated to remove rounding errors
      for (const auto& other : block) {
        double along = 0;
        for (size_t c = 0; c < row.size(); ++c) along += row[c] * other[c];
        for (size_t c = 0; c < row.size(); ++c) row[c] -= along * other[c];
      }
    const double now = length(row);
    for (auto& x : row) x /= now;
    block.push_back(row);
    for (auto& x : row) x = stream.normal();
    const double wanted = length(row);
    for (int64_t c = 0; c < width; ++c)
      drawn.data_ptr<float>()[r * width + c] = static_cast<float>(wanted * block.back()[static_cast<size_t>(c)]);
  }
  w.copy_(drawn);
}

}  // namespace cloze

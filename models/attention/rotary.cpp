#include "models/attention/rotary.h"

#include <torch/csrc/jit/frontend/tracer.h>

#include <mutex>

#include "models/attention/attention.h"

namespace cloze {

namespace {

/// Held while a table is looked at or grown: batches of scores are computed in several threads.
std::mutex table_mutex;

}  // namespace

RotaryTable::RotaryTable(double theta, int64_t head_width)
    : frequencies_(1 / at::pow(theta, at::arange(0, head_width, 2, at::kFloat) / static_cast<double>(head_width))) {}

Tensor RotaryTable::angles(const Tensor& positions) const {
  // A product in fp32, as the published code has it: at far positions another rounding is another angle.
  return positions.to(at::kFloat).unsqueeze(-1) * frequencies_.to(positions.device());
}

Tensor RotaryTable::of(const Tensor& x, const Tensor& past) const {
  if (torch::jit::tracer::isTracing()) {
    const auto fresh = position_range(x);
    const auto angle = angles(past.defined() ? fresh + at::ones_like(past.select(-1, 0)[0], at::kLong).sum() : fresh);
    return at::cat({at::cos(angle), at::sin(angle)}, -1);
  }
  const int64_t before = past.defined() ? past.size(1) : 0, length = before + x.size(1);
  const std::lock_guard lock(table_mutex);
  if (!table_.defined() || table_.size(0) < length || table_.device() != x.device()) {
    at::NoGradGuard no_grad;
    int64_t rows = 64;
    while (rows < length) rows *= 2;
    // Cosines in double, so that a row is the same in tables of all lengths, whatever vectors it was computed in.
    const auto angle = angles(at::arange(rows, x.options().dtype(at::kLong))).to(at::kDouble);
    table_ = at::cat({at::cos(angle), at::sin(angle)}, -1).to(at::kFloat);
  }
  return table_.narrow(0, before, x.size(1));
}

}  // namespace cloze

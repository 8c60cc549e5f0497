#include "core/tensor/moved.h"
#include "models/positions/scheme.h"

#include <torch/csrc/jit/frontend/tracer.h>

#include <map>
#include <mutex>

namespace cloze {

namespace {

/// Held while a table is looked at or grown: batches of scores are computed in several threads.
std::mutex table_mutex;

}  // namespace

RotaryTable::RotaryTable(double theta, int64_t head_width)
    : frequencies_(1 / at::pow(theta, at::arange(0, head_width, 2, at::kFloat) / static_cast<double>(head_width))) {}

Tensor RotaryTable::angles(const Tensor& positions) const {
  // A product in fp32, as the published code has it: at far positions another rounding is another angle.
  return positions.to(at::kFloat).unsqueeze(-1) * moved_to(frequencies_, positions.device());
}

Tensor RotaryTable::of(const Tensor& x, const Tensor& past) const {
  if (torch::jit::tracer::isTracing()) {
    const auto fresh = position_range(x);
    const auto angle = angles(past.defined() ? fresh + at::ones_like(past.select(-1, 0)[0], at::kLong).sum() : fresh);
    return at::cat({at::cos(angle), at::sin(angle)}, -1);
  }
  return rows(past.defined() ? past.size(1) : 0, x.size(1), x);
}

Tensor RotaryTable::of(const Tensor& x, const UnpaddedRows* unpadded) const {
  return unpadded ? rows(0, unpadded->length, x).index_select(0, unpadded->positions) : of(x);
}

Tensor RotaryTable::rows(int64_t before, int64_t count, const Tensor& like) const {
  const int64_t length = before + count;
  const std::lock_guard lock(table_mutex);
  if (!table_.defined() || table_.size(0) < length || table_.device() != like.device()) {
    at::NoGradGuard no_grad;
    int64_t known = 64;
    while (known < length) known *= 2;
    // Cosines in double, so that a row is the same in tables of all lengths, whatever vectors it was computed in.
    const auto angle = angles(at::arange(known, like.options().dtype(at::kLong))).to(at::kDouble);
    table_ = at::cat({at::cos(angle), at::sin(angle)}, -1).to(at::kFloat);
  }
  return table_.narrow(0, before, count);
}

namespace {

/// The tables of a stack: one for each base that its layers have.
struct RotaryScheme final : PositionScheme {
  RotaryScheme(const Rotary& kind, const PositionSizes& sizes) : theta(kind.theta), head_width(sizes.head_width) {}
  std::shared_ptr<const RotaryTable> rotary(double own_theta) override {
    auto& table = tables[own_theta > 0 ? own_theta : theta];
    if (!table) table = std::make_shared<RotaryTable>(own_theta > 0 ? own_theta : theta, head_width);
    return table;
  }
  double theta;
  int64_t head_width;
  std::map<double, std::shared_ptr<const RotaryTable>> tables;
};

}  // namespace

std::shared_ptr<PositionScheme> make_scheme(const Rotary& kind, const PositionSizes& sizes, Layer&) {
  return std::make_shared<RotaryScheme>(kind, sizes);
}

}  // namespace cloze

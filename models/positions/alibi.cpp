#include <cmath>

#include "core/tensor/moved.h"
#include "models/positions/scheme.h"

namespace cloze {

namespace {

/// 2^(-8 / n), 2^(-16 / n), ... for n heads. If n is no power of two, the slopes of the next smaller one, and then
/// every other one of twice as many heads, as in the published code.
std::vector<double> slopes_of(int64_t heads) {
  int64_t base = 1;
  while (2 * base <= heads) base *= 2;
  std::vector<double> slopes;
  for (int64_t i = 1; i <= base; ++i)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(base)));
  for (int64_t i = 1; i <= heads - base; ++i)
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(2 * i - 1) / static_cast<double>(base)));
  return slopes;
}

struct AlibiScheme final : PositionScheme {
  explicit AlibiScheme(int64_t heads) : slopes(at::tensor(slopes_of(heads), at::kDouble).unsqueeze(1)) {}
  Tensor distance_bias(const Tensor& x, const Tensor& past) const override {
    return (moved_to(slopes, x.device()) * -distance_range(x, past).abs()).to(accumulation_type(x));
  }
  Tensor slopes;  // fp64 [H, 1]
};

}  // namespace

std::shared_ptr<PositionScheme> make_scheme(const Alibi&, const PositionSizes& sizes, Layer&) {
  return std::make_shared<AlibiScheme>(sizes.heads);
}

}  // namespace cloze

#include "models/positions/scheme.h"

namespace cloze {

std::shared_ptr<PositionScheme> make_positions(const RelativePositions& relative, const PositionSizes& sizes,
                                               Layer& stack) {
  return std::visit([&](const auto& kind) { return make_scheme(kind, sizes, stack); }, relative);
}

std::shared_ptr<PositionScheme> make_scheme(const NoRelativePositions&, const PositionSizes&, Layer&) {
  return std::make_shared<PositionScheme>();
}

Tensor distance_range(const Tensor& x, const Tensor& past) {
  const auto queries = position_range(x);
  const auto keys = past.defined() ? position_range(at::cat({past.select(-1, 0), x.select(-1, 0)}, 1)) : queries;
  return at::cat({keys - keys.slice(0, -1), queries.slice(0, 1)});
}

}  // namespace cloze

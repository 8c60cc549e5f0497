#include "views/projection.h"

#include <algorithm>

namespace cloze {

PrincipalPlane principal_components(const Tensor& embeddings) {
  const auto centred = embeddings - embeddings.mean(0, /*keepdim=*/true);
  const auto [u, singular, v] = at::linalg_svd(centred, /*full_matrices=*/false);
  const double all = singular.square().sum().item<double>();
  PrincipalPlane found;
  const auto n = embeddings.size(0), kept = std::min<int64_t>(2, singular.numel());
  auto scores = at::zeros({n, 2}, at::kDouble);
  for (int64_t k = 0; k < kept; ++k) {
    auto column = u.select(1, k) * singular[k];
    const auto furthest = column.abs().argmax();
    if (column[furthest.item<int64_t>()].item<double>() < 0) column = -column;
    scores.select(1, k).copy_(column);
    const double share = all > 0 ? singular[k].square().item<double>() / all : 0;
    (k == 0 ? found.first_share : found.second_share) = share;
  }
  for (int64_t i = 0; i < n; ++i) found.points.emplace_back(scores[i][0].item<double>(), scores[i][1].item<double>());
  return found;
}

}  // namespace cloze

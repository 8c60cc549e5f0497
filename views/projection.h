#pragma once
// Embeddings of texts in the plane of their largest variance.
#include <vector>

#include "scoring/embeddings.h"

namespace cloze {

struct PrincipalPlane {
  std::vector<std::pair<double, double>> points{};  ///< of each text
  double first_share = 0, second_share = 0;         ///< of the variance
};

/// The first two principal components of embeddings fp64 [N, D]; the signs are such that the text furthest from the
/// mean lies at positive coordinates. Source: Pearson 1901.
PrincipalPlane principal_components(const Tensor& embeddings);

}  // namespace cloze

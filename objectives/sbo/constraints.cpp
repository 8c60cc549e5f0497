#include "core/config/config.h"
#include "models/layers/cost.h"
#include "objectives/constraints.h"
#include "objectives/mlm/mlm.h"
#include "objectives/sbo/sbo.h"

namespace cloze {

std::string SboConfig::prediction() const {
  return concat("the tokens of a masked span, at most ", max_pair_targets, ", from the two beside it");
}

void SboConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  require_bidirectional(kind, in, constraints);
  constraints.forbid(!in.has<MlmConfig>(),
                     "sbo predicts the spans that mlm chooses; add mlm (like: spanbert) to the objectives");
}

void SboConfig::expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const {
  for (auto& row : rows) row.boundary_predicted = expected_masks(maskings_of(in.objectives), row.length);
}

Objectives SboConfig::row_makers() const { return {preset<MlmConfig>("spanbert")}; }

}  // namespace cloze

#include "core/text.h"
#include "models/layers/cost.h"
#include "objectives/constraints.h"
#include "objectives/nsp_sop/nsp_sop.h"

namespace cloze {

namespace {

void check_pair(const std::string& kind, const ObjectiveSetting& in, Constraints& constraints) {
  require_bidirectional(kind.c_str(), in, constraints);
  require_segments(kind, "remove " + kind + " from the objectives", in, constraints);
}

/// The label is read from [CLS].
void expect_pairs(std::vector<RowSizes>& rows) {
  for (auto& row : rows) row.read += 1;
}

}  // namespace

std::string NspConfig::prediction() const {
  return concat("whether segment B follows A, as it does in ", in_percent(1 - random_next_prob), " of the pairs");
}

std::string SopConfig::prediction() const {
  return concat("whether two segments are swapped, as they are in ", in_percent(swap_prob), " of the pairs");
}

void NspConfig::check(const ObjectiveSetting& in, Constraints& constraints) const { check_pair(kind, in, constraints); }

void SopConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  check_pair(kind, in, constraints);
  constraints.forbid(in.has<NspConfig>(), "nsp and sop need different pairs of segments; keep one of them");
}

void NspConfig::expect(const ObjectiveSetting&, std::vector<RowSizes>& rows) const { expect_pairs(rows); }
void SopConfig::expect(const ObjectiveSetting&, std::vector<RowSizes>& rows) const { expect_pairs(rows); }

}  // namespace cloze

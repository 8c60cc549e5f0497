#include "objectives/constraints.h"
#include "objectives/pairs/pairs.h"

namespace cloze {

std::string PairsConfig::prediction() const { return "the target of each source"; }

void PairsConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  require_generative(kind, *this, in, constraints);
  constraints.forbid(in.data.packing != RowPacking::document,
                     "objective pairs makes one row per pair, and data.packing is ", in.data.packing,
                     "; choose document");
}

void PairsConfig::expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const {
  expect_source_target(1, in, rows);
}

std::optional<SourceTargetLayout> PairsConfig::layout() const {
  return SourceTargetLayout{.prefix = SourceTargetLayout::Prefix::source, .pair = true};
}

}  // namespace cloze

#include "models/backbone_config.h"
#include "models/layers/cost.h"
#include "objectives/clm/clm.h"
#include "objectives/constraints.h"

namespace cloze {

std::string ClmConfig::prediction() const { return "every token from those before it"; }

void ClmConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  require_generative(kind, *this, in, constraints);
  forbid_prefix_lm(kind, in, constraints);
  constraints.forbid(in.backbone().is_encoder_decoder(), "objective clm has no input for the encoder of ",
                     kind_of(in.model), "; choose ", families_that(&BackboneConfig::is_decoder),
                     ", or span_corruption with corruption: prefix_lm");
}

void ClmConfig::expect(const ObjectiveSetting&, std::vector<RowSizes>& rows) const {
  for (auto& row : rows) {
    row.predicted = row.length;
    row.read = row.length;
  }
}

}  // namespace cloze
